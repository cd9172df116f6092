"""Which model a turn uses, what its row says of it, and what happens when it is switched off."""

from __future__ import annotations

import pytest

from catalog.kinds import Speed
from catalog.models import Agent, Model, Provider
from core.errors import Unprocessable
from sessions_app import eventlog
from sessions_app.models import Session, Turn
from sessions_app.services import attempts
from sessions_app.services.model_settings import RequestedSettings
from sessions_app.services.sessions import SessionChanges, update_session
from sessions_app.services.turns import Prompt
from tests.factories import WORKER_TOKEN, Cast, claim, make_session, send


def switch_off(what: str) -> None:
    if what == "model":
        Model.objects.filter(model_id="assistant").update(is_enabled=False)
    else:
        Provider.objects.update(is_enabled=False)


def change(cast: Cast, session: Session, **requested: str) -> Session:
    changes = SessionChanges(requested=RequestedSettings(**requested))
    return update_session(access=cast.access("member"), session_id=session.pk, changes=changes)


@pytest.mark.parametrize("what", ["model", "provider"])
def test_a_model_that_was_switched_off_starts_no_turn(cast: Cast, what: str) -> None:
    send(cast, make_session(cast, requested=RequestedSettings(model="demo/assistant")))
    switch_off(what)
    assert attempts.claim_turn(worker="w", token=WORKER_TOKEN) is None
    turn = Turn.objects.get()
    assert (turn.status, turn.error["code"]) == ("failed", "model_unavailable")


def test_a_first_prompt_is_refused_where_the_agents_model_was_switched_off(cast: Cast) -> None:
    make_session(cast)
    Agent.objects.update(
        model=Model.objects.get(provider__organization=cast.organization, model_id="assistant")
    )
    switch_off("model")
    with pytest.raises(Unprocessable) as refusal:
        make_session(cast, prompts=[Prompt(content="Hello")])
    assert refusal.value.code == "model_unavailable"
    assert refusal.value.param == "initial_events[0].model"
    make_session(cast)


def test_an_agents_speed_is_its_turns_speed(cast: Cast) -> None:
    make_session(cast)
    Agent.objects.update(speed=Speed.FAST)
    send(cast, make_session(cast))
    claim()
    assert Turn.objects.get().settings["speed"] == "fast"


@pytest.mark.parametrize("is_running", [False, True])
def test_a_repeated_choice_writes_nothing(cast: Cast, is_running: bool) -> None:
    session = make_session(cast)
    if is_running:
        send(cast, session)
        claim()
    first = change(cast, session, model="demo/scripted", reasoning_effort="high")
    again = change(cast, session, model="scripted demo", reasoning_effort="high")
    assert again.head_seq == first.head_seq
    last = eventlog.read_after(session_id=session.pk, after=first.head_seq - 1, limit=1)[0]
    assert last.type == "session.updated"


@pytest.mark.parametrize("is_running", [False, True])
def test_an_effort_alone_is_told_with_the_model_that_it_is_for(
    cast: Cast, is_running: bool
) -> None:
    session = make_session(cast)
    if is_running:
        send(cast, session)
        claim()
    assert change(cast, session, reasoning_effort="high").model_label == "Demo assistant · high"


def test_a_workspace_without_a_default_agent_gets_one_again(cast: Cast) -> None:
    make_session(cast)
    Agent.objects.update(is_default=False)
    again = make_session(cast)
    agent = Agent.objects.get()
    assert (again.agent_id, agent.is_default) == (agent.pk, True)
