"""Type annotations as JSON Schema 2020-12, and JSON as values of those types."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import json
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from typing import Any

Schema = dict[str, Any]


class Unsupported(TypeError):
    """An annotation that no JSON Schema is derived from."""


class Mismatch(ValueError):
    """JSON that is not of its type; the message begins with where."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path or '/'}: {message}")


_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
}

#: Types that JSON holds as text, and how they are read.
_TEXT: dict[Any, tuple[Schema, Callable[[str], Any]]] = {
    datetime.datetime: (
        {"type": "string", "format": "date-time"},
        # Python before 3.11 does not read the Z.
        lambda text: datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text),
    ),
    datetime.date: ({"type": "string", "format": "date"}, datetime.date.fromisoformat),
    uuid.UUID: ({"type": "string", "format": "uuid"}, uuid.UUID),
    decimal.Decimal: ({"type": "string", "pattern": r"^-?\d+(\.\d+)?$"}, decimal.Decimal),
}

_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_SETS = (set, frozenset, collections.abc.Set)
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_UNIONS = (typing.Union, types.UnionType)


def schema(annotation: Any) -> Schema:
    """The JSON Schema of a type, which stands by itself."""
    derivation = _Derivation()
    derived = derivation.schema(annotation)
    if set(derived) == {"$ref"}:
        # The type contains itself; the schema of the whole is still one of an object.
        derived = dict(derivation.definitions[derived["$ref"].rpartition("/")[2]])
    if derivation.definitions:
        derived["$defs"] = derivation.definitions
    return derived


class _Derivation:
    """Derives one schema; types that contain themselves become definitions in it."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self.open: list[type] = []
        self.names: dict[type, str] = {}

    def schema(self, annotation: Any) -> Schema:
        annotation, notes = _bare(annotation)
        derived = dict(self.bare(annotation))
        for note in notes:
            if isinstance(note, str):
                derived["description"] = note
            elif isinstance(note, Mapping):
                derived.update(note)
        return derived

    def bare(self, annotation: Any) -> Schema:
        if _hashable(annotation) and annotation in _PLAIN:
            return _PLAIN[annotation]
        if _hashable(annotation) and annotation in _TEXT:
            return _TEXT[annotation][0]
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        kind = origin or annotation
        if kind is typing.Literal:
            return _choice(list(arguments))
        if kind in _UNIONS:
            return _either([self.schema(argument) for argument in arguments])
        if kind in _LISTS:
            return {"type": "array", **self.items(arguments)}
        if kind in _SETS:
            return {"type": "array", **self.items(arguments), "uniqueItems": True}
        if kind is tuple:
            if not arguments or len(arguments) == 2 and arguments[1] is Ellipsis:
                return {"type": "array", **self.items(arguments[:1])}
            places = [self.schema(argument) for argument in arguments]
            return {"type": "array", "prefixItems": places, "minItems": len(places), "maxItems": len(places)}
        if kind in _MAPPINGS:
            if arguments and arguments[0] is not str:
                raise Unsupported(f"{annotation!r}: the keys of JSON objects are text, so write dict[str, …].")
            values = self.schema(arguments[1]) if arguments else {}
            return {"type": "object", **({"additionalProperties": values} if values else {})}
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return _choice([member.value for member in kind])
        if _is_record(kind):
            return self.record(kind)
        raise Unsupported(f"{annotation!r} has no JSON Schema that could be derived.")

    def items(self, arguments: tuple[Any, ...]) -> Schema:
        items = self.schema(arguments[0]) if arguments else {}
        return {"items": items} if items else {}

    def record(self, kind: type) -> Schema:
        if kind in self.open:
            return {"$ref": f"#/$defs/{self.name(kind)}"}
        self.open.append(kind)
        properties: dict[str, Schema] = {}
        required = []
        for name, annotation, needed, default in _fields(kind):
            try:
                property_ = self.schema(annotation)
            except Unsupported as error:
                raise Unsupported(f"{kind.__name__}.{name}: {error}") from None
            if default is not dataclasses.MISSING:
                try:
                    # What a field begins with, as JSON has it; a default that JSON cannot hold is not told.
                    property_["default"] = json.loads(json.dumps(default, allow_nan=False))
                except (TypeError, ValueError):
                    pass
            properties[name] = property_
            if needed:
                required.append(name)
        self.open.pop()
        derived: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            derived["required"] = required
        description = _description(kind)
        if description:
            derived["description"] = description
        if kind not in self.names:
            return derived
        self.definitions[self.names[kind]] = derived
        return {"$ref": f"#/$defs/{self.names[kind]}"}

    def name(self, kind: type) -> str:
        if kind not in self.names:
            same = sum(known.__name__ == kind.__name__ for known in self.names)
            self.names[kind] = kind.__name__ if same == 0 else f"{kind.__name__}{same + 1}"
        return self.names[kind]


def convert(annotation: Any, value: Any, path: str = "") -> Any:
    """JSON as a value of a type: objects become dataclasses, texts dates, and so on down.

    Raises Mismatch where it is not of that type, or where a class refuses it with a ValueError.
    """
    annotation, _ = _bare(annotation)
    if annotation in (Any, object):
        return value
    if annotation in (None, type(None)):
        return _expect(value, value is None, path, "null is expected")
    if annotation is str:
        return _expect(value, isinstance(value, str), path, "text is expected")
    if annotation is bool:
        return _expect(value, isinstance(value, bool), path, "true or false is expected")
    if annotation is int:
        # 1.0 is an integer to JSON Schema.
        whole = isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and value.is_integer()
        return int(_expect(value, whole, path, "an integer is expected"))
    if annotation is float:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(_expect(value, number, path, "a number is expected"))
    if _hashable(annotation) and annotation in _TEXT:
        _expect(value, isinstance(value, str), path, "text is expected")
        try:
            return _TEXT[annotation][1](value)
        except (ValueError, decimal.InvalidOperation):
            raise Mismatch(path, f"{value!r} is not a valid {annotation.__name__}") from None
    kind, arguments = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if kind is typing.Literal:
        for choice in arguments:
            if type(choice) is type(value) and choice == value:
                return choice
        raise Mismatch(path, f"one of {', '.join(map(repr, arguments))} is expected")
    if kind in _UNIONS:
        return _convert_either(arguments, value, path)
    if kind in _LISTS or kind in _SETS or kind is tuple:
        return _convert_items(kind, arguments, value, path)
    if kind in _MAPPINGS:
        _expect(value, isinstance(value, dict), path, "an object is expected")
        inner = arguments[1] if arguments else Any
        if inner is Any:
            return value
        return {name: convert(inner, item, f"{path}/{name}") for name, item in value.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind(value)
        except ValueError:
            raise Mismatch(path, f"one of {', '.join(repr(member.value) for member in kind)} is expected") from None
    return _convert_record(kind, value, path)


def _convert_either(arguments: tuple[Any, ...], value: Any, path: str) -> Any:
    refusals = []
    for argument in arguments:
        try:
            return convert(argument, value, path)
        except Mismatch as refusal:
            if argument is not type(None):
                refusals.append(refusal)
    if len(refusals) == 1:
        raise refusals[0]
    raise Mismatch(path, "nothing that is expected here")


def _convert_items(kind: Any, arguments: tuple[Any, ...], value: Any, path: str) -> Any:
    _expect(value, isinstance(value, list), path, "an array is expected")
    if kind is tuple and arguments and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        _expect(value, len(value) == len(arguments), path, f"{len(arguments)} items are expected")
        inner = arguments
    else:
        item_type = arguments[0] if arguments else Any
        if item_type is Any and kind in _LISTS:
            return value
        inner = (item_type,) * len(value)
    items = [convert(argument, item, f"{path}/{index}") for index, (argument, item) in enumerate(zip(inner, value))]
    if kind is tuple:
        return tuple(items)
    if kind in _SETS:
        return frozenset(items) if kind is frozenset else set(items)
    return items


def _convert_record(kind: type, value: Any, path: str) -> Any:
    _expect(value, isinstance(value, dict), path, "an object is expected")
    fields = _fields(kind)
    known = {name for name, *_ in fields}
    for name in value:
        _expect(name, name in known, path, f"`{name}` is not known")
    members = {}
    for name, annotation, needed, _ in fields:
        if name in value:
            members[name] = convert(annotation, value[name], f"{path}/{name}")
        else:
            _expect(name, not needed, path, f"`{name}` is required")
    if not dataclasses.is_dataclass(kind):
        return members
    try:
        return kind(**members)
    except Mismatch:
        raise
    except ValueError as error:
        # `__post_init__` is where a class checks what a schema cannot say.
        raise Mismatch(path, str(error)) from error


def _expect(value: Any, holds: bool, path: str, message: str) -> Any:
    if not holds:
        raise Mismatch(path, message)
    return value


def _choice(values: list[Any]) -> Schema:
    names = {str: "string", bool: "boolean", int: "integer"}
    kinds = {type(value) for value in values}
    only = names.get(next(iter(kinds))) if len(kinds) == 1 else None
    return {**({"type": only} if only else {}), "enum": values}


def _either(schemas: list[Schema]) -> Schema:
    """One of several; of plain types the short form, which is easier to read in a document."""
    if all(set(one) == {"type"} and isinstance(one["type"], str) for one in schemas):
        return {"type": [one["type"] for one in schemas]}
    return {"anyOf": schemas}


def _bare(annotation: Any) -> tuple[Any, list[Any]]:
    """A type without what is written around it, and the notes of `Annotated`, the outermost last."""
    notes: list[Any] = []
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            annotation, *more = typing.get_args(annotation)
            notes = more + notes
        elif _is_marker(origin):
            annotation = typing.get_args(annotation)[0]
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation, notes


def _is_marker(origin: Any) -> bool:
    """`Required`, `NotRequired` and `ReadOnly`, which not every Python has."""
    names = ("Required", "NotRequired", "ReadOnly")
    return origin is not None and any(origin is getattr(typing, name, None) for name in names)


def _hashable(annotation: Any) -> bool:
    return isinstance(annotation, collections.abc.Hashable)


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or typing.is_typeddict(kind))


#: The fields of the dataclasses and TypedDicts that were looked at. Deriving a schema at the build looks at those of each input, so
#: calls need not resolve annotations again.
_FIELDS: dict[type, list[tuple[str, Any, bool, Any]]] = {}


def _fields(kind: type) -> list[tuple[str, Any, bool, Any]]:
    """Name, type, whether it is required, and default of each field of a dataclass or TypedDict."""
    known = _FIELDS.get(kind)
    if known is None:
        known = _FIELDS[kind] = _look_at_fields(kind)
    return known


def _look_at_fields(kind: type) -> list[tuple[str, Any, bool, Any]]:
    if not _is_record(kind):
        raise Unsupported(f"{kind!r} is neither a dataclass nor a TypedDict.")
    hints = typing.get_type_hints(kind, include_extras=True)
    if typing.is_typeddict(kind):
        return [(name, hint, _needed(kind, name, hint), dataclasses.MISSING) for name, hint in hints.items()]
    fields = []
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        # A dataclass as a default is not told; that the field may be left out is.
        needed = default is dataclasses.MISSING
        fields.append((field.name, hints[field.name], needed, default))
    return fields


def _needed(kind: Any, name: str, hint: Any) -> bool:
    # With annotations as text, a TypedDict does not see its own markers.
    while typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    origin = typing.get_origin(hint)
    if origin is not None and origin is getattr(typing, "NotRequired", None):
        return False
    if origin is not None and origin is getattr(typing, "Required", None):
        return True
    return name in kind.__required_keys__


def _description(kind: type) -> str | None:
    """The first paragraph of a class's own docstring, which a dataclass has by itself if nobody wrote one."""
    text = kind.__dict__.get("__doc__")
    if not text or dataclasses.is_dataclass(kind) and text.startswith(f"{kind.__name__}("):
        return None
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
