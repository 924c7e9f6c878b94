"""Headers of requests and responses, as they are on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Union

Given = Union[Mapping[str, Union[str, bytes]], Iterable[tuple[str, Union[str, bytes]]], None]


class Headers:
    """Names without regard to case, values as bytes, several of one name in their order."""

    def __init__(self, given: Given = None) -> None:
        pairs = given.items() if isinstance(given, Mapping) else given or ()
        self._pairs = [(name, value.encode() if isinstance(value, str) else bytes(value)) for name, value in pairs]

    def get(self, name: str, default: str | None = None) -> str | None:
        """The first value of a name as text."""
        value = self.get_bytes(name)
        return default if value is None else value.decode("utf-8", "replace")

    def get_bytes(self, name: str) -> bytes | None:
        """The first value of a name as it came."""
        return next(iter(self.get_all(name)), None)

    def get_all(self, name: str) -> list[bytes]:
        """Every value of a name."""
        name = name.lower()
        return [value for known, value in self._pairs if known.lower() == name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get_bytes(name) is not None

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __repr__(self) -> str:
        return f"Headers({self._pairs!r})"
