"""Providers of models as frozen values, and which of them a step asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from luthier.models import Price
from luthier.models.providers import ADDRESSES, Kind
from luthier.secrets import find
from luthier.spec.origin import NOWHERE, Origin
from luthier.taint import UNTRUSTED, Label
from luthier.web import UrlRules

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPENAI = ("gpt-", "chatgpt-", "text-", "o1", "o3", "o4")


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """One provider. `kind` None: given in Python. `api_key` is a reference, unexpanded; None: it wants none.

    `model` is for steps that name none, `trust` the label of answers before what was asked is joined.
    `prices` are for a million tokens, by model. `timeout` None: as long as a turn may take.
    """

    id: str
    kind: Kind | None = None
    base_url: str | None = None
    api_key: str | None = None
    model: str = ""
    timeout: float | None = None
    prices: dict[str, Price] = {}
    trust: Label = UNTRUSTED
    allow_private: bool = False
    origin: Origin = NOWHERE

    def __repr__(self) -> str:
        return f"Provider({self.id!r}, {self.kind!r})"

    def rules(self, environment: str) -> UrlRules:
        """Where its address may lead: in development wherever the file itself says, else out by https."""
        spelled = () if self.base_url is None or find(self.base_url) else (self.base_url,)
        production = environment != "development"
        return UrlRules.of(*spelled, production=production, allow_private=self.allow_private)


USUAL: dict[str, Provider] = {
    kind: Provider(id=kind, kind=kind, api_key=f"${{env.{kind.upper()}_API_KEY}}") for kind in ADDRESSES
}
"""The providers that are there without being written down, with the variables that everybody uses."""


def provider_name(written: str, model: object, providers: Mapping[str, Provider]) -> str:
    """Which provider a step means: the one it names, else the one whose model it is, else the only one.

    "" where that cannot be told.
    """
    if written:
        return written
    if isinstance(model, str):
        if model.startswith("claude"):
            return "anthropic"
        if model.startswith(_OPENAI):
            return "openai"
    return next(iter(providers)) if len(providers) == 1 else ""
