"""JSON, with what Python programs hold beside dicts and lists."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from typing import Any


def dumps(value: Any) -> str:
    """JSON text. Dataclasses become objects, dates and times ISO 8601, sets lists, decimals and UUIDs strings.

    Raises TypeError or ValueError for what JSON cannot hold, which NaN is as well.
    """
    return _ENCODER.encode(value)


def loads(text: str | bytes) -> Any:
    return json.loads(text)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    raise TypeError(f"A value of the type {type(value).__name__} cannot be written as JSON.")


#: `json.dumps` would make an encoder for each text.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)
