"""Requests to other servers; `http` has to stand in the manifest's `requires.plugins`, the origins in its permissions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _host, _json
from ._headers import Given, Headers


@dataclass(frozen=True)
class Response:
    """An answer, whatever its status."""

    status: int
    headers: Headers
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether the status is of the 200s."""
        return 200 <= self.status < 300

    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        return _json.loads(self.body)


def request(
    method: str, url: str, *, headers: Given = None, body: bytes | str | None = None, json: Any = None, timeout_ms: int | None = None
) -> Response:
    """Sends a request and waits for the whole answer; `json` is written as the body, with its content type.

    Raises `HandlerError` where the origin is not permitted or no answer comes.
    """
    interface = _host.interface("http")
    pairs = list(Headers(headers))
    if json is not None:
        if body is not None:
            raise TypeError("A request has a `body` or `json`, not both.")
        body = _json.dumps(json)
        if all(name.lower() != "content-type" for name, _ in pairs):
            pairs.append(("content-type", b"application/json"))
    bytes_ = body.encode() if isinstance(body, str) else body
    answer = _host.call(interface.send, interface.Request(method.upper(), url, pairs, bytes_, timeout_ms))
    return Response(answer.status, Headers(answer.headers), bytes(answer.body))


def get(url: str, *, headers: Given = None, timeout_ms: int | None = None) -> Response:
    return request("GET", url, headers=headers, timeout_ms=timeout_ms)


def post(
    url: str, *, headers: Given = None, body: bytes | str | None = None, json: Any = None, timeout_ms: int | None = None
) -> Response:
    return request("POST", url, headers=headers, body=body, json=json, timeout_ms=timeout_ms)
