"""Pieces of what keeps a turn through an outage; `tests/journeys/test_outages.py` has the whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection

from core.db import in_db_thread
from engine.chores import GAP_MAX, Chores, Contact
from engine.database import is_down
from engine.ports import Tool, ToolContext, ToolOutput
from engine.tools.base import REPEATS_MAX, Arguments, function_tool
from sessions_app.models import Session, Wait
from sessions_app.services import attempts, settling
from sessions_app.services.attempts import leases
from tests.engine.conftest import Talk, probe_lines, text_of, working
from tests.factories import Cast, claim, expire, make_session, send
from tests.services.test_waits import Asking
from tests.streaming.conftest import direct_url

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_contact_lasts_from_its_beginning() -> None:
    contact = Contact()
    assert not contact.has_lasted(0)
    for second in range(6):
        contact.note(at(second))
    assert contact.has_lasted(5)
    assert not contact.has_lasted(5.1)


@pytest.mark.parametrize("seconds", [GAP_MAX.total_seconds() + 0.1, 3_600, -1])
def test_a_gap_begins_it_anew_and_so_does_a_clock_that_goes_back(seconds: float) -> None:
    contact = Contact()
    for second in range(6):
        contact.note(at(second))
    contact.note(at(5 + seconds))
    assert contact.has_lasted(0)
    assert not contact.has_lasted(0.1)


def test_an_error_begins_it_anew() -> None:
    contact = Contact()
    contact.note(at(0))
    contact.note(at(1))
    contact.lose()
    contact.note(at(2))
    assert not contact.has_lasted(0.1)


def test_after_an_outage_leases_are_left_alone_for_a_while(committed_cast: Cast) -> None:
    send(committed_cast, make_session(committed_cast))
    lease = claim().lease
    expire(lease.attempt_id)
    assert Chores(grace_seconds=60).do() == 0
    assert attempts.heartbeat(leases=[lease]).alive == {lease.attempt_id}
    expire(lease.attempt_id)
    assert Chores(grace_seconds=0).do() == 1


@contextmanager
def held_elsewhere(*sessions: Session) -> Iterator[None]:
    """Another connection holds these rows, as a long transaction would."""
    with psycopg.connect(direct_url()) as other:
        ids = [session.pk for session in sessions]
        other.execute("SELECT 1 FROM sessions_app_session WHERE id = ANY(%s) FOR UPDATE", [ids])
        yield
        other.rollback()


def test_a_session_that_is_held_keeps_up_neither_the_reaper_nor_other_questions(
    committed_cast: Cast,
) -> None:
    held, free = Asking(committed_cast), Asking(committed_cast)
    for asking in (held, free):
        asking.question(expires_in=-1)
        asking.suspend()
    stuck, lost = make_session(committed_cast), make_session(committed_cast)
    below = make_session(committed_cast, parent_id=stuck.pk)
    for session in (stuck, lost, below):
        send(committed_cast, session)
        expire(claim().lease.attempt_id)
    with held_elsewhere(held.session, stuck):
        assert Chores(grace_seconds=0).do() == 1
        assert list(Wait.objects.filter(status="open")) == list(held.session.waits.all())
        assert [not s.attempts.filter(status="running").exists() for s in (stuck, lost, below)] == [
            False,
            True,
            False,
        ]
    assert Chores(grace_seconds=0).do() == 2
    assert not Wait.objects.filter(status="open").exists()


def test_long_chores_are_no_gap_and_lost_turns_come_first(
    committed_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a worker whose expiries take seconds would never be sure of the database."""
    monkeypatch.setattr("engine.chores.GAP_MAX", timedelta(seconds=0.5))
    for _ in range(4):
        Asking(committed_cast).question(expires_in=-1)
    done: list[str] = []

    def slowly(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            done.append(name)
            time.sleep(0.3)
            return work(*arguments)

        return noted

    monkeypatch.setattr(settling, "_expire", slowly("expired", settling._expire))
    monkeypatch.setattr(leases, "_reap", slowly("reaped", leases._reap))
    chores = Chores(grace_seconds=1)
    chores.do()
    assert done == ["expired"] * 4
    send(committed_cast, make_session(committed_cast))
    expire(claim().lease.attempt_id)
    Asking(committed_cast).question(expires_in=-1)
    assert chores.do() == 1
    assert done[4:] == ["reaped", "expired"]


def test_a_server_that_turns_read_only_is_away_and_its_connection_given_up(
    committed_cast: Cast,
) -> None:
    session = make_session(committed_cast)
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    with pytest.raises(OperationalError) as caught:
        Session.objects.filter(pk=session.pk).update(title="Later")
    assert is_down(caught.value)
    connection.close_if_unusable_or_obsolete()
    Session.objects.filter(pk=session.pk).update(title="Now")
    session.refresh_from_db()
    assert session.title == "Now"


@pytest.mark.parametrize(
    ("address", "down"),
    [
        ("host=127.0.0.1 port=1", True),
        ("host=/nowhere", True),
        ("host=no-such-host.invalid", False),
    ],
)
def test_only_what_the_servers_own_place_says_shows_that_it_is_down(
    address: str, down: bool
) -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(f"{address} connect_timeout=2")
    assert is_down(caught.value) is down


async def test_a_call_that_must_not_run_twice_is_cut_while_the_turn_is_in_doubt(
    talk: Talk, home: Path
) -> None:
    append = {"tool": "probe.append", "args": {"line": "cut", "sleep_ms": 60_000}}
    lookup = {"tool": "probe.lookup", "args": {"sleep_ms": 1_000}}
    async with working(home, heartbeat_seconds=60) as worker:
        turn = await talk.script({"call": [append, lookup]}, {"say": "Went on."})
        await talk.until_type("agent.tool_use")
        (running,) = worker._running.values()
        running.tenure.doubt()
        await talk.until_type("agent.tool_use", 2)
        running.tenure.confirm()
        running.tenure.doubt()
        assert (await talk.ending(turn))["type"] == "turn.completed"
    first, second = await talk.events("agent.tool_result")
    assert (first["name"], first["outcome"]) == ("probe.append", "unknown")
    # One that only reads goes on, whoever else may read.
    assert (second["name"], second["outcome"]) == ("probe.lookup", "ok")
    assert probe_lines(home) == []


async def test_no_such_call_begins_in_doubt(talk: Talk, home: Path) -> None:
    append = {"tool": "probe.append", "args": {"line": "later"}}
    async with working(home, heartbeat_seconds=60) as worker:
        turn = await talk.script({"hang_ms": 500, "call": [append]}, {"say": "Done."})
        await talk.until_type("step.checkpoint")
        (running,) = worker._running.values()
        running.tenure.doubt()
        await talk.until_type("agent.tool_use")
        assert probe_lines(home) == []
        running.tenure.confirm()
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert probe_lines(home) == ["later"]


def cut_once(name: str, calls: list[str], *, repeatable: bool) -> Tool:
    """A tool that reads our database; its first call loses the connection in mid-statement."""

    def read() -> str:
        calls.append(name)
        with connection.cursor() as cursor:
            if len(calls) == 1:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            cursor.execute("SELECT 'read'")
            return str(cursor.fetchone()[0])

    async def run(arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Reads."""
        return ToolOutput(await in_db_thread(read))

    return function_tool(name, Arguments, run, repeatable=repeatable)


@pytest.mark.parametrize(
    ("repeatable", "runs", "outcome"), [(True, 2, "ok"), (False, 1, "unknown")]
)
async def test_an_outage_inside_a_tool_is_not_told_as_its_failure(
    talk: Talk, home: Path, repeatable: bool, runs: int, outcome: str
) -> None:
    calls: list[str] = []
    tool = cut_once("test.read", calls, repeatable=repeatable)
    async with working(home, tools=[tool]):
        turn = await talk.script({"call": [{"tool": "test.read"}]}, {"say": "Went on."})
        assert (await talk.ending(turn))["type"] == "turn.completed"
    (result,) = await talk.events("agent.tool_result")
    assert (len(calls), result["outcome"]) == (runs, outcome)
    told = text_of(result)
    assert told == "read" if repeatable else "before you repeat" in told
    assert len(await talk.events("attempt.started")) == 1


async def test_a_tool_that_fails_like_an_outage_of_a_database_that_answers_fails(
    talk: Talk, home: Path
) -> None:
    calls: list[int] = []

    def read() -> None:
        calls.append(len(calls))
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 20")
            try:
                cursor.execute("SELECT pg_sleep(1)")
            finally:
                cursor.execute("RESET statement_timeout")

    async def run(arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Takes too long for the database."""
        await in_db_thread(read)
        return ToolOutput("never")

    tool = function_tool("test.slow", Arguments, run, repeatable=True)
    async with working(home, tools=[tool]):
        turn = await talk.script({"call": [{"tool": "test.slow"}]}, {"say": "Went on."})
        assert (await talk.ending(turn))["type"] == "turn.completed"
    (result,) = await talk.events("agent.tool_result")
    assert (len(calls), result["outcome"]) == (REPEATS_MAX + 1, "error")
    assert "The tool failed: OperationalError" in text_of(result)


async def test_a_deadline_that_passed_is_a_doubt_that_a_heartbeat_ends(
    talk: Talk, home: Path
) -> None:
    """And no reason to give the turn up: nobody else has it."""
    async with working(home, heartbeat_seconds=60) as worker:
        turn = await talk.script({"say": "word " * 40, "chunks": 40, "every_ms": 50})
        await talk.until_type("agent.message_delta", 2)
        await in_db_thread(expire, next(iter(worker._running)))
        (running,) = worker._running.values()
        running.deadline = 0.0
        assert (await talk.ending(turn))["type"] == "turn.completed"
    assert running.deadline > 0
    assert len(await talk.events("attempt.started")) == 1
