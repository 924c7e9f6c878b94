"""Secrets that the installer gave; `secrets` has to stand in the manifest's `requires.plugins`, their names in its permissions."""

from __future__ import annotations

from . import _host


def get(name: str) -> str:
    """The value of a secret."""
    return _host.call(_host.interface("secrets").get, name)
