"""Fixtures of all tests. PostgreSQL is real and comes from `tests.plugins.postgres`."""

from __future__ import annotations

import pytest

from tests.factories import Cast, make_cast


@pytest.fixture
def cast(db: None) -> Cast:
    return make_cast()


@pytest.fixture
def committed_cast(transactional_db: None) -> Cast:
    """For tests with several connections: what is made here is committed."""
    return make_cast()
