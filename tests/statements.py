"""What a request asked the database, without the values that it asked with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.test.utils import CaptureQueriesContext

# Texts, casts to uuid, numbers, and what Django calls its savepoints.
_VALUE = re.compile(r"'(?:[^']|'')*'(?:::\w+)?|\b\d+\b|\"s\d+_x\d+\"")


@contextmanager
def statements() -> Iterator[list[str]]:
    """Filled when the block ends."""
    asked: list[str] = []
    with CaptureQueriesContext(connection) as captured:
        yield asked
    asked += [_VALUE.sub("?", query["sql"]) for query in captured.captured_queries]
