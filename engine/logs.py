"""The engine's log lines: names and ids, never people's text.

The only door to structlog, so that no line is written before this is set. It is not a setting,
for a web process needs none of it: importing it is an eighth of a process's start.
"""

from __future__ import annotations

import structlog
from structlog.typing import FilteringBoundLogger

# A traceback names lines, never the values of variables: prompts and credentials are among them.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.StackInfoRenderer(),
        structlog.dev.set_exc_info,
        structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        ),
    ]
)


def get_logger(name: str) -> FilteringBoundLogger:
    logger: FilteringBoundLogger = structlog.get_logger(name)
    return logger
