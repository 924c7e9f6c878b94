"""How a call of a handler, and a call of the host, fails."""

from __future__ import annotations

from typing import Any


class HandlerError(Exception):
    """A failure with a code.

    Raised by a handler, the codes `not_found`, `invalid_request`, `forbidden`, `conflict` and `unavailable` become the status
    of their name; every other code is a failed action. What the host refuses raises it too, with the service's own codes.
    """

    def __init__(self, code: str, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class MissingPlugin(RuntimeError):
    """The block used an interface of the host that its manifest does not ask for."""
