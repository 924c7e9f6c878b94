"""Lines for the block's log; `log` has to stand in the manifest's `requires.plugins`. `print` gets there without it.

Keyword arguments become the line's fields: `log.info("sent", order=id)`.
"""

from __future__ import annotations

import json
from typing import Any

from . import _host


def error(message: str, /, **fields: Any) -> None:
    log("error", message, **fields)


def warn(message: str, /, **fields: Any) -> None:
    log("warn", message, **fields)


def info(message: str, /, **fields: Any) -> None:
    log("info", message, **fields)


def debug(message: str, /, **fields: Any) -> None:
    log("debug", message, **fields)


def trace(message: str, /, **fields: Any) -> None:
    log("trace", message, **fields)


def log(level: str, message: str, /, **fields: Any) -> None:
    """A line of any level: error, warn, info, debug, trace."""
    # A field that JSON cannot hold is no reason to fail a call.
    _host.interface("log").log(level, message, json.dumps(fields, default=str, ensure_ascii=False) if fields else None)
