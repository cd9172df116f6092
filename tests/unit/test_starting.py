"""What a web process loads: each needless package delays its return after a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Needed by workers, or with a Redis, alone.
NOT_FOR_WEB = {"redis", "structlog", "pydantic_ai", "openai", "anthropic", "google.genai"}
LIST_LOADED = "import sys, config.asgi, config.urls; print(*sys.modules)"
LISTEN = "from core.bus.transport import current_way; current_way();"


def loaded(first: str, **environment: str) -> set[str]:
    given = {
        **os.environ,
        "SEDERUNT_ENV": "test",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "REDIS_URL": "",
        **environment,
    }
    command = [sys.executable, "-c", first + LIST_LOADED]
    told = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=True)
    return set(told.stdout.split())


@pytest.mark.slow
def test_a_web_process_loads_nothing_that_is_for_workers_or_for_redis() -> None:
    modules = loaded("")
    assert "sessions_app.streaming.hub" in modules
    assert modules & NOT_FOR_WEB == set()


@pytest.mark.slow
def test_redis_is_loaded_where_hints_travel_over_it() -> None:
    begin = "import config.asgi;" + LISTEN
    assert "redis" in loaded(begin, REDIS_URL="redis://127.0.0.1:1")
    assert "redis" not in loaded(begin)
