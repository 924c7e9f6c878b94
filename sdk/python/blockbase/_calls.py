"""What handlers get and give: values without anything of the component model."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass
from typing import Any

from . import _json
from ._errors import HandlerError
from ._headers import Given, Headers


@dataclass(frozen=True)
class Actor:
    """Who made the call."""

    user_id: str | None
    api_key_id: str | None
    #: How they showed who they are, as `session`.
    via: str


@dataclass(frozen=True)
class Context:
    """What is true of one call."""

    call_id: str
    #: None for the system and for anonymous callers.
    actor: Actor | None
    #: The block's name.
    block: str


@dataclass(frozen=True)
class Event:
    """An event that a subscription gets."""

    id: str
    topic: str
    payload: Any
    #: ISO 8601, in UTC.
    occurred_at: str
    #: 1 at the first try.
    attempt: int


@dataclass(frozen=True)
class Request:
    """A third party's request to a hook."""

    method: str
    path: str
    #: What stands behind the `?`, as it came.
    query: str
    headers: Headers
    #: As it came: signatures are of these bytes.
    body: bytes
    remote_address: str

    def text(self) -> str:
        try:
            return self.body.decode()
        except UnicodeDecodeError as error:
            raise HandlerError("invalid_request", "The body is not UTF-8.") from error

    def json(self) -> Any:
        try:
            return _json.loads(self.text())
        except ValueError as error:
            raise HandlerError("invalid_request", "The body is not JSON.") from error

    def parameters(self) -> dict[str, list[str]]:
        """The query's parameters."""
        return urllib.parse.parse_qs(self.query, keep_blank_values=True)


@dataclass
class Response:
    """A hook's answer. A body that is neither text nor bytes is written as JSON."""

    status: int = 200
    headers: Given = None
    body: Any = b""

    def parts(self) -> tuple[int, list[tuple[str, bytes]], bytes]:
        """Status, headers and body as they go over the wire."""
        headers = list(Headers(self.headers))
        if isinstance(self.body, (bytes, bytearray, memoryview)):
            kind, body = None, bytes(self.body)
        elif isinstance(self.body, str):
            kind, body = b"text/plain; charset=utf-8", self.body.encode()
        else:
            kind, body = b"application/json", _json.dumps(self.body).encode()
        if kind is not None and all(name.lower() != "content-type" for name, _ in headers):
            headers.append(("content-type", kind))
        return self.status, headers, body
