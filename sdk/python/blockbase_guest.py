"""The exports of a block's component: they find the author's handlers, and no exception leaves them as a trap.

The build imports this module, and keeps the memory as it is then. Every instance begins with that memory. An instance serves one call,
or several calls if the manifest asks for `instances.reuse`.
"""

# What the standard library imports only when it is first used: no module can be imported when the component runs.
import _strptime  # noqa: F401
import contextlib
import encodings.ascii  # noqa: F401
import encodings.idna  # noqa: F401
import encodings.latin_1  # noqa: F401
import encodings.utf_8_sig  # noqa: F401
import encodings.utf_16  # noqa: F401
import gc
import hashlib  # noqa: F401
import hmac  # noqa: F401
import linecache
import os.path
import sys
import traceback
from collections.abc import Callable
from typing import Any

from componentize_py_types import Err
from wit_world.exports.hooks import Request as HostRequest
from wit_world.exports.hooks import Response as HostResponse
from wit_world.exports.registry import Handler as HostHandler
from wit_world.exports.subscriptions import Event as HostEvent
from wit_world.imports.types import Context as HostContext
from wit_world.imports.types import Error as HostError

from blockbase import Actor, Context, Event, HandlerError, Headers, Request, Response, log
from blockbase import _declarations, _host, _json, _random, _types

_random.begin_build()

import block  # noqa: E402

#: Bytes of a traceback that are logged; the host fails a call whose log line has more than 8 KiB, which JSON's escapes are part of.
_TRACEBACK_BYTES_MAX = 3 * 1024
#: Calls within calls: the stack of the host is smaller than that of a process, and to overflow it is a trap.
_RECURSION_MAX = 400
#: Where the block's own modules were at the build.
_BLOCK_FOLDER = os.path.dirname(block.__file__) + "/"


class Registry:
    def handlers(self) -> list[HostHandler]:
        return [HostHandler(name, kind) for kind, handlers in _declarations.HANDLERS.items() for name in handlers]


class Describe:
    def manifest(self) -> str:
        return _json.dumps(_declarations.manifest())


class Actions:
    def call(self, context: HostContext, name: str, input: str) -> str:
        def work() -> str:
            handler = _handler("action", name)
            try:
                given = _types.convert(handler.input, _json.loads(input))
            except _types.Mismatch as error:
                raise HandlerError("invalid_request", str(error)) from error
            return _json.dumps(handler.call(given, _context(context)))

        return _answered(work)


class Hooks:
    def receive(self, context: HostContext, name: str, request: HostRequest) -> HostResponse | None:
        def work() -> HostResponse | None:
            handler = _handler("hook", name)
            headers, body = Headers(request.headers), bytes(request.body)
            given = Request(request.method, request.path, request.query, headers, body, request.remote_address)
            answer = handler.call(given, _context(context))
            if answer is None:
                return None
            if not isinstance(answer, Response):
                answer = Response(headers={"content-type": "application/json"}, body=_json.dumps(answer))
            return HostResponse(*answer.parts())

        return _answered(work)


class Subscriptions:
    def deliver(self, context: HostContext, name: str, event: HostEvent, config: str) -> None:
        def work() -> None:
            handler = _handler("subscription", name)
            given = Event(event.id, event.topic, _json.loads(event.payload), event.occurred_at, event.attempt)
            handler.call(given, _json.loads(config), _context(context))

        return _answered(work)


def _handler(kind: str, name: str) -> _declarations.Handler:
    handler = _declarations.HANDLERS[kind].get(name)
    if handler is None:
        raise HandlerError("not_found", f"The block has no {kind} `{name}`.")
    return handler


def _context(context: HostContext) -> Context:
    actor = context.actor
    known = None if actor is None else Actor(actor.user_id, actor.api_key_id, actor.via)
    return Context(context.call_id, known, context.block)


def _answered(work: Callable[[], Any]) -> Any:
    """What the work answers; an exception is the error result with its code, or a failed action."""
    _begin()
    try:
        return work()
    except HandlerError as error:
        details = None if error.details is None else _details(error.details)
        raise Err(HostError(error.code, error.message, details)) from None
    except BaseException as error:
        # SystemExit too: its way out would be a trap without a word.
        _log_traceback(error)
        raise Err(HostError("action_failed", str(error) or type(error).__name__, None)) from None
    finally:
        # The host takes so many bytes and no more; that is no reason to fail here.
        with contextlib.suppress(OSError):
            sys.stdout.flush()


def _begin() -> None:
    """Replaces the state that must not come from the build's memory."""
    _random.begin_call()
    # If a call is stopped, its log still has the lines from before.
    sys.stdout.reconfigure(line_buffering=True)


def _details(details: Any) -> str:
    try:
        return _json.dumps(details)
    except (TypeError, ValueError):
        return _json.dumps(str(details))


def _log_traceback(error: BaseException) -> None:
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename in (__file__, _declarations.__file__):
        place = place.tb_next
    # The SDK's own frames say nothing to an author, unless there are no others.
    lines = traceback.format_exception(type(error), error, place or error.__traceback__)
    text = "".join(lines).replace(_BLOCK_FOLDER, "")
    text = text.encode(errors="replace")[-_TRACEBACK_BYTES_MAX:].decode(errors="replace")
    if _host.has("log"):
        log.error(f"{type(error).__name__} in a handler", traceback=text)
    else:
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr)


def _keep_sources() -> None:
    """Keeps the lines of the block's own modules, which tracebacks show; the component has no files to read them from."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and file.endswith(".py") and "/python3" not in file and "wit_world" not in file:
            lines = linecache.getlines(file)
            # Without a time it is not looked up again.
            linecache.cache[file] = (sum(map(len, lines)), None, lines, file)


_declarations.resolve()
_declarations.manifest()
_keep_sources()
_random.end_build()
sys.setrecursionlimit(_RECURSION_MAX)
# Calls do not look for garbage among the objects of the build: that would touch most of its memory, which a call gets page by page.
gc.collect()
gc.freeze()
