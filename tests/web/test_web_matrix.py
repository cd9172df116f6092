"""Every page and every act of the web app × everyone → the status that is right (BR-081).

An address without a row fails, and so does a row without an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern

from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Event, Session
from sessions_app.services.attempts import Completed, Failed, finish_turn
from sessions_app.services.folders import create_folder
from sessions_app.web.urls import urlpatterns
from tests.factories import Cast, claim, make_session, send
from tests.services.test_children import allow_private
from tests.web.test_waits import Asks
from tests.web.web_rows import COLUMNS, ROWS, Row

MAKER = "second_member"


class Stage:
    """What the addresses name, all of it the second member's."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.sessions: dict[str, Session] = {}
        self.events: dict[str, str] = {}
        for name in ("asking", "asked"):
            asks = Asks(cast, by=MAKER)
            self.events[name] = asks.approval() if name == "asking" else asks.question()
            asks.suspend()
            self.sessions[name] = asks.session
        self.sessions["failed"] = self._run(Failed("provider_down", "It is down."))
        self.sessions["session"] = self._run(Completed())
        self.sessions["busy"] = make_session(cast, by=MAKER, title="Harbour")
        send(cast, self.sessions["busy"], by=MAKER)
        claim()
        send(cast, self.sessions["busy"], by=MAKER)
        self.folder = create_folder(
            access=cast.access(MAKER), workspace_id=cast.workspace.pk, name="Maps"
        )

    def _run(self, outcome: Any) -> Session:
        session = make_session(self.cast, by=MAKER, title="Survey")
        send(self.cast, session, by=MAKER)
        finish_turn(lease=claim().lease, outcome=outcome)
        return session

    def fill(self, text: str, at: str, session: Session | None = None) -> str:
        session = session or self.sessions[at]
        session.refresh_from_db()
        turn = session.turns.order_by("-number").first()
        values = {
            "workspace": self.cast.workspace.public_id,
            "organization": self.cast.organization.public_id,
            "group": "today",
            "folder": self.folder.public_id,
            "login": "0" * 32,
            "session": session.public_id,
            "event": self.events.get(at, ""),
            "turn": turn.public_id if turn else "",
            "version": str(session.queue_version),
            "seq": "1",
        }
        return re.sub(r"<\w+:(\w+)>|\{(\w+)\}", lambda m: values[m[1] or m[2]], text)

    def ask(self, row: Row, who: str, session: Session | None = None) -> Any:
        client = Client()
        if who != "nobody":
            client.force_login(getattr(self.cast, who))
        address = "/" + self.fill(row.route, row.at, session)
        if row.method == "GET":
            return client.get(address, headers={"x-fragment": "1"} if row.is_part else {})
        data = {name: self.fill(value, row.at, session) for name, value in row.data.items()}
        return client.post(address, data, HTTP_ACCEPT="application/json")


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def stage(cast: Cast) -> Stage:
    return Stage(cast)


def test_every_address_has_a_row_and_every_row_an_address() -> None:
    addresses = {str(p.pattern) for p in urlpatterns if isinstance(p, URLPattern)}
    assert addresses == {row.route for row in ROWS}


def test_what_is_posted_alone_is_not_read(stage: Stage) -> None:
    """So no address that answers a GET is without a row for it."""
    read = {row.route for row in ROWS if row.method == "GET"}
    for row in ROWS:
        if row.route not in read:
            answer = stage.ask(Row("GET", row.route, "", at=row.at), MAKER)
            assert answer.status_code == 405, row.route


@pytest.mark.parametrize("who", COLUMNS)
def test_each_address_admits_whom_it_should(stage: Stage, who: str) -> None:
    wrong = []
    for row in ROWS:
        before = Session.objects.count(), Event.objects.count()
        with undone():
            answer = stage.ask(row, who)
            expected = int(row.expected.split()[COLUMNS.index(who)])
            if answer.status_code != expected:
                wrong.append((row.method, row.route, expected, answer.status_code))
            if answer.status_code >= 400:
                assert (Session.objects.count(), Event.objects.count()) == before, row
            if answer.status_code == 302 and who == "nobody":
                assert answer["location"].startswith("/sign-in/"), row
    assert wrong == []


@pytest.mark.parametrize("who", [who for who in COLUMNS if who not in {"member", "nobody"}])
def test_what_one_keeps_for_oneself_is_as_what_never_was(
    cast: Cast, stage: Stage, who: str
) -> None:
    allow_private(cast)
    kept = make_session(cast, visibility=Visibility.PRIVATE, title="Mine")
    send(cast, kept, "Mine alone")
    for row in ROWS:
        if "<str:session>" in row.route:
            with undone():
                answer = stage.ask(row, who, kept)
                assert answer.status_code == 404, row
                assert "Mine" not in answer.content.decode(), row
