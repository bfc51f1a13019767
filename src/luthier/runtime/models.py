"""The models of a project as tools: each provider that is there, written down or not, and what opens it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.errors import ModelUnreachableError, UnresolvedReferenceError
from luthier.models import model_tool
from luthier.models.providers import Connection, ProviderModel
from luthier.models.tool import TIMEOUT
from luthier.secrets import Secret, expand
from luthier.spec.provider import USUAL, Provider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from luthier.models import Model
    from luthier.spec import Project
    from luthier.tools.builtin import Builtin


def with_models(project: Project, given: Mapping[str, Model]) -> Project:
    """The project with the providers that Python gives; those it has keep what it says of them."""
    named = {id_: project.providers.get(id_) or USUAL.get(id_) or Provider(id=id_) for id_ in given}
    return msgspec.structs.replace(project, providers={**project.providers, **named}) if named else project


class Models:
    """The models of a project. `given` takes the place of those that it would open."""

    def __init__(self, project: Project, environ: Mapping[str, str], given: Mapping[str, Model]) -> None:
        self._environment = project.environment
        self._environ = environ
        self._given = given
        self._providers = {**USUAL, **project.providers}
        self._models = {id_: given.get(id_) or self._opened(one) for id_, one in self._providers.items()}

    def tools(self) -> list[Builtin]:
        """Each as the tool that takes its turns."""
        return [
            model_tool(
                provider.id,
                self._models[provider.id],
                label=provider.trust,
                timeout=TIMEOUT if provider.timeout is None else provider.timeout,
                prices=provider.prices,
                vendor=self._vendor(provider),
            )
            for provider in self._providers.values()
        ]

    async def close(self) -> None:
        """Let go of all connections."""
        for model in self._models.values():
            await model.close()

    def _vendor(self, provider: Provider) -> str:
        """Whose list of prices holds: only the vendor's own address has them."""
        if provider.id in self._given or provider.base_url is not None:
            return ""
        return provider.kind or ""

    def _opened(self, provider: Provider) -> ProviderModel:
        return ProviderModel(lambda: self._connection(provider))

    def _connection(self, provider: Provider) -> Connection:
        """Where it is and its key, references resolved. Raises ModelUnreachableError."""
        if provider.kind is None:
            raise _unasked(provider, f"The provider {provider.id!r} has no model here.")
        base_url = self._expanded(provider, "base_url", secrets=False)
        if base_url and (fault := provider.rules(self._environment).fault(base_url)):
            message = f"The address of the provider {provider.id!r} {fault.why}."
            raise _unasked(provider, message, fault.hint)
        key = self._expanded(provider, "api_key", secrets=True)
        return Connection(
            id=provider.id, kind=provider.kind, base_url=base_url, key=Secret(key) if key else None
        )

    def _expanded(self, provider: Provider, field: str, *, secrets: bool) -> str:
        text = getattr(provider, field)
        if text is None:
            return ""
        try:
            return expand(text, self._environ, place=provider.origin.place(field), secrets=secrets)
        except UnresolvedReferenceError as error:
            message = f"The provider {provider.id!r} cannot be asked: {error.message}"
            raise _unasked(provider, message, error.hint) from error


def _unasked(provider: Provider, message: str, hint: str = "") -> ModelUnreachableError:
    return ModelUnreachableError(message, provider=provider.id, sent=False, retryable=False, hint=hint)
