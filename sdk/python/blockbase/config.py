"""The block's configuration; `config` has to stand in the manifest's `requires.plugins`."""

from __future__ import annotations

from typing import Any

from . import _host, _json


def get() -> dict[str, Any]:
    """The configuration, checked against the manifest's schema, defaults filled in."""
    return _json.loads(_host.interface("config").get())
