"""Query strings and pages: `{data, next_page, has_more}`, with opaque cursors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import orjson
from django.db.models import Model, QuerySet
from django.http import QueryDict
from rest_framework import serializers

from core.api.fields import QuerySerializer, Text, Whole
from core.cursors import decode_cursor, decode_key, encode_cursor

PAGE_LIMIT, PAGE_LIMIT_MAX = 20, 100
T = TypeVar("T")
Row = TypeVar("Row", bound=Model)


class PageQuery(QuerySerializer):
    """What every list takes."""

    limit = Whole(
        min_value=1, max_value=PAGE_LIMIT_MAX, default=PAGE_LIMIT, help_text="Rows in a page."
    )
    page = Text(
        default="", max_length=1_000, help_text="`next_page` of the last answer, as it came."
    )


class NoQuery(QuerySerializer):
    """What takes no parameters."""


class PageObject(serializers.Serializer[Any]):
    # Beside its `data`. (No docstring: it would be the description of every page.)
    next_page = serializers.CharField(allow_null=True)
    has_more = serializers.BooleanField()


def read_query(query: QueryDict, shape: type[QuerySerializer]) -> dict[str, Any]:
    """The parameters in the types of `shape`. Raises ValidationError, for unknown ones too.

    A list may be written `name[]=a&name[]=b` or `name=a&name=b`.
    """
    serializer = shape()
    lists = {
        name
        for name, field in serializer.fields.items()
        if isinstance(field, serializers.ListField)
    }
    values: dict[str, Any] = {}
    for sent, items in query.lists():
        name = f"{sent}[]" if f"{sent}[]" in lists else sent
        if name in lists:
            values[name] = [*values.get(name, []), *items]
        elif len(items) > 1:
            raise serializers.ValidationError(
                {name: [serializers.ErrorDetail("Send it once.", code="repeated_parameter")]}
            )
        else:
            values[name] = items[0]
    return read_shape(values, shape)


def read_shape(data: Any, shape: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    """`data` in the types of `shape`. Raises ValidationError with the paths of what is wrong."""
    serializer = shape(data=data)
    serializer.is_valid(raise_exception=True)
    validated: dict[str, Any] = serializer.validated_data
    return validated


def page_json(data: Iterable[Any], next_page: str | None) -> dict[str, Any]:
    return {"data": list(data), "next_page": next_page, "has_more": next_page is not None}


def page_of(
    rows: Iterable[T],
    *,
    key: Callable[[T], str],
    present: Callable[[T], Any],
    query: Mapping[str, Any],
    scope: Sequence[str],
) -> dict[str, Any]:
    """A page of a short list that is in memory, in the order of a unique `key`.

    The cursor is the last key, bound to `scope` (which list this is).
    """
    fingerprint = orjson.dumps(list(scope)).decode()
    after = ""
    if query["page"]:
        (after,) = decode_cursor(fingerprint, query["page"], [str])
    following = sorted((row for row in rows if key(row) > after), key=key)
    kept = following[: query["limit"]]
    more = len(following) > len(kept)
    return page_json(
        map(present, kept), encode_cursor(fingerprint, [key(kept[-1])]) if more else None
    )


def page_of_rows(
    rows: QuerySet[Row],
    *,
    key: str = "pk",
    present: Callable[[Row], Any],
    query: Mapping[str, Any],
    scope: Sequence[str],
) -> dict[str, Any]:
    """A page of a list in the database, in the order of a unique column of ids: one statement,
    which reads no more than the page. `key`: the column's name, as an attribute too.
    """
    fingerprint = orjson.dumps(list(scope)).decode()
    if query["page"]:
        rows = rows.filter(**{f"{key}__gt": decode_key(fingerprint, query["page"])})
    found = list(rows.order_by(key)[: query["limit"] + 1])
    kept = found[: query["limit"]]
    if len(found) == len(kept):
        return page_json(map(present, kept), None)
    last: UUID = getattr(kept[-1], key)
    return page_json(map(present, kept), encode_cursor(fingerprint, [last.hex]))
