"""Fields of request shapes. They take the JSON type that they name, and nothing that looks alike.

A body's number sent as text, or a list sent as one value, is an error: guesses hide mistakes.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.ids import InvalidId, decode_id

BOUNDS = ("gt", "gte", "lt", "lte")


class Text(serializers.CharField):
    """A text as it is sent: neither trimmed nor made from a number."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("allow_blank", True)
        kwargs.setdefault("trim_whitespace", False)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("Use a text.", code="invalid_type")
        return str(super().to_internal_value(data))


class Flag(serializers.BooleanField):
    """true or false; in a query string the words."""

    def to_internal_value(self, data: Any) -> bool:
        if isinstance(data, bool):
            return data
        if isinstance(self.root, QuerySerializer) and data in {"true", "false"}:
            return bool(data == "true")
        raise serializers.ValidationError("Use true or false.", code="invalid_type")


class Whole(serializers.IntegerField):
    """A whole number; in a query string its ASCII digits."""

    def to_internal_value(self, data: Any) -> int:
        is_number = isinstance(data, int) and not isinstance(data, bool)
        if not is_number and not (isinstance(self.root, QuerySerializer) and _is_number(data)):
            raise serializers.ValidationError("Use a whole number.", code="invalid_type")
        return int(data)


@extend_schema_field({"type": "string", "pattern": "^[a-z]{3}_[0-9a-f]{32}$"})
class PublicId(serializers.Field[UUID, Any, str, Any]):
    """`ses_…`, as the UUID behind it."""

    def __init__(self, prefix: str, **kwargs: Any) -> None:
        self.prefix = prefix
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> UUID:
        try:
            return decode_id(self.prefix, data)
        except InvalidId as error:
            raise serializers.ValidationError(str(error), code="invalid_id") from None

    def to_representation(self, value: UUID) -> str:
        return f"{self.prefix}_{value.hex}"


class Moment(serializers.DateTimeField):
    """RFC 3339; without an offset it is UTC."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(default_timezone=UTC, **kwargs)

    def to_internal_value(self, value: Any) -> datetime:
        try:
            moment = super().to_internal_value(value)
            return moment.astimezone(UTC)
        except OverflowError:
            self.fail("invalid", format="RFC 3339")
            raise


class StrictSerializer(serializers.Serializer[Any]):
    # No docstring: OpenAPI would hand it to the world as the description of each request.
    # Refuses names that it does not know. `ignored` are taken and left alone; `not_yet` are
    # refused with a code of their own, unless they ask for what is the case anyway: null, or the
    # value in `NEUTRAL`. An empty `tools` is not among these, it asks for no tools.
    # `docs/compatibility.md` lists them.

    NEUTRAL: ClassVar[Mapping[str, Any]] = {"resources": [], "skills": [], "resume": False}

    ignored: ClassVar[Collection[str]] = frozenset()
    not_yet: ClassVar[Collection[str]] = frozenset()

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            self._refuse_names(data)
        return super().to_internal_value(data)

    def _refuse_names(self, data: Mapping[str, Any]) -> None:
        problems = {}
        for name in data.keys() - self.fields.keys() - set(self.ignored):
            if name not in self.not_yet:
                problems[name] = serializers.ErrorDetail(
                    "There is no such field.", code="unknown_field"
                )
            elif not self._is_neutral(name, data[name]):
                problems[name] = serializers.ErrorDetail(
                    "This server does not support this field yet; leave it out.",
                    code="not_supported_yet",
                )
        if problems:
            raise serializers.ValidationError(problems)

    def _is_neutral(self, name: str, value: Any) -> bool:
        neutral = self.NEUTRAL.get(name)
        return value is None or (type(value) is type(neutral) and value == neutral)


class QuerySerializer(StrictSerializer):
    """A query string. `named` adds parameters whose names Python cannot spell: `statuses[]`."""

    ignored: ClassVar[Collection[str]] = frozenset({"beta"})
    named: ClassVar[Mapping[str, serializers.Field[Any, Any, Any, Any]]] = {}

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        # Copies, as the metaclass makes of the fields that it finds itself.
        return {**super().get_fields(), **copy.deepcopy(dict(self.named))}

    def _refuse_names(self, data: Mapping[str, Any]) -> None:
        unknown = data.keys() - self.fields.keys() - set(self.ignored)
        if unknown:
            raise serializers.ValidationError(
                {
                    name: serializers.ErrorDetail(
                        "There is no such parameter.", code="unknown_parameter"
                    )
                    for name in sorted(unknown)
                }
            )


def range_of(name: str) -> dict[str, Moment]:
    """The four parameters of a range of times."""
    return {f"{name}[{bound}]": Moment(required=False) for bound in BOUNDS}


def bounds_in(values: Mapping[str, Any], name: str) -> dict[str, datetime]:
    """gt, gte, lt, lte → time, as far as they were sent."""
    keys = {bound: f"{name}[{bound}]" for bound in BOUNDS}
    return {bound: values[key] for bound, key in keys.items() if key in values}


def _is_number(data: Any) -> bool:
    if not isinstance(data, str) or len(data) > 19:
        return False
    digits = data.removeprefix("-")
    return digits.isascii() and digits.isdigit()
