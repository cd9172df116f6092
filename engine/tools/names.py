"""Tool names have dots; model providers refuse them. On their wire a dot is an underscore."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_CHARACTERS = 64  # what the strictest provider takes
_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


def is_valid(name: str) -> bool:
    return len(name) <= MAX_CHARACTERS and _NAME.fullmatch(name) is not None


def to_wire(name: str) -> str:
    return name.replace(".", "_")


def from_wire(wire: str, names: Iterable[str]) -> str:
    """The name among `names` that is written `wire`; `wire` itself if there is none."""
    return next((name for name in names if to_wire(name) == wire), wire)
