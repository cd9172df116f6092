"""Approvals and questions by plain forms: cards, decisions, refusals, and the list of all."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core.api.reader import zone_of
from core.ids import event_id
from orgs.models import User
from sessions_app.domain.events import Draft
from sessions_app.domain.questions import parse_questions
from sessions_app.domain.vocabulary import Visibility
from sessions_app.eventlog import read_after
from sessions_app.models import Session, Wait
from sessions_app.services import attempts
from sessions_app.services.interruption import interrupt_session
from sessions_app.web.live import LiveRenderer
from sessions_app.web.loading import load_page
from sessions_app.web.rendering import render_items
from tests.factories import Cast, claim, make_session, send

JSON = {"HTTP_ACCEPT": "application/json"}
QUESTIONS = [
    {"id": "date", "kind": "single_select", "text": "Which date?", "options": ["Booked", "Left"],
     "allow_other": True},
    {"id": "who.may", "kind": "multi_select", "text": "Who may switch?", "options": ["A", "B", "C"],
     "min_selected": 2, "required": False},
    {"id": "note", "kind": "text", "text": "What to say?", "max_characters": 20},
]  # fmt: skip


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


class Asks:
    """A session whose turn waits for what was recorded."""

    def __init__(self, cast: Cast, **fields: Any) -> None:
        self.cast = cast
        self.session: Session = make_session(cast, **{"title": "Tariffs", **fields})
        send(cast, self.session)
        self.lease = claim().lease
        self.path = f"/s/{self.session.public_id}/"

    def approval(self, **arguments: Any) -> str:
        payload = _call("probe.append_asked", arguments or {"line": "one\ntwo"}, "ask")
        seqs = attempts.record_ask(lease=self.lease, drafts=[Draft("agent.tool_use", payload)])
        return event_id(self.session.pk, seqs[0])

    def question(self, **fields: Any) -> str:
        use = Draft("agent.tool_use", _call("probe.ask", {}, "allow"))
        (seq, *_) = attempts.record(lease=self.lease, drafts=[use])
        payload = {
            "tool_use_id": event_id(self.session.pk, seq),
            "questions": [question.to_json() for question in parse_questions(QUESTIONS)],
            "allow_skip": True,
            "expires_at": None,
            **fields,
        }
        asked = attempts.record_ask(lease=self.lease, drafts=[Draft("agent.question", payload)])
        return event_id(self.session.pk, asked[0])

    def suspend(self) -> None:
        assert attempts.suspend_turn(lease=self.lease)

    def page(self, who: str = "member") -> str:
        return browser(getattr(self.cast, who)).get(self.path).content.decode()

    def confirm(self, asked: str, *, by: str = "member", headers: Any = None, **form: Any) -> Any:
        client = browser(getattr(self.cast, by))
        return client.post(f"{self.path}waits/{asked}/confirm", form, **(headers or {}))

    def answer(self, asked: str, *, headers: Any = None, **form: Any) -> Any:
        client = browser(self.cast.member)
        return client.post(f"{self.path}waits/{asked}/answer", form, **(headers or {}))


def _call(name: str, arguments: dict[str, Any], permission: str) -> dict[str, Any]:
    return {
        "name": name,
        "input": arguments,
        "call_id": "call_1",
        "step": 1,
        "evaluated_permission": permission,
        "repeatable": False,
    }


@pytest.fixture
def asks(cast: Cast) -> Asks:
    return Asks(cast)


def test_a_call_that_waits_is_a_card_and_does_not_run(asks: Asks) -> None:
    asked = asks.approval()
    asks.suspend()
    page = asks.page()
    assert "Asks to run <b>probe.append_asked</b>" in page
    assert "one\ntwo</dd>" in page
    assert "Running" not in page
    assert page.count(f'action="{asks.path}waits/{asked}/confirm"') == 2
    assert "<b>Waiting for you</b>" in page
    assert f'formaction="{asks.path}stop"' in page
    assert page.count("Needs you") >= 3  # the header, and the row twice
    assert 'name="csrfmiddlewaretoken"' in page.split(f"waits/{asked}/confirm")[1]


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"decision": "allow"}, "Allowed by Chiara Novak"),
        ({"decision": "allow_session"}, "Allowed in this session by Chiara Novak"),
        ({"decision": "deny", "reason": "Not <now>"}, '<span dir="auto">Not &lt;now&gt;'),
    ],
)
def test_a_decision_is_a_form_and_the_card_says_by_whom(
    asks: Asks, form: dict[str, str], says: str
) -> None:
    asked = asks.approval()
    asks.suspend()
    answer = asks.confirm(asked, **form)
    assert answer["Location"] == f"{asks.path}#ask-{asked}"
    page = asks.page()
    assert says in page
    assert "data-wait>" not in page
    assert "Needs you" not in page


def test_a_second_decision_is_told_in_the_servers_words(asks: Asks) -> None:
    asked = asks.approval()
    asks.confirm(asked, decision="allow")
    answer = asks.confirm(asked, by="owner", decision="deny", headers=JSON)
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "already_decided"
    plain = browser(asks.cast.owner)
    plain.post(f"{asks.path}waits/{asked}/confirm", {"decision": "deny"}, HTTP_REFERER=asks.path)
    assert "the first answer counts" in plain.get(asks.path).content.decode()


def test_a_question_is_a_form_with_all_its_fields(asks: Asks) -> None:
    asked = asks.question(expires_at="2099-06-03T09:00:00+00:00")
    asks.suspend()
    page = asks.page()
    card = page.split(f'action="{asks.path}waits/{asked}/answer"')[1].split("</form>")[0]
    assert card.count('type="radio"') == 3
    assert card.count('type="checkbox"') == 3
    assert 'name="q1-other"' in card
    assert 'name="q2-other"' not in card
    assert "Optional, choose 2 to 3" in card
    assert 'maxlength="20"' in card
    assert 'value="skip"' in card
    assert " left" in page
    assert "Waiting for an answer" in page
    assert "Running" not in page


def test_answers_are_sent_and_shown(asks: Asks) -> None:
    asked = asks.question()
    asks.suspend()
    answer = asks.answer(
        asked, **{"q1": "other", "q1-other": "Neither", "q2": ["0", "2"], "q3": "Hm"}
    )
    assert answer.status_code == 302
    assert Wait.objects.get().answer["answers"] == {
        "date": {"selected": [], "other": "Neither"},
        "who.may": {"selected": ["A", "C"]},
        "note": {"text": "Hm"},
    }
    page = asks.page()
    for said in ("Neither", "A, C", "Hm", "Answered by Chiara Novak"):
        assert said in page


def test_a_question_is_skipped_only_where_it_may_be(asks: Asks) -> None:
    first, second = asks.question(), asks.question(allow_skip=False)
    asks.suspend()
    asks.answer(first, do="skip")
    assert "Skipped by Chiara Novak" in asks.page()
    assert asks.answer(second, do="skip", headers=JSON).json()["error"]["code"] == "not_skippable"


def test_a_refused_answer_stays_at_its_field_with_what_was_typed(asks: Asks) -> None:
    asked = asks.question()
    form = {"q1": "1", "q2": "1", "q3": "Kept <so>"}
    answer = asks.answer(asked, **form)
    assert answer.status_code == 400
    page = answer.content.decode()
    assert 'data-problem="2">Choose 2 to 3.</p>' in page
    assert "Kept &lt;so&gt;</textarea>" in page
    assert page.count(" checked>") == 2
    told = asks.answer(asked, **form, headers=JSON).json()["error"]
    assert told["details"] == {"place": 2}


def test_what_ends_with_its_turn_says_so(asks: Asks, cast: Cast) -> None:
    asks.approval()
    asks.question()
    asks.suspend()
    interrupt_session(access=cast.access("member"), session_id=asks.session.pk)
    page = asks.page()
    assert page.count("Not decided: its turn ended") == 2
    assert "data-wait>" not in page


def test_live_frames_end_where_a_reload_begins(asks: Asks, cast: Cast) -> None:
    access = cast.access("member")
    before = asks.session.head_seq
    approval, question = asks.approval(), asks.question()
    asks.suspend()
    asks.confirm(approval, decision="deny", reason="no")
    asks.answer(question, q1="0", q3="x")
    asks.session.refresh_from_db()
    live = LiveRenderer(asks.session, access, before)
    answers = live.render_all(read_after(session_id=asks.session.pk, after=before, limit=100))
    shown: dict[str, str] = {}
    for answer in answers:
        for patch in answer["patches"] if answer else []:
            if patch["op"] == "put":
                shown[patch["key"]] = patch["html"]
    items = load_page(session=asks.session).transcript.items
    may = {"may_control": True, "may_fork": True}
    placed = render_items(items, session=asks.session, zone=zone_of(None), **may)
    wanted = {item.key: one.html for item, one in zip(items, placed, strict=True)}
    assert {key: wanted[key] for key in shown} == shown
    assert {f"ask-{approval}", f"ask-{question}"} <= shown.keys()


def test_a_viewer_sees_the_card_and_decides_nothing(asks: Asks) -> None:
    asked = asks.approval()
    asks.question()
    page = asks.page("viewer")
    assert "Asks to run" in page
    assert "Which date?" in page
    assert "data-wait>" not in page
    assert asks.confirm(asked, by="viewer", decision="allow").status_code == 403
    assert "Nothing waits for you" in browser(asks.cast.viewer).get("/inbox/").content.decode()


def test_an_outsider_finds_nothing(asks: Asks) -> None:
    asked = asks.approval()
    assert asks.confirm(asked, by="outsider", decision="allow").status_code == 404
    assert "Tariffs" not in browser(asks.cast.outsider).get("/inbox/").content.decode()


def test_anothers_private_session_waits_for_its_maker_alone(cast: Cast) -> None:
    cast.organization.allows_private_sessions = True
    cast.organization.save()
    private = Asks(cast, visibility=Visibility.PRIVATE)
    asked = private.approval()
    assert private.confirm(asked, by="second_member", decision="allow").status_code == 404
    assert "Tariffs" not in browser(cast.second_member).get("/inbox/").content.decode()
    assert "Only me" in browser(cast.member).get("/inbox/").content.decode()


def test_the_inbox_has_all_newest_first_and_links_to_their_places(cast: Cast) -> None:
    first, second = Asks(cast, title="Older one"), Asks(cast, title="Newer one")
    asked, later = first.approval(), second.question()
    page = browser(cast.member).get("/inbox/").content.decode()
    listed = page.split("data-inbox")[1]
    assert listed.index("Newer one") < listed.index("Older one")
    assert f'href="{first.path}#ask-{asked}"' in listed
    assert f'action="{second.path}waits/{later}/answer"' in listed
    assert re.search(r"data-waiting-count>2<", page)
    answer = first.confirm(asked, decision="allow", place="inbox")
    assert answer["Location"] == "/inbox/"
    assert browser(cast.member).get("/inbox/count").json() == {"count": 1}


def test_the_inbox_costs_the_same_however_much_waits(cast: Cast) -> None:
    client = browser(cast.member)

    def cost() -> int:
        with CaptureQueriesContext(connection) as made:
            page = client.get("/inbox/?page=", HTTP_X_FRAGMENT="1")
        assert page.status_code == 200
        return len(made)

    Asks(cast, title="").approval()
    few = cost()
    for number in range(4):
        more = Asks(cast, title="" if number % 2 else "Named")
        more.approval()
        more.question()
    assert cost() == few


def test_the_inbox_is_paged(cast: Cast) -> None:
    asks = Asks(cast)
    for number in range(21):
        asks.approval(line=f"line {number}")
    client = browser(cast.member)
    first = client.get("/inbox/").content.decode()
    more = re.search(r'href="\?page=([^"]+)">Load older', first)
    assert more
    second = client.get("/inbox/", {"page": more[1]}).content.decode()
    assert "line 20</dd>" in first
    assert "line 0</dd>" in second
    assert "line 20</dd>" not in second
