"""What a block written in Python imports.

A block is a file `block.py` with decorated functions::

    from dataclasses import dataclass
    from blockbase import action

    @dataclass
    class Greet:
        name: str

    @action(description="Greets somebody.")
    def greet(input: Greet):
        return {"message": f"Hello, {input.name}!"}
"""

from . import config, data, deadline, http, log, secrets
from ._calls import Actor, Context, Event, Request, Response
from ._declarations import action, hook, subscription
from ._errors import HandlerError, MissingPlugin
from ._headers import Headers

__all__ = [
    "Actor",
    "Context",
    "Event",
    "HandlerError",
    "Headers",
    "MissingPlugin",
    "Request",
    "Response",
    "action",
    "config",
    "data",
    "deadline",
    "hook",
    "http",
    "log",
    "secrets",
    "subscription",
]
