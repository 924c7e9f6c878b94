"""Records. Every call is checked against what the manifest asks for; `data` has to stand in its `requires.plugins`.

Records are dicts. What the service refuses raises `HandlerError`; uncaught it fails the call with the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from . import _host, _json

Record = dict[str, Any]


class Pagination(TypedDict):
    """Where a page lies in its list. The totals are None where the query said `"count": "none"`.

    Pages with `after` or `before` have `startCursor` and `endCursor`, and neither `page` nor `totalPages`; others have no cursors.
    """

    page: int
    pageSize: int
    totalCount: int | None
    totalPages: int | None
    hasNextPage: bool
    hasPreviousPage: bool
    startCursor: str | None
    endCursor: str | None


class Page(TypedDict):
    """A page of records."""

    data: list[Record]
    pagination: Pagination


class Aggregate(TypedDict):
    """What an aggregate found; None where no record matches."""

    value: Any
    filteredCount: int


class Upserted(TypedDict):
    """What an upsert did."""

    created: bool
    data: Record


def query(object: str, query: Mapping[str, Any] | None = None) -> Page:
    """Lists records.

    `{ search?, filters?: [{ field, operator?, value? }], where?, sort?, page?, pageSize?, limit?, offset?, after?, before?, select?,
    expand?, count? }`. `where` is a condition, with and, or, not and relations. `after` and `before` are cursors, instead of `page`
    and `offset`; `"after": ""` reads the first page. `pagination` then has `startCursor` and `endCursor`.
    """
    return _call("query", object, _json.dumps(query or {}))


def get(object: str, id: str, *, expand: str | None = None) -> Record | None:
    """One record, if the block may see it; `expand` names relation keys, comma-separated."""
    options = None if expand is None else _json.dumps({"expand": expand})
    return _call("get", object, id, options)


def aggregate(object: str, query: Mapping[str, Any]) -> Aggregate:
    """Computes over the records that a list would count.

    `{ fn: "count" | "sum" | "avg" | "min" | "max", field?, search?, filters?, where? }`
    """
    return _call("aggregate", object, _json.dumps(query))


def create(object: str, values: Mapping[str, Any] | Any) -> Record:
    """The new record."""
    return _call("create", object, _json.dumps(values))


def create_many(object: str, values: Iterable[Mapping[str, Any] | Any]) -> list[str]:
    """Several new records, all or none; their ids in order."""
    return _call("create_many", object, _json.dumps(list(values)))["ids"]


def update(object: str, id: str, changes: Mapping[str, Any] | Any) -> Record:
    """The record as it is afterwards. A numeric field takes `{ "$inc": n }` and `{ "$dec": n }`."""
    return _call("update", object, id, _json.dumps(changes))


def upsert(object: str, values: Mapping[str, Any] | Any, on_conflict: Iterable[str]) -> Upserted:
    """Inserts a record, or updates the one with the same values of the unique fields `on_conflict`."""
    return _call("upsert", object, _json.dumps(values), list(on_conflict))


def delete(object: str, id: str) -> bool:
    """Whether there was one to delete."""
    return _host.call(_host.interface("data").delete, object, id)


def delete_many(object: str, ids: Iterable[str]) -> list[str]:
    """The ids of those that were deleted."""
    return _host.call(_host.interface("data").delete_many, object, list(ids))


def link(object: str, id: str, relation: str, ids: Iterable[str]) -> int:
    """Links a record with others by a many_to_many relation key: how many links are new."""
    return _host.call(_host.interface("data").link, object, id, relation, list(ids))


def unlink(object: str, id: str, relation: str, ids: Iterable[str]) -> int:
    """Removes links: how many there were."""
    return _host.call(_host.interface("data").unlink, object, id, relation, list(ids))


def batch(operations: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Several writes, all or none; their results in order.

    `[{ op: "create" | "update" | "upsert" | "delete" | "link" | "unlink", object, id?, values?, onConflict?, relation?, ids? }]`;
    `{ "$ref": "0.id" }` is a field of an earlier result. A result is a record, `{ created, data }` of an upsert, the number of links, True
    for a deleted record, None for a missing one.
    """
    return _call("batch", _json.dumps(list(operations)))


def _call(name: str, *arguments: Any) -> Any:
    """A function whose answer is JSON, or nothing."""
    answer = _host.call(getattr(_host.interface("data"), name), *arguments)
    return None if answer is None else _json.loads(answer)
