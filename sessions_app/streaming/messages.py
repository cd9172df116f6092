"""What a socket's client may say, parsed and bounded. Nonsense is InvalidInput with its path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson

from core.errors import InvalidInput
from core.ids import InvalidId, Prefix, decode_id
from sessions_app.streaming.positions import parse_position, parse_types

MESSAGE_MAX_BYTES: Final = 65_536
TREES_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class Subscribe:
    session_id: UUID
    after: int | None
    as_html: bool
    types: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """From a session, or from a workspace's rows."""

    session_id: UUID | None
    workspace_id: UUID | None


@dataclass(frozen=True, slots=True)
class Sidebar:
    """`resumes`: the client had rows before, and cannot know what changed meanwhile."""

    workspace_id: UUID
    resumes: bool


@dataclass(frozen=True, slots=True)
class Trees:
    """From now on the rows of a workspace are told with all that is below these roots."""

    workspace_id: UUID
    root_ids: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class Focus:
    session_id: UUID | None


@dataclass(frozen=True, slots=True)
class Ping:
    pass


Message = Subscribe | Unsubscribe | Sidebar | Trees | Focus | Ping
_Fields = dict[str, Any]


def parse_message(text: str) -> Message:
    """Raises InvalidInput."""
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise InvalidInput("invalid_json", "A message is one JSON object.") from None
    if not isinstance(fields, dict):
        raise InvalidInput("invalid_message", "A message is one JSON object.")
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in _PARSERS:
        known = ", ".join(_PARSERS)
        raise InvalidInput("unknown_message", f"`type` is one of {known}.", param="type")
    message = _PARSERS[kind](fields)
    if fields:
        name = min(fields)[:64]
        raise InvalidInput("unknown_field", f"`{kind}` has no such field.", param=name)
    return message


def _subscribe(fields: _Fields) -> Subscribe:
    after = fields.pop("after", None)
    as_ = fields.pop("as", "json")
    types = fields.pop("types", [])
    if as_ not in ("json", "html"):
        raise InvalidInput("invalid_value", "`as` is json or html.", param="as")
    if not isinstance(types, list):
        raise InvalidInput("invalid_value", "`types` is a list of event types.", param="types")
    return Subscribe(
        _id(fields, "session", Prefix.SESSION),
        None if after is None else parse_position(after, param="after"),
        as_ == "html",
        parse_types(types, param="types"),
    )


def _unsubscribe(fields: _Fields) -> Unsubscribe:
    if "workspace" in fields:
        return Unsubscribe(None, _id(fields, "workspace", Prefix.WORKSPACE))
    return Unsubscribe(_id(fields, "session", Prefix.SESSION), None)


def _sidebar(fields: _Fields) -> Sidebar:
    resumes = fields.pop("cursor", None) is not None
    return Sidebar(_id(fields, "workspace", Prefix.WORKSPACE), resumes)


def _trees(fields: _Fields) -> Trees:
    roots = fields.pop("sessions", None)
    if not isinstance(roots, list) or len(roots) > TREES_MAX:
        raise InvalidInput(
            "invalid_value", f"`sessions` is a list of at most {TREES_MAX} ids.", param="sessions"
        )
    named = frozenset(_id({"sessions": root}, "sessions", Prefix.SESSION) for root in roots)
    return Trees(_id(fields, "workspace", Prefix.WORKSPACE), named)


def _focus(fields: _Fields) -> Focus:
    if fields.get("session") is None:
        fields.pop("session", None)
        return Focus(None)
    return Focus(_id(fields, "session", Prefix.SESSION))


def _ping(_: _Fields) -> Ping:
    return Ping()


def _id(fields: _Fields, name: str, prefix: Prefix) -> UUID:
    try:
        return decode_id(prefix, fields.pop(name, None))
    except InvalidId as error:
        raise InvalidInput("invalid_id", str(error), param=name) from None


_PARSERS: Final[dict[str, Callable[[_Fields], Message]]] = {
    "subscribe": _subscribe,
    "unsubscribe": _unsubscribe,
    "sidebar": _sidebar,
    "trees": _trees,
    "focus": _focus,
    "ping": _ping,
}
