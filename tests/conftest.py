"""Fixtures of all tests. PostgreSQL is real and comes from `tests.plugins.postgres`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factories import Cast
from tests.staging import stage_cast

TESTS = Path(__file__).parent
# Folders whose every test drives processes of its own, and fixtures that make a test slow: they
# start processes, or commit what others shall see, after which every table is emptied.
SLOW_FOLDERS = {"journeys", "browser"}
SLOW_FIXTURES = {"transactional_db", "running_server", "aimock"}


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        database = item.get_closest_marker("django_db")
        if (
            item.path.relative_to(TESTS).parts[0] in SLOW_FOLDERS
            or SLOW_FIXTURES & set(getattr(item, "fixturenames", ()))
            or (database is not None and database.kwargs.get("transaction"))
        ):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def cast(db: None) -> Cast:
    return stage_cast()


@pytest.fixture
def committed_cast(transactional_db: None) -> Cast:
    """For tests with several connections: what is made here is committed."""
    return stage_cast()
