"""Bounds of what people and keys send. Each is a setting, and is told in its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.conf import settings

from core.errors import InvalidInput, TooLarge
from core.text import find_unstorable, has_visible

Content = list[dict[str, str]]


def require_storable(value: Any, param: str) -> None:
    """Raises InvalidInput with the path of the first NUL or lone surrogate."""
    if (path := find_unstorable(value, param)) is not None:
        raise InvalidInput(
            "invalid_text", "Send text without NUL and without half surrogate pairs.", param=path
        )


def require_title(title: str, *, param: str = "title") -> str:
    require_storable(title, param)
    limit = settings.TITLE_MAX_CHARACTERS
    if len(title) > limit:
        raise InvalidInput(
            "title_too_long",
            f"A title has at most {limit} characters; this one has {len(title)}.",
            param=param,
        )
    return title.strip() if has_visible(title) else ""


def require_content(content: str | Sequence[Mapping[str, Any]], *, param: str) -> Content:
    """Text blocks with at least one visible character, within PROMPT_MAX_CHARACTERS."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    kept: Content = []
    for index, block in enumerate(blocks):
        if block.get("type") != "text" or not isinstance(block.get("text"), str):
            raise InvalidInput(
                "invalid_content",
                "A block is {type: text, text}.",
                param=f"{param}[{index}]",
            )
        kept.append({"type": "text", "text": block["text"]})
    for index, block in enumerate(kept):
        place = param if isinstance(content, str) else f"{param}[{index}].text"
        require_storable(block["text"], place)
    length = sum(len(block["text"]) for block in kept)
    if not any(has_visible(block["text"]) for block in kept):
        raise InvalidInput("content_required", "Write something to send.", param=param)
    if length > settings.PROMPT_MAX_CHARACTERS:
        raise TooLarge(
            "prompt_too_long",
            f"A prompt has at most {settings.PROMPT_MAX_CHARACTERS} characters;"
            f" this one has {length}.",
            param=param,
        )
    return kept


def require_origin(origin: Mapping[str, Any] | None, default_type: str) -> dict[str, Any]:
    value = dict(origin or {"type": default_type})
    require_storable(value, "origin")
    kind = value.get("type")
    if not isinstance(kind, str) or not has_visible(kind) or len(kind) > 100:
        raise InvalidInput(
            "invalid_origin",
            "origin.type is a text of 1 to 100 characters.",
            param="origin.type",
        )
    size = len(orjson.dumps(value))
    if size > settings.ORIGIN_MAX_BYTES:
        raise TooLarge(
            "origin_too_large",
            f"An origin has at most {settings.ORIGIN_MAX_BYTES} bytes of JSON; this has {size}.",
            param="origin",
        )
    return value


def require_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    """At most 16 pairs of texts, 64 and 512 characters."""
    require_storable(dict(metadata), "metadata")
    if len(metadata) > settings.METADATA_MAX_PAIRS:
        raise InvalidInput(
            "metadata_too_large",
            f"Metadata has at most {settings.METADATA_MAX_PAIRS} pairs.",
            param="metadata",
        )
    for key, value in metadata.items():
        is_text = isinstance(value, str)
        if (
            not is_text
            or not 0 < len(key) <= settings.METADATA_KEY_MAX_CHARACTERS
            or len(value) > settings.METADATA_VALUE_MAX_CHARACTERS
        ):
            raise InvalidInput(
                "invalid_metadata",
                f"A key has 1 to {settings.METADATA_KEY_MAX_CHARACTERS} characters, a value is a "
                f"text of at most {settings.METADATA_VALUE_MAX_CHARACTERS}.",
                param=f"metadata.{key[:64]}",
            )
    return dict(metadata)
