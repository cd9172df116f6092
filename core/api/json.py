"""JSON at the border: what no service could store is refused here, with its path."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import IO, Any, NoReturn

import orjson
from django.conf import settings
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from core.errors import InvalidInput, TooLarge
from core.text import is_storable, make_storable

MAX_DEPTH = 64
MAX_INTEGER = 2**63 - 1


class StrictJSONParser(BaseParser):
    """One JSON object in UTF-8, of at most BODY_MAX_BYTES, 64 levels deep, each name once, no
    NUL, no half surrogate pair, no NaN, no number beyond 64 bits. An empty body is `{}`.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raw = stream.read(limit + 1)
        if len(raw) > limit:
            raise TooLarge("body_too_large", f"A request body has at most {limit} bytes.")
        return parse_object(raw) if raw.strip() else {}


class ORJSONRenderer(BaseRenderer):
    """`orjson.Fragment` values pass through: JSON that the database or a record has finished."""

    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return b"" if data is None else orjson.dumps(data)


def parse_object(raw: bytes) -> dict[str, Any]:
    """Raises InvalidInput with the path of the first thing that may not be."""
    try:
        value = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise InvalidInput("invalid_json", f"Byte {error.start} is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(
            "invalid_json", f"The body is not JSON: {error.msg}, at character {error.pos}."
        ) from None
    except RecursionError:
        raise _too_deep("") from None
    except ValueError:  # an integer of thousands of digits
        raise InvalidInput("number_out_of_range", "Send integers within 64 bits.") from None
    if not isinstance(value, dict):
        raise InvalidInput("invalid_json", "Send one JSON object.")
    _check(value, "", 1)
    return value


class _TwiceNamed(dict[str, Any]):
    """An object in which `twice` stands more than once; where it stands is found out later."""

    twice = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    names = [name for name, _ in pairs]
    marked = _TwiceNamed(found)
    marked.twice = next(name for name in names if names.count(name) > 1)
    return marked


def _refuse_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is no JSON number", name, 0)


def _check(value: Any, path: str, depth: int) -> None:
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _out_of_range(path)
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise _out_of_range(path)
    elif isinstance(value, dict | list):
        if depth > MAX_DEPTH:
            raise _too_deep(path)
        _check_members(value, path, depth)


def _check_members(value: dict[str, Any] | list[Any], path: str, depth: int) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", depth + 1)
        return
    for name, item in value.items():
        shown = make_storable(name[:100])
        inner = f"{path}.{shown}" if path else shown
        _check_text(name, inner)
        _check(item, inner, depth + 1)
    if isinstance(value, _TwiceNamed):
        shown = make_storable(value.twice[:100])
        raise InvalidInput(
            "duplicate_field",
            "Send each name once in an object.",
            param=f"{path}.{shown}" if path else shown,
        )


def _check_text(text: str, path: str) -> None:
    if not is_storable(text):
        raise InvalidInput(
            "invalid_text", "Send text without NUL and without half surrogate pairs.", param=path
        )


def _out_of_range(path: str) -> InvalidInput:
    return InvalidInput("number_out_of_range", "Send finite numbers within 64 bits.", param=path)


def _too_deep(path: str) -> InvalidInput:
    return InvalidInput(
        "json_too_deep",
        f"Objects and lists nest at most {MAX_DEPTH} levels deep.",
        param=path[:200] or None,
    )
