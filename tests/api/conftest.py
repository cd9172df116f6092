"""Callers for the API tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from core.api.views import limiter
from core.ids import Prefix, encode_id
from tests.api.client import Caller
from tests.factories import Cast, make_session
from tests.journeys.server import Server


@pytest.fixture(autouse=True)
def fresh_budget() -> None:
    """The members of the cast are the same ones in every test, and what earlier tests sent in their
    names would decide which of a test's requests tells the shared budget.
    """
    limiter.cache_clear()


@pytest.fixture
def caller(cast: Cast) -> Callable[..., Caller]:
    return lambda name="", **headers: Caller(cast, name, **headers)


@pytest.fixture
def member(cast: Cast) -> Caller:
    return Caller(cast, "member")


@pytest.fixture
def key(cast: Cast) -> Caller:
    return Caller(cast, "workspace_key")


@pytest.fixture
def session_path(cast: Cast) -> str:
    return f"/v1/sessions/{make_session(cast, title='Survey').public_id}"


@pytest.fixture
def workspace_id(cast: Cast) -> str:
    return encode_id(Prefix.WORKSPACE, cast.workspace.pk)


@pytest.fixture(scope="session")
def running_server() -> Iterator[Server]:
    """Web, worker and PostgreSQL as `make run` starts them, for clients that know only HTTP."""
    server = Server(WEB="1", WORKERS="1")
    try:
        yield server.start()
    finally:
        server.remove()
