"""BR-037: two prompts at once to one session. One rule, whichever door each came in by."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from sessions_app.models import Session
from sessions_app.services import attempts
from sessions_app.services.attempts import Completed
from sessions_app.services.verification import verify_session
from tests.api.client import Caller
from tests.factories import Cast, claim, make_session, send

Door = Callable[[Cast, Session, str, str], Any]


def by_page(cast: Cast, session: Session, text: str, delivery: str) -> Any:
    browser = Client()
    browser.force_login(cast.member)
    form = {"text": text, "delivery": delivery}
    return browser.post(f"/s/{session.public_id}/send", form)


def by_login(cast: Cast, session: Session, text: str, delivery: str) -> Any:
    return _by_api(Caller(cast, "member"), session, text, delivery)


def by_key(cast: Cast, session: Session, text: str, delivery: str) -> Any:
    return _by_api(Caller(cast, "workspace_key"), session, text, delivery)


def _by_api(caller: Caller, session: Session, text: str, delivery: str) -> Any:
    content = [{"type": "text", "text": text}]
    event = {"type": "user.message", "content": content, "delivery": delivery}
    return caller.post(f"/v1/sessions/{session.public_id}/events", {"events": [event]})


def send_at_once(cast: Cast, session: Session, doors: tuple[Door, Door], delivery: str) -> None:
    barrier = threading.Barrier(2)

    def enter(door: Door, text: str) -> int:
        try:
            barrier.wait()
            return int(door(cast, session, text, delivery).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(enter, doors, ("left", "right")))
    assert all(status in {200, 202, 302, 303} for status in answers), answers


@pytest.mark.parametrize("delivery", ["queue", "steer"])
@pytest.mark.parametrize(
    "doors", list(itertools.combinations_with_replacement([by_page, by_login, by_key], 2))
)
def test_two_at_once_are_two_turns_one_after_the_other(
    committed_cast: Cast, doors: tuple[Door, Door], delivery: str
) -> None:
    """Queued ones let the running turn end; steering ones take its place. Neither is lost."""
    session = make_session(committed_cast)
    send(committed_cast, session, "first")
    running = claim().lease
    send_at_once(committed_cast, session, doors, delivery)
    statuses = dict(session.turns.values_list("preview_text", "status"))
    first = "running" if delivery == "queue" else "superseded"
    assert statuses == {"first": first, "left": "queued", "right": "queued"}
    if delivery == "queue":
        attempts.finish_turn(lease=running, outcome=Completed())
    else:
        attempts.acknowledge_quiet(lease=running)
    for _ in range(2):
        lease = claim().lease
        assert attempts.claim_turn(worker="other", token=lease.token) is None
        attempts.finish_turn(lease=lease, outcome=Completed())
    started = session.turns.exclude(preview_text="first").order_by("started_seq")
    accepted = session.turns.exclude(preview_text="first").order_by("prompt_seq")
    assert list(started) == list(accepted)
    assert set(started.values_list("status", flat=True)) == {"completed"}
    assert verify_session(session_id=session.pk) == []
