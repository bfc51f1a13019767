"""What can go wrong with a turn of a model, with the facts that its provider gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from luthier.errors.wire import WireError


@dataclass(frozen=True, slots=True)
class ModelFault:
    """What a provider said: its status, its word for the fault, its id of the request, when to ask again."""

    status: int | None = None
    type: str = ""
    request_id: str = ""
    retry_after: float | None = None  # seconds


class ModelError(WireError):
    """A model could not be asked, or gave no answer. `retryable` False: it would fail again the same way."""

    kind = "model"

    def __init__(
        self,
        message: str,
        fault: ModelFault | None = None,
        *,
        provider: str = "",
        model: str = "",
        sent: bool = True,
        retryable: bool = True,
        hint: str = "",
    ) -> None:
        super().__init__(message, tool=f"model/{provider}", phase="call", sent=sent, hint=hint)
        self.provider = provider
        self.model = model
        self.fault = fault or ModelFault()
        self.retryable = retryable

    @property
    def status(self) -> int | None:
        return self.fault.status

    @property
    def retry_after(self) -> float | None:
        """Seconds that the provider asks us to wait."""
        return self.fault.retry_after

    def facts(self) -> dict[str, Any]:
        return {
            "provider": self.provider,
            "model": self.model,
            "status": self.fault.status,
            "type": self.fault.type,
            "request_id": self.fault.request_id,
            "retry_after": self.fault.retry_after,
        }


class ModelUnreachableError(ModelError):
    """There was no connection to the provider, so nothing was sent."""

    kind = "connect"
