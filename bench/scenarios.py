"""What is measured: each pair does the same job, ours through the services, the floor in SQL."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any

from django.db import connection, transaction

from catalog.services import create_demo_provider
from orgs.access import Access
from orgs.models import Workspace
from orgs.principals import access_for_user
from orgs.services.founding import create_organization, create_user, create_workspace
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.listing import SessionQuery, list_sessions
from sessions_app.models import Session
from sessions_app.services import attempts
from sessions_app.services.attempts import Lease
from sessions_app.services.sessions import NewSession, create_session
from sessions_app.services.turns import Prompt, submit_prompt
from sessions_app.web.sidebar import list_groups

Scenario = tuple[str, Callable[[], object], Callable[[], object], float, int, int]
TOKEN = uuid.UUID(int=1)
MESSAGE = "msg_" + "0" * 32


@dataclass(frozen=True, slots=True)
class World:
    access: Access
    workspace: Workspace
    long: Session
    queue: Session
    leases: list[Lease]
    events: int


def make_world(*, sessions: int, events: int) -> World:
    owner = create_user(email="ada@example.test", name="Ada Moreau", password="not for sign-in")
    organization = create_organization(name="Lindqvist Atlas", owner=owner)
    workspace = create_workspace(organization=organization, name="Field notes", administrator=owner)
    create_demo_provider(organization=organization)
    access = access_for_user(owner)
    leases = []
    for _ in range(16):
        session = _new(access, workspace)
        submit_prompt(access=access, session_id=session.pk, prompt=Prompt("go"))
        claim = attempts.claim_turn(worker="bench", token=TOKEN)
        assert claim
        leases.append(claim.lease)
    long = _new(access, workspace, "Lighthouse log")
    draft = Draft("agent.message_delta", {"message_id": MESSAGE, "text": "some words " * 3})
    for _ in range(events // 1_000):
        eventlog.append(session_id=long.pk, drafts=[draft] * 1_000)
    _multiply(long, sessions)
    rare = _new(access, workspace, "Harbour survey")
    long_ago = rare.created_at - timedelta(days=900)
    Session.objects.filter(pk=rare.pk).update(created_at=long_ago, activity_at=long_ago)
    return World(access, workspace, long, _new(access, workspace), leases, events)


def all_of(world: World) -> Iterator[Scenario]:
    yield _creating(world)
    yield _accepting(world)
    yield _listing(world)
    yield _opening_the_sidebar(world)
    for word in ("lighthouse", "harbour", "nowhere"):
        yield _filtering(world, word)
    yield _replaying(world)
    yield _streaming(world)


def _creating(world: World) -> Scenario:
    return (
        "create a session (service)",
        lambda: _new(world.access, world.workspace),
        lambda: _floor_append(world.queue),
        8.0,
        60,
        1,
    )


def _accepting(world: World) -> Scenario:
    fresh = iter([_new(world.access, world.workspace).pk for _ in range(100)])

    def accept() -> None:
        submit_prompt(access=world.access, session_id=next(fresh), prompt=Prompt("hello"))

    return (
        "accept a prompt (service)",
        accept,
        lambda: _floor_append(world.queue),
        8.0,
        60,
        1,
    )


def _listing(world: World) -> Scenario:
    query = SessionQuery(world.workspace.pk, limit=30)
    statement = """
        SELECT * FROM sessions_app_session WHERE workspace_id = %s AND origin_type = 'work'
        AND parent_id IS NULL AND archived_at IS NULL
        ORDER BY created_at DESC, id DESC LIMIT 31
    """
    return (
        "list 30 sessions",
        lambda: list_sessions(access=world.access, query=query),
        lambda: _fetch(statement, [world.workspace.pk]),
        8.0,
        100,
        30,
    )


def _opening_the_sidebar(world: World) -> Scenario:
    count = """
        SELECT count(*) FILTER (WHERE activity_at >= now() - interval '1 day'),
               count(*) FILTER (WHERE activity_at < now() - interval '7 days'), count(*)
        FROM sessions_app_session WHERE workspace_id = %s AND origin_type = 'work'
        AND parent_id IS NULL AND archived_at IS NULL
    """
    return (
        "open the sidebar",
        lambda: list_groups(access=world.access, workspace_id=world.workspace.pk, zone=UTC),
        lambda: _fetch(count, [world.workspace.pk]),
        8.0,
        10,
        1,
    )


def _filtering(world: World, word: str) -> Scenario:
    """In all sessions, in one, in none."""
    query = SessionQuery(world.workspace.pk, query=word, limit=30)
    statement = """
        SELECT * FROM sessions_app_session WHERE workspace_id = %s AND origin_type = 'work'
        AND parent_id IS NULL AND archived_at IS NULL AND find_key LIKE %s
        ORDER BY created_at DESC, id DESC LIMIT 31
    """
    return (
        f"filter by “{word}”",
        lambda: list_sessions(access=world.access, query=query),
        lambda: _fetch(statement, [world.workspace.pk, f"%{word}%"]),
        8.0,
        20,
        1,
    )


def _replaying(world: World) -> Scenario:
    statement = """
        SELECT jsonb_build_object('seq', seq, 'type', type, 'payload', payload)::text
        FROM sessions_app_event WHERE session_id = %s ORDER BY seq
    """

    def replay() -> None:
        after = 0
        while page := eventlog.read_after(session_id=world.long.pk, after=after, limit=1_000):
            after = page[-1].seq

    return (
        f"replay {world.events:,} events",
        replay,
        lambda: _fetch(statement, [world.long.pk]),
        3.0,
        10,
        world.events,
    )


def _streaming(world: World) -> Scenario:
    delta = Draft("agent.message_delta", {"message_id": MESSAGE, "text": "a few words "})
    groups = [(lease, [delta] * 30) for lease in world.leases]
    count = 30 * len(groups)

    def floor() -> None:
        with connection.cursor() as cursor, transaction.atomic():
            cursor.execute("CREATE TEMP TABLE IF NOT EXISTS bare (LIKE sessions_app_event)")
            cursor.execute(
                "INSERT INTO bare (session_id, seq, type, version, payload, created_at) "
                "SELECT gen_random_uuid(), n, %s, 1, %s::jsonb, clock_timestamp() "
                "FROM generate_series(1, %s) AS n",
                [delta.type, '{"message_id": "m", "text": "a few words "}', count],
            )

    return (
        f"journal: {count} deltas of 16 turns",
        lambda: attempts.record_groups(groups=groups),
        floor,
        3.0,
        40,
        count,
    )


def _new(access: Access, workspace: Workspace, title: str = "") -> Session:
    return create_session(access=access, new=NewSession(workspace_id=workspace.pk, title=title))


def _floor_append(session: Session) -> None:
    """Number and insert in one statement and commit: what any durable log has to do."""
    eventlog.append(
        session_id=session.pk,
        drafts=[Draft("session.updated", {"changes": {}})],
    )


def _fetch(statement: str, parameters: list[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def _multiply(session: Session, count: int) -> None:
    """Rows without a log, for the length of the lists alone."""
    fresh = {
        "id": "gen_random_uuid()",
        "head_seq": "0",
        "created_at": "created_at - n * interval '1 minute'",
        "activity_at": "activity_at - n * interval '1 minute'",
    }
    columns = [field.column for field in Session._meta.local_concrete_fields if not field.generated]
    quoted = ", ".join(f'"{column}"' for column in columns)
    values = ", ".join(fresh.get(column, f'"{column}"') for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO sessions_app_session ({quoted}) SELECT {values} "
            "FROM sessions_app_session, generate_series(1, %s) AS n WHERE id = %s",
            [count, session.pk],
        )
        cursor.execute("ANALYZE sessions_app_session, sessions_app_event")
