"""Starts one PostgreSQL for the whole run, before Django's settings are read, and stops it.

Loaded by `-p`: a `conftest.py` would come too late. The workers of xdist inherit its address.
`SEDERUNT_TEST_DATABASE_URL` names another server to use instead.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from core.embedded_postgres import EmbeddedPostgres

# Nothing here has to outlive a power cut, and thousands of small commits should be quick.
OPTIONS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "2GB",
}
_started: list[tuple[EmbeddedPostgres, Path]] = []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None]:
    # A wrapper runs before pytest-django's own, which reads the settings.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _start()
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    _stop()


@atexit.register  # a run that breaks off while it cleans up never gets to unconfigure
def _stop() -> None:
    while _started:
        server, home = _started.pop()
        server.stop()
        shutil.rmtree(home, ignore_errors=True)


def _start() -> None:
    home = Path(tempfile.mkdtemp(prefix="sederunt-tests-"))
    (home / "static").mkdir()  # whitenoise warns where there is none
    url = os.environ.get("SEDERUNT_TEST_DATABASE_URL", "")
    if not url:
        server = EmbeddedPostgres(home / "postgres", options=OPTIONS)
        _started.append((server, home))
        url = server.start()
    os.environ.update(
        SEDERUNT_ENV="test",
        SEDERUNT_HOME=str(home),
        DATABASE_URL=url,
        DATABASE_DIRECT_URL=url,
    )
    # What a developer's shell exports must not leak into the tests.
    for name in ("REDIS_URL", "SEDERUNT_SECRET_KEY", "SEDERUNT_ENCRYPTION_KEY", "DEBUG"):
        os.environ.pop(name, None)
