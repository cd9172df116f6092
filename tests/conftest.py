"""Fixtures of all tests. PostgreSQL is real and comes from `tests.plugins.postgres`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.factories import Cast
from tests.staging import stage_cast

TESTS = Path(__file__).parent
# Folders whose every test drives processes of its own, and fixtures that make a test slow: they
# start processes, or commit what others shall see, after which every table is emptied.
SLOW_FOLDERS = {"journeys", "browser"}
SLOW_FIXTURES = {"transactional_db", "running_server", "aimock"}


@pytest.hookimpl(wrapper=True, tryfirst=True)  # marks before `-m` chooses, an order after all
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        database = item.get_closest_marker("django_db")
        if (
            _folder(item.path) in SLOW_FOLDERS
            or SLOW_FIXTURES & set(getattr(item, "fixturenames", ()))
            or (database is not None and database.kwargs.get("transaction"))
        ):
            item.add_marker(pytest.mark.slow)
    yield
    items[:] = spread_processes(items)


def spread_processes(items: list[pytest.Item]) -> list[pytest.Item]:
    """Files that start processes of their own stand evenly among the others: two of them at once
    have too few processor cores, and at the end one would run while nothing else is left.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    places: dict[Path, float] = {}
    for heavy in (True, False):
        kind = [path for path in files if (_folder(path) in SLOW_FOLDERS) is heavy]
        places |= {path: number / len(kind) for number, path in enumerate(kind)}
    return [item for path in sorted(files, key=places.__getitem__) for item in files[path]]


def _folder(path: Path) -> str:
    return path.relative_to(TESTS).parts[0]


@pytest.fixture
def cast(db: None) -> Cast:
    return stage_cast()


@pytest.fixture
def committed_cast(transactional_db: None) -> Cast:
    """For tests with several connections: what is made here is committed."""
    return stage_cast()
