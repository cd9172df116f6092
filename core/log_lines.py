"""How a line of the log is written: without the secrets that stand in addresses."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

# It begins at the mark: a pattern that could begin anywhere before it takes, on a line of nothing
# but slashes, the square of its length.
_QUERY = re.compile(r"\?[^\s\"']+")


class LineFormatter(logging.Formatter):
    """`secret_paths`: beginnings of addresses whose rest lets somebody in, such as the links in
    mails. Django notes the address of whatever it refuses, and a link that was refused once for a
    password too short is as good as before. A server notes a socket's address with its query, in
    which some clients put their key.
    """

    def __init__(self, fmt: str, secret_paths: Sequence[str], **more: Any) -> None:
        super().__init__(fmt, **more)
        beginnings = "|".join(map(re.escape, secret_paths))
        self._secret = re.compile(rf"({beginnings})[^\s\"'<>]+")

    def format(self, record: logging.LogRecord) -> str:
        line = self._secret.sub(r"\1…", super().format(record))
        return _QUERY.sub("?…", line)
