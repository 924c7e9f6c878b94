"""How long the call may still run."""

from __future__ import annotations

from . import _host


def remaining_ms() -> int:
    """Milliseconds until the call is stopped."""
    return _host.interface("deadline").remaining_ms()


def is_cancelled() -> bool:
    """Whether nobody waits for the call any more."""
    return _host.interface("deadline").is_cancelled()
