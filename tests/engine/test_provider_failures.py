"""A provider that fails: pauses, retries, and a clear end when it does not come back."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models.functions import Now
from django.test import Client

from catalog.models import Provider
from core.db import in_db_thread
from core.text import clean_reason
from engine.failures import describe, error_from_status, provider_error
from sessions_app.models import Attempt, Session
from sessions_app.services import attempts
from tests.engine.conftest import Talk, working
from tests.factories import claim


async def test_an_outage_is_waited_out(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script({"say": "Back", "fail": {"status": 503}, "times": 2})
        assert (await talk.ending(turn))["type"] == "turn.completed"
    rescheduled = await talk.events("session.status_rescheduled")
    assert [event["reason"]["code"] for event in rescheduled] == ["provider_overloaded"] * 2
    assert all(event["retry_at"] for event in rescheduled)
    types = await talk.types()
    assert types.count("session.status_running") == 3
    assert types.count("step.checkpoint") == 3
    assert await talk.answer() == "Back"


async def test_retry_after_is_honoured(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script({"say": "Back", "fail": {"status": 429, "retry_after": 0.4}})
        began = time.monotonic()
        await talk.ending(turn)
    assert time.monotonic() - began > 0.4
    (event,) = await talk.events("session.status_rescheduled")
    assert event["reason"]["code"] == "provider_rate_limited"


async def test_the_session_is_rescheduling_while_it_waits(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script({"say": "Back", "fail": {"status": 429, "retry_after": 0.5}})
        await talk.until_type("session.status_rescheduled")
        row = await in_db_thread(Session.objects.get)
        assert row.status == "rescheduling"
        await talk.ending(turn)


async def test_while_it_waits_the_log_and_the_page_say_why_in_the_providers_words(
    talk: Talk, home: Path, client: Client
) -> None:
    said = "No capacity until ten. Key sk-live-1234567890abcdef was seen. " + "x" * 500
    failing = {"fail": {"status": 429, "retry_after": 60, "message": said}}
    async with working(home):
        await talk.script(failing)
        await talk.until_type("session.status_rescheduled")
        (event,) = await talk.events("session.status_rescheduled")
        await in_db_thread(client.force_login, talk.cast.member)
        page = await in_db_thread(client.get, f"/s/{talk.session.public_id}/")
        await talk.stop()
    told = event["reason"]["message"]
    assert told.startswith("The model provider's rate limit was reached. It said: No capacity")
    assert "sk-live" not in told
    assert len(told) < 400 + len("The model provider's rate limit was reached. It said: ") + 1
    html = page.content.decode()
    assert "Waiting for the model provider." in html
    # In the transcript, and in the strip above the composer.
    assert html.count("It said: No capacity until ten.") == 2


async def test_stop_ends_the_waiting_too(talk: Talk, home: Path) -> None:
    async with working(home) as worker:
        turn = await talk.script({"fail": {"status": 429, "retry_after": 600}})
        await talk.until_type("session.status_rescheduled")
        await talk.stop()
        assert (await talk.ending(turn))["type"] == "turn.cancelled"
        following = await talk.send("Next")
        await talk.ending(following)
        assert not worker._stopping.is_set()


async def test_after_so_many_tries_the_turn_fails(talk: Talk, home: Path) -> None:
    message = "No capacity. Key sk-live-1234567890abcdef was seen."
    async with working(home):
        turn = await talk.script({"fail": {"status": 529, "message": message}, "times": 99})
        error = (await talk.ending(turn))["error"]
        following = await talk.send("Still there?")
        assert (await talk.ending(following))["type"] == "turn.completed"
    assert error["code"] == "provider_overloaded"
    assert error["message"].startswith("The model provider is overloaded. It said: No capacity.")
    assert "sk-live" not in error["message"]
    assert len(await talk.events("session.status_rescheduled")) == 2


async def test_what_no_retry_would_mend_fails_at_once(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script({"fail": {"status": 401, "message": "No."}, "times": 99})
        error = (await talk.ending(turn))["error"]
    assert error["code"] == "provider_auth_failed"
    assert await talk.events("session.status_rescheduled") == []


async def test_a_pause_beyond_reason_is_not_waited_for(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script({"fail": {"status": 429, "retry_after": 86_400}})
        assert (await talk.ending(turn))["error"]["code"] == "provider_rate_limited"


async def test_failures_are_counted_over_attempts(talk: Talk, home: Path) -> None:
    """A worker that dies while it waits takes no failure with it."""
    turn = await talk.script({"say": "Back", "fail": {"status": 503}, "times": 2})

    def fail_once_and_die() -> None:
        lease = claim(worker="doomed").lease
        attempts.open_step(lease=lease, step=1)
        attempts.mark_rescheduling(
            lease=lease, code="provider_overloaded", message="x", retry_after_seconds=1
        )
        Attempt.objects.update(lease_expires_at=Now() - timedelta(seconds=1))

    await in_db_thread(fail_once_and_die)
    async with working(home):
        await talk.ending(turn)
    codes = [e["reason"]["code"] for e in await talk.events("session.status_rescheduled")]
    assert codes == ["provider_overloaded", "worker_lost", "provider_overloaded"]


async def test_a_model_that_was_removed_is_named(talk: Talk, home: Path) -> None:
    turn = await talk.script({"call": [{"tool": "probe.lookup", "args": {"sleep_ms": 300}}]})
    async with working(home):
        await talk.until_type("agent.tool_use")
        await in_db_thread(Provider.objects.filter(slug="demo").update, is_enabled=False)
        error = (await talk.ending(turn))["error"]
    assert error["code"] == "provider_misconfigured"
    assert "removed or switched off" in error["message"]


async def test_a_mistake_in_a_script_is_shown(talk: Talk, home: Path) -> None:
    async with working(home):
        turn = await talk.script({"sya": "typo"})
        error = (await talk.ending(turn))["error"]
    assert error["code"] == "provider_bad_request"
    assert "sya" in error["message"]


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "provider_bad_request", False),
        (401, "provider_auth_failed", False),
        (402, "provider_quota_exceeded", False),
        (403, "provider_auth_failed", False),
        (404, "provider_model_not_found", False),
        (408, "provider_timeout", True),
        (422, "provider_bad_request", False),
        (429, "provider_rate_limited", True),
        (500, "provider_unavailable", True),
        (502, "provider_unavailable", True),
        (503, "provider_overloaded", True),
        (504, "provider_timeout", True),
        (529, "provider_overloaded", True),
    ],
)
def test_each_status_has_its_code(status: int, code: str, retryable: bool) -> None:
    error = error_from_status(status)
    assert (error.code, error.retryable) == (code, retryable)


def test_a_reason_is_redacted_before_it_is_cut() -> None:
    secret = "correct-horse-battery-staple"
    for padding in range(360, 420):
        reason = clean_reason("x" * padding + " " + secret, [secret])
        assert len(reason) <= 400
        assert "correct" not in reason


def test_half_a_key_at_the_reading_bound_is_dropped() -> None:
    secret = "k" * 50
    reason = clean_reason(" " * 19_980 + secret, [secret])
    assert "k" not in reason


def test_a_reason_may_hold_anything() -> None:
    error = provider_error("provider_bad_request", "a\x00b\ud800\n\n  c")
    assert error.reason == "a\ufffdb\ufffd c"
    assert describe("provider_bad_request", error.reason).endswith("It said: a\ufffdb\ufffd c")
    assert describe("provider_bad_request") == "The model provider refused the request."
