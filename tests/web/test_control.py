"""Turns under control by plain forms: what they do, what they refuse, and for whom they show."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from core.ids import Prefix, encode_id
from orgs.models import User
from sessions_app.eventlog import head
from sessions_app.models import ComposerDraft, Session, Turn
from sessions_app.services.attempts import Failed, finish_turn
from sessions_app.services.holding import pause_session
from sessions_app.web.strip import QUEUE_SHOWN
from tests.factories import Cast, claim, make_session, send

JSON = {"HTTP_ACCEPT": "application/json"}
COMMANDS = ["pause", "resume", "cancel", "retry"]
QUEUE_ACTS = ["edit", "move", "delete", "promote"]


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def busy(cast: Cast, queued: int = 3) -> Session:
    """Turn 1 runs; behind it wait `queued` prompts."""
    session = make_session(cast, title="Survey")
    send(cast, session, "Running")
    claim()
    for number in range(1, queued + 1):
        send(cast, session, f"Queued {number}")
    session.refresh_from_db()
    return session


def turn(session: Session, number: int) -> str:
    return encode_id(Prefix.TURN, session.turns.get(number=number).pk)


def act(client: Client, session: Session, number: int, name: str, **fields: Any) -> Any:
    headers = fields.pop("headers", {})
    session.refresh_from_db()
    fields.setdefault("expected_version", session.queue_version)
    path = f"/s/{session.public_id}/queue/{turn(session, number)}/{name}"
    return client.post(path, fields, **headers)


def queue_of(session: Session) -> list[str]:
    page = browser(session.maker).get(f"/s/{session.public_id}/").content.decode()  # type: ignore[arg-type]
    rows = page.split('<li class="queued')[1:]
    return [row.split('class="text" dir="auto">')[1].split("<")[0] for row in rows]


def page_of(cast: Cast, session: Session, who: str = "member") -> str:
    return browser(getattr(cast, who)).get(f"/s/{session.public_id}/").content.decode()


def test_the_strip_says_what_runs_and_why_each_prompt_waits(cast: Cast) -> None:
    page = page_of(cast, busy(cast))
    assert "Turn 1 is working" in page
    for why in ("after turn 1", "after 1", "after 2"):
        assert f'<span class="why">{why}</span>' in page


def test_pause_and_resume_are_forms(cast: Cast) -> None:
    session = busy(cast)
    client = browser(cast.member)
    path = f"/s/{session.public_id}/"
    assert client.post(f"{path}pause")["Location"] == f"{path}#end"
    page = page_of(cast, session)
    assert "<b>Paused</b>" in page
    assert f'formaction="{path}resume"' in page
    assert f'formaction="{path}pause"' not in page
    listed = client.get(f"/w/{cast.workspace.public_id}/").content.decode()
    assert '<span class="row-state state is-paused">Paused' in listed
    client.post(f"{path}resume")
    assert "<b>Paused</b>" not in page_of(cast, session)


def test_prompts_held_by_a_pause_say_so_and_stand_in_the_queue_alone(cast: Cast) -> None:
    session = make_session(cast)
    pause_session(access=cast.access("member"), session_id=session.pk)
    send(cast, session, "Held one")
    page = page_of(cast, session)
    assert '<span class="why">held: paused</span>' in page
    assert page.count('<article class="prompt" ') == 0


def test_editing_puts_the_text_into_the_composer_and_sending_it_keeps_its_place(
    cast: Cast,
) -> None:
    session = busy(cast)
    client = browser(cast.member)
    answer = act(client, session, 2, "edit")
    assert answer["Location"] == f"/s/{session.public_id}/#prompt"
    assert queue_of(session) == ["Queued 2", "Queued 3"]
    page = page_of(cast, session)
    assert ">Queued 1</textarea>" in page
    assert "Keeps its place" in page
    revision = ComposerDraft.objects.get().revision
    form = {"text": "Queued 1, better", "draft_revision": revision}
    client.post(f"/s/{session.public_id}/send", form)
    assert queue_of(session) == ["Queued 1, better", "Queued 2", "Queued 3"]


def test_moving_deleting_and_promoting_are_forms(cast: Cast) -> None:
    session = busy(cast)
    client = browser(cast.member)
    act(client, session, 4, "move", position=1)
    assert queue_of(session) == ["Queued 3", "Queued 1", "Queued 2"]
    act(client, session, 2, "delete")
    assert queue_of(session) == ["Queued 3", "Queued 2"]
    act(client, session, 3, "promote")
    assert session.turns.get(number=1).status == "superseded"
    assert queue_of(session) == ["Queued 2", "Queued 3"]
    assert "waits for the stopped turn to end" in page_of(cast, session)


def test_steering_takes_the_place_of_what_runs(cast: Cast) -> None:
    session = busy(cast, queued=1)
    form = {"text": "Rather this", "delivery": "steer"}
    browser(cast.member).post(f"/s/{session.public_id}/send", form)
    assert session.turns.get(number=1).status == "superseded"
    assert queue_of(session) == ["Rather this", "Queued 1"]


def test_an_unknown_delivery_is_refused(cast: Cast) -> None:
    session = make_session(cast)
    form = {"text": "Go", "delivery": "now"}
    answer = browser(cast.member).post(f"/s/{session.public_id}/send", form, **JSON)
    assert answer.json()["error"]["code"] == "unsupported_delivery"


@pytest.mark.parametrize("name", QUEUE_ACTS)
def test_a_stale_version_is_told_in_words_and_changes_nothing(cast: Cast, name: str) -> None:
    session = busy(cast)
    client = browser(cast.member)
    before = head(session.pk)
    fields = {"expected_version": 1, "position": 2}
    answer = act(client, session, 2, name, headers=JSON, **fields)
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "stale_version"
    page = f"/s/{session.public_id}/"
    answer = act(client, session, 2, name, headers={"HTTP_REFERER": page}, **fields)
    assert answer["Location"] == page
    assert "The queue has changed since" in client.get(page).content.decode()
    assert head(session.pk) == before


def test_a_started_turn_says_so(cast: Cast) -> None:
    session = busy(cast)
    answer = act(browser(cast.member), session, 1, "delete", headers=JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "turn_started")


def test_a_form_without_a_version_is_refused(cast: Cast) -> None:
    session = busy(cast)
    answer = act(browser(cast.member), session, 2, "delete", expected_version="", headers=JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "field_required")


def failed(cast: Cast) -> Session:
    session = make_session(cast)
    send(cast, session, "Fails")
    finish_turn(lease=claim().lease, outcome=Failed("provider_error", "The provider refused."))
    return session


def test_only_the_newest_failed_turn_offers_retry_and_only_once(cast: Cast) -> None:
    session = failed(cast)
    assert 'data-do="retry"' in page_of(cast, session)
    assert 'data-do="retry"' not in page_of(cast, session, "viewer")
    client = browser(cast.member)
    path = f"/s/{session.public_id}/retry"
    failed_turn = turn(session, 1)
    client.post(path, {"turn": failed_turn})
    assert Turn.objects.get(number=2).retry_of_id == session.turns.get(number=1).pk
    assert 'data-do="retry"' not in page_of(cast, session)
    again = client.post(path, {"turn": failed_turn}, **JSON)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_retried")
    assert client.post(path, {"turn": "x"}).status_code == 404


def test_cancelling_asks_on_a_page_that_names_what_ends(cast: Cast) -> None:
    session = busy(cast, queued=2)
    client = browser(cast.member)
    path = f"/s/{session.public_id}/cancel"
    asked = client.get(path).content.decode()
    assert "Survey" in asked
    assert "turn 1, which has not ended" in asked
    assert "2 queued prompts" in asked
    client.post(path)
    session.refresh_from_db()
    assert session.status == "terminated"
    page = page_of(cast, session)
    assert "This session was cancelled and takes no more work." in page
    assert "data-cancel" not in page.split("<dialog")[0]
    assert page.count("Stopped") == 1
    assert "cancelled already" in client.get(path).content.decode()


def test_only_those_who_may_administer_are_offered_cancel(cast: Cast) -> None:
    session = busy(cast)
    for who, offered in (("member", True), ("admin", True), ("second_member", False)):
        assert (f'/s/{session.public_id}/cancel"' in page_of(cast, session, who)) is offered, who
    client = browser(cast.second_member)
    assert client.get(f"/s/{session.public_id}/cancel").status_code == 403
    assert client.post(f"/s/{session.public_id}/cancel").status_code == 403


def test_a_viewer_sees_the_queue_and_no_button_and_may_change_nothing(cast: Cast) -> None:
    session = busy(cast)
    before = head(session.pk)
    client = browser(cast.viewer)
    page = page_of(cast, session, "viewer")
    assert "Queued 1" in page
    assert "data-do=" not in page
    for name in COMMANDS:
        answer = client.post(f"/s/{session.public_id}/{name}", {"turn": turn(session, 1)})
        assert answer.status_code == 403, name
    for name in QUEUE_ACTS:
        assert act(client, session, 2, name, position=1).status_code == 403, name
    assert client.get(f"/s/{session.public_id}/queue/").status_code == 200
    assert head(session.pk) == before


def test_for_an_outsider_there_is_nothing(cast: Cast) -> None:
    session = busy(cast)
    client = browser(cast.outsider)
    for name in COMMANDS:
        answer = client.post(f"/s/{session.public_id}/{name}", {"turn": turn(session, 1)})
        assert answer.status_code == 404, name
    for name in QUEUE_ACTS:
        assert act(client, session, 2, name, position=1).status_code == 404, name
    for path in ("cancel", "queue/"):
        assert client.get(f"/s/{session.public_id}/{path}").status_code == 404, path


def test_a_turn_of_another_session_is_not_found(cast: Cast) -> None:
    session, other = busy(cast), make_session(cast)
    send(cast, other)
    path = f"/s/{other.public_id}/queue/{turn(session, 2)}/delete"
    assert browser(cast.member).post(path, {"expected_version": 1}).status_code == 404


@pytest.mark.slow
def test_a_long_queue_is_cut_in_the_strip_and_whole_on_its_own_page(cast: Cast) -> None:
    session = busy(cast, queued=QUEUE_SHOWN + 5)
    page = page_of(cast, session)
    assert page.count('<li class="queued') == QUEUE_SHOWN
    assert f"Show all {QUEUE_SHOWN + 5}" in page
    assert len(page) < 150_000
    whole = browser(cast.member).get(f"/s/{session.public_id}/queue/").content.decode()
    assert whole.count('<li class="queued') == QUEUE_SHOWN + 5
    strip = browser(cast.member).get(f"/s/{session.public_id}/queue/", headers={"X-Fragment": "1"})
    assert strip.content.decode().startswith('<div class="strip-wrap"')
