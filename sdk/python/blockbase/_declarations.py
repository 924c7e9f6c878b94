"""The decorators, and what they declared."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from . import _types

Function = TypeVar("Function", bound=Callable[..., Any])

_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")


@dataclasses.dataclass
class Handler:
    """A decorated function."""

    name: str
    function: Callable[..., Any]
    #: How many of the arguments that there are it takes.
    arguments: int
    #: Its entry in the manifest, without what the types of the function say.
    entry: dict[str, Any]
    #: The type of an action's input.
    input: Any = None

    def call(self, *arguments: Any) -> Any:
        return self.function(*arguments[: self.arguments])


#: Handlers by kind and name, in the order of their declaration.
HANDLERS: dict[str, dict[str, Handler]] = {"action": {}, "hook": {}, "subscription": {}}


def action(
    function: Function | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    input: Mapping[str, Any] | None = None,
    rbac: Mapping[str, str] | None = None,
    timeout_ms: int | None = None,
) -> Any:
    """Declares `function(input, context)` as an action; what it returns is the call's result, written as JSON.

    The input's JSON Schema comes from the annotation of the first parameter (a dataclass, a TypedDict, or a dict), unless
    `input` gives one. `rbac` is the permission that a caller needs, `{"resource": …, "action": …}`. Name and description are
    the function's own where they are left out.
    """

    def declare(function: Function) -> Function:
        entry: dict[str, Any] = {}
        if input is not None:
            entry["input"] = dict(input)
        if rbac is not None:
            entry["rbac"] = dict(rbac)
        if timeout_ms is not None:
            entry["timeoutMs"] = timeout_ms
        return _declare("action", function, ("input", "context"), name, description, entry)

    return declare if function is None else declare(function)


def hook(function: Function | None = None, *, name: str | None = None, description: str | None = None) -> Any:
    """Declares `function(request, context)` as the receiver of third parties' requests to `/api/v1/hooks/<block>/<name>`.

    It returns None, something that is written as JSON, or a `Response`.
    """

    def declare(function: Function) -> Function:
        return _declare("hook", function, ("request", "context"), name, description, {})

    return declare if function is None else declare(function)


def subscription(
    event: str | None = None,
    *,
    consumer: str | None = None,
    name: str | None = None,
    config: Mapping[str, Any] | None = None,
    per_instance: bool = False,
) -> Callable[[Function], Function]:
    """Declares `function(event, config, context)` as the handler of events whose topic matches `event`.

    `consumer` names the subscription: the block's name, `:`, and a name. Without an `event` the handler's subscriptions stand
    in block.json, where it may have several. An exception is a failed delivery, which is tried again.
    """
    if (event is None) != (consumer is None):
        raise TypeError("A subscription has an event and a consumer: @subscription('data.task.#', consumer='block:tasks').")

    def declare(function: Function) -> Function:
        entry: dict[str, Any] = {}
        if event is not None:
            entry.update({"event": event, "consumer": consumer})
            if config is not None:
                entry["config"] = dict(config)
            if per_instance:
                entry["perInstance"] = True
        return _declare("subscription", function, ("event", "config", "context"), name, None, entry)

    return declare


def manifest() -> dict[str, list[dict[str, Any]]]:
    """What the code declares, as it stands in a manifest."""
    actions = [{"name": handler.name, **handler.entry, "input": _input_schema(handler)} for handler in HANDLERS["action"].values()]
    hooks = [{"name": handler.name, **handler.entry} for handler in HANDLERS["hook"].values()]
    subscriptions = [{"handler": handler.name, **handler.entry} for handler in HANDLERS["subscription"].values()]
    return {"actions": actions, "hooks": hooks, "subscriptions": subscriptions}


def resolve() -> None:
    """Looks at the functions' types, once every class of the block is there."""
    for handler in HANDLERS["action"].values():
        parameters = list(inspect.signature(handler.function).parameters)
        hints = typing.get_type_hints(handler.function, include_extras=True)
        handler.input = hints.get(parameters[0], dict) if parameters else dict
        if "input" not in handler.entry:
            _input_schema(handler)


def _input_schema(handler: Handler) -> dict[str, Any]:
    if "input" in handler.entry:
        return handler.entry["input"]
    try:
        derived = _types.schema(handler.input)
    except _types.Unsupported as error:
        raise TypeError(f"The input of the action `{handler.name}`: {error}") from None
    if derived.get("type") != "object":
        raise TypeError(f"The input of the action `{handler.name}` has to be a dataclass, a TypedDict or a dict.")
    return derived


def _declare(
    kind: str, function: Function, offered: tuple[str, ...], name: str | None, description: str | None, entry: dict[str, Any]
) -> Function:
    name = function.__name__ if name is None else name
    if not _NAME.fullmatch(name):
        message = "is 1 to 48 lower-case letters, digits and `_`, and begins with a letter"
        raise TypeError(f"The name of a handler {message}; {name!r} is not: say @{kind}(name=…).")
    if name in HANDLERS[kind]:
        more = " Several subscriptions of one handler are declared in block.json." if kind == "subscription" else ""
        raise TypeError(f"The {kind} `{name}` is declared twice.{more}")
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"The {kind} `{name}` is an async function; handlers are plain ones, whose calls to the host wait.")
    if description is None and kind != "subscription":
        description = _first_paragraph(function)
    if description is not None:
        entry = {"description": description, **entry}
    HANDLERS[kind][name] = Handler(name, function, _argument_count(kind, name, function, offered), entry)
    return function


def _argument_count(kind: str, name: str, function: Callable[..., Any], offered: tuple[str, ...]) -> int:
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return len(offered)
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [one for one in positional if one.default is one.empty]
    lonely = [one for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    if len(needed) > len(offered) or lonely:
        raise TypeError(f"The {kind} `{name}` is called with ({', '.join(offered)}); what it does not need may be left off the end.")
    return min(len(positional), len(offered))


def _first_paragraph(function: Callable[..., Any]) -> str | None:
    text = inspect.getdoc(function)
    return " ".join(text.split("\n\n")[0].split()) if text else None
