"""A model that was switched off starts no turn, however a turn came to want it (BR-093)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from catalog.models import Agent, Model
from core.errors import Unprocessable
from sessions_app.models import Session, Turn
from sessions_app.services import attempts
from sessions_app.services.attempts import Failed, finish_turn
from sessions_app.services.forking import ForkRequest, fork_session
from sessions_app.services.model_settings import RequestedSettings
from sessions_app.services.retrying import retry_turn
from sessions_app.services.sessions import SessionChanges, update_session
from sessions_app.services.turns import Prompt, submit_prompt
from tests.factories import WORKER_TOKEN, Cast, claim, make_session, send
from tests.services.test_children import make_child, work

CHOICE = RequestedSettings(model="demo/assistant")


def chosen(cast: Cast) -> Session:
    return make_session(cast, requested=CHOICE)


def by_the_prompt(cast: Cast) -> None:
    prompt = Prompt(content="Hello", requested=CHOICE)
    session = make_session(cast)
    switch_off()
    submit_prompt(access=cast.access("member"), session_id=session.pk, prompt=prompt)


def by_the_sessions_default(cast: Cast) -> None:
    session = chosen(cast)
    switch_off()
    send(cast, session)


def by_a_change_before(cast: Cast) -> None:
    session = make_session(cast)
    update_session(
        access=cast.access("member"),
        session_id=session.pk,
        changes=SessionChanges(requested=CHOICE),
    )
    switch_off()
    send(cast, session)


def by_the_agents_default(cast: Cast) -> None:
    make_session(cast)
    Agent.objects.update(
        model=Model.objects.get(provider__organization=cast.organization, model_id="assistant")
    )
    session = make_session(cast)
    switch_off()
    send(cast, session)


def by_a_fork(cast: Cast) -> None:
    session = chosen(cast)
    work(cast, session)
    switch_off()
    made = fork_session(access=cast.access("member"), session_id=session.pk, fork=ForkRequest())
    send(cast, made)


def by_a_child(cast: Cast) -> None:
    parent = chosen(cast)
    switch_off()
    send(cast, make_child(cast, parent))


def by_a_retry(cast: Cast) -> None:
    session = chosen(cast)
    send(cast, session)
    finish_turn(lease=claim().lease, outcome=Failed("provider_down", "It is down."))
    switch_off()
    turn = session.turns.get()
    retry_turn(access=cast.access("member"), session_id=session.pk, turn_id=turn.pk)


def by_a_queued_prompt(cast: Cast) -> None:
    session = chosen(cast)
    for _ in "ab":
        send(cast, session)
    lease = claim().lease
    switch_off()
    finish_turn(lease=lease, outcome=Failed("provider_down", "It is down."))


def switch_off() -> None:
    assert Model.objects.filter(model_id="assistant").update(is_enabled=False)


def outcome(cast: Cast, way: Callable[[Cast], None]) -> str:
    """The code of the refusal, or of the failed turn, which no worker has had."""
    try:
        way(cast)
    except Unprocessable as refused:
        return refused.code
    assert attempts.claim_turn(worker="w", token=WORKER_TOKEN) is None
    newest = Turn.objects.latest("created_at")
    assert (newest.status, newest.attempt_count) == ("failed", 0)
    return str((newest.error or {})["code"])


@pytest.mark.parametrize(
    "way",
    [
        by_the_prompt,
        by_the_sessions_default,
        by_a_change_before,
        by_the_agents_default,
        by_a_fork,
        by_a_child,
        by_a_retry,
        by_a_queued_prompt,
    ],
)
def test_no_way_leads_to_a_model_that_was_switched_off(
    cast: Cast, way: Callable[[Cast], None]
) -> None:
    """It is refused as the prompt is sent, or the turn fails as it would start: with one code."""
    assert outcome(cast, way) == "model_unavailable"
