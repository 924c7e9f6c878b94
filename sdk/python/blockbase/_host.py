"""The interfaces of the host that this component imports.

They are looked up while the component is built, because nothing can be imported when it runs.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

from . import _json
from ._errors import HandlerError, MissingPlugin

try:
    from componentize_py_types import Err
except ModuleNotFoundError:
    # Imported by plain Python, as tests of a block do: there is no host to call, and nothing that it could raise.
    class Err(Exception):  # type: ignore[no-redef]
        """The error of a call of the host."""

        value: Any


def _imported(name: str) -> types.ModuleType | None:
    try:
        return importlib.import_module(f"wit_world.imports.{name}")
    except ModuleNotFoundError:
        return None


_INTERFACES = {name: _imported(name) for name in ("config", "data", "deadline", "http", "log", "secrets")}
#: Whether this runs in a component.
INSIDE = _INTERFACES["deadline"] is not None


def has(name: str) -> bool:
    """Whether the block may use an interface."""
    return _INTERFACES[name] is not None


def interface(name: str) -> Any:
    """The bindings of an interface."""
    found = _INTERFACES[name]
    if found is not None:
        return found
    if INSIDE:
        raise MissingPlugin(f"This block may not use `{name}`: add `{name}` to requires.plugins in block.json and build it again.")
    raise MissingPlugin(f"`{name}` is offered by the server alone; outside a component there is none.")


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the host; its errors become `HandlerError`."""
    try:
        return function(*arguments)
    except Err as error:
        raised = error.value
    details = _json.loads(raised.details) if raised.details is not None else None
    raise HandlerError(raised.code, raised.message, details)
