"""With 100,000 sessions the order of a list page comes from an index, never from a sort."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from sessions_app.listing import SessionQuery, Sort, list_sessions
from sessions_app.models import Session
from sessions_app.selectors import Lock, get_session
from tests.factories import Cast, make_session

COUNT = 100_000
MULTIPLY = """
INSERT INTO sessions_app_session ({columns})
SELECT {values} FROM sessions_app_session, generate_series(1, %s) AS n
"""
FRESH = {
    "id": "gen_random_uuid()",
    "created_at": "created_at - n * interval '1 minute'",
    "activity_at": "activity_at - (n * 7919 %% 100000) * interval '1 minute'",
}


def multiply() -> None:
    """Copies of the one session there is, each with its own id and times."""
    columns = [field.column for field in Session._meta.local_concrete_fields if not field.generated]
    values = [FRESH.get(column, f'"{column}"') for column in columns]
    quoted = ", ".join(f'"{column}"' for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(MULTIPLY.format(columns=quoted, values=", ".join(values)), [COUNT])
        cursor.execute("ANALYZE sessions_app_session")


@pytest.mark.slow
def test_a_list_page_of_100_000_sessions_is_read_from_its_index(cast: Cast) -> None:
    make_session(cast)
    multiply()
    member = cast.access("member")
    for sort, index in [
        (Sort.CREATED, "session_by_creation"),
        (Sort.UPDATED, "session_by_activity"),
        (Sort.NAME, "session_by_name"),
    ]:
        first = list_sessions(
            access=member, query=SessionQuery(cast.workspace.pk, sort=sort, limit=30)
        )
        assert len(first.rows) == 30
        assert first.next_page
        for page in ("", first.next_page):
            query = SessionQuery(cast.workspace.pk, sort=sort, limit=30, page=page)
            with connection.execute_wrapper(explain := Explain()):
                list_sessions(access=member, query=query)
            assert len(explain.plans) == 1
            assert index in explain.plans[0]
            assert "Sort" not in explain.plans[0]
            assert "Seq Scan on sessions_app_session" not in explain.plans[0]


@pytest.mark.slow
def test_a_text_is_found_among_100_000_sessions_without_looking_at_all(cast: Cast) -> None:
    make_session(cast, title="Lighthouse log")
    multiply()
    rare = make_session(cast, title="Harbour survey")
    Session.objects.filter(pk=rare.pk).update(created_at=rare.created_at - timedelta(days=900))
    member = cast.access("member")
    for text, found, tries in [("lighthouse", 31, 1), ("harbour", 1, 2), ("nowhere", 0, 2)]:
        query = SessionQuery(cast.workspace.pk, query=text, limit=31)
        with connection.execute_wrapper(explain := Explain()):
            page = list_sessions(access=member, query=query)
        assert len(page.rows) == found
        assert len(explain.plans) == tries
        assert "session_by_creation" in explain.plans[0]
        assert all("session_by_text" in plan for plan in explain.plans[1:])
        assert all("Seq Scan on sessions_app_session" not in plan for plan in explain.plans)


@pytest.mark.slow
def test_a_session_is_held_with_its_parent_by_its_key(cast: Cast) -> None:
    session = make_session(cast, parent_id=make_session(cast).pk)
    multiply()
    member = cast.access("member")
    with connection.execute_wrapper(explain := Explain()):
        get_session(access=member, session_id=session.pk, lock=Lock.WITH_PARENT)
    assert len(explain.plans) == 1
    assert "Seq Scan" not in explain.plans[0]


class Explain:
    """Keeps the plan of each SELECT that goes by."""

    def __init__(self) -> None:
        self.plans: list[str] = []

    def __call__(self, execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        if sql.startswith("SELECT"):
            with context["connection"].connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN {sql}", params)
                self.plans.append("\n".join(row[0] for row in cursor.fetchall()))
        return execute(sql, params, many, context)


@pytest.mark.django_db
def test_the_plan_is_really_looked_at(cast: Cast) -> None:
    make_session(cast)
    with connection.execute_wrapper(explain := Explain()):
        list(Session.objects.order_by("preview_text"))
    assert "Sort" in explain.plans[0]
