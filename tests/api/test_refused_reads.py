"""A refusal runs the same statements and has the same body, whether the session is hidden or never
was: neither its words nor its time tell that there is one.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from django.test import Client

from core.errors import NotFound
from core.ids import Prefix, encode_id, event_id, uuid7
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Session
from sessions_app.streaming.positions import find_start, may_read
from sessions_app.web.urls import urlpatterns
from tests.api.client import Caller, refusal
from tests.api.matrix_rows import BODIES, MATRIX, STREAM
from tests.factories import Cast, make_session
from tests.services.test_children import allow_private, make_child
from tests.services.test_waits import Asking
from tests.statements import statements

# Of the same workspace, of the organization alone, of another tenant; and keys.
JSON = {"accept": "application/json"}
STRANGERS = ("second_member", "owner", "outsider", "workspace_key", "organization_key")
API = [r for r in MATRIX if "session_id" in r[1] and r != STREAM]
OWN_IDS = re.compile(r"(req|ses|turn)_\w+")
PAGES = [str(p.pattern) for p in urlpatterns if "<str:session>" in str(p.pattern)]


@pytest.fixture
def hidden(cast: Cast) -> Session:
    """A private tree of which a turn asks, with a queue behind it."""
    allow_private(cast)
    session = make_session(cast, title="Tides", visibility=Visibility.PRIVATE)
    make_child(cast, session)
    asking = Asking(cast, session)
    asking.approval()
    asking.suspend()
    return session


def fill(route: str, session_id: str, turn_id: str, event: str) -> str:
    values = {"session_id": session_id, "session": session_id, "turn_id": turn_id, "turn": turn_id}
    values |= {"event": event, "seq": "1"}
    return re.sub(r"<\w+:(\w+)>", lambda found: values[found[1]], route)


def both(route: str, hidden: Session) -> tuple[str, str]:
    """The address of the hidden one, and that of one that never was."""
    turn, never = hidden.turns.get(), uuid7()
    there = fill(route, hidden.public_id, turn.public_id, event_id(hidden.pk, 3))
    nothing = (encode_id(Prefix.SESSION, never), encode_id(Prefix.TURN, uuid7()))
    return there, fill(route, *nothing, event_id(never, 3))


def same_bytes(answer: Any) -> tuple[int, str, list[tuple[str, str]]]:
    """All but what each request has of its own: when it was, its id, its limits, the ids that it
    named itself.
    """
    own = {"request-id", "x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset"}
    own |= {"expires", "last-modified"}
    kept = [(k, OWN_IDS.sub("·", v)) for k, v in answer.headers.items() if k.lower() not in own]
    return answer.status_code, OWN_IDS.sub("·", answer.content.decode()), sorted(kept)


@pytest.mark.parametrize("route", API, ids=" ".join)
def test_a_refusal_of_the_api_asks_the_same(
    cast: Cast, hidden: Session, route: tuple[str, str]
) -> None:
    method, path = route
    body = {"visibility": "private"} if path.endswith("visibility") else BODIES.get(route)
    body = {} if body is None and method != "GET" else body
    for name in STRANGERS:
        caller = Caller(cast, name)
        caller.get("/v1/workspaces")  # the first request tells the shared budget
        asked = []
        for address in both(path, hidden):
            with statements() as run:
                answer = caller.request(method, f"/v1/{address}", body)
            assert refusal(answer) == (404, "not_found", None), name
            asked.append((run, same_bytes(answer)))
        assert asked[0] == asked[1], name
        assert any("sessions_app_session" in statement for statement in asked[0][0]), name


@pytest.mark.parametrize("route", PAGES)
def test_a_refusal_of_a_page_asks_the_same(cast: Cast, hidden: Session, route: str) -> None:
    form = {"visibility": "private", "text": "Hello", "expected_version": "1", "position": "1"}
    methods: set[str] = set()
    for name in (each for each in STRANGERS if not each.endswith("key")):
        browser = Client()
        browser.force_login(getattr(cast, name))
        for method, headers in product(("get", "post"), ({}, {"x-fragment": "1"}, JSON)):
            asked = []
            for address in both(route, hidden):
                with statements() as run:
                    data = form if method == "post" else {}
                    answer = getattr(browser, method)(f"/{address}", data, headers=headers)
                asked.append((run, same_bytes(answer)))
            assert asked[0] == asked[1], (name, method, headers)
            status = asked[0][1][0]
            assert status in {404, 405, 302}, (name, method, headers)
            if status == 404:
                methods.add(method)
                assert any("sessions_app_session" in each for each in asked[0][0])
    assert methods


@pytest.mark.parametrize("name", STRANGERS)
@pytest.mark.parametrize("position", [None, 0, 1])
def test_a_stream_that_is_refused_has_asked_the_same(
    cast: Cast, hidden: Session, name: str, position: int | None
) -> None:
    """What a stream, a subscription and the recheck of either ask before they refuse."""
    access, asked = cast.access(name), []
    for session_id in (hidden.pk, uuid7()):
        with statements() as run:
            with pytest.raises(NotFound):
                find_start(access=access, session_id=session_id, position=position, param="after")
            with pytest.raises(NotFound):
                may_read(access=access, session_id=session_id)
        asked.append(run)
    assert asked[0] == asked[1]
    assert len(asked[0]) == 2


@pytest.mark.parametrize("name", STRANGERS)
@pytest.mark.parametrize("parameter", ["parent_id", "forked_from"])
def test_a_list_by_a_session_that_is_hidden_asks_the_same(
    cast: Cast, hidden: Session, name: str, parameter: str
) -> None:
    caller = Caller(cast, name)
    workspace = cast.other_workspace if name == "outsider" else cast.workspace
    caller.get("/v1/workspaces")
    asked = []
    for session_id in (hidden.public_id, encode_id(Prefix.SESSION, uuid7())):
        with statements() as run:
            answer = caller.get(
                f"/v1/sessions?workspace_id={workspace.public_id}&{parameter}={session_id}"
            )
        assert answer.json()["data"] == []
        asked.append((run, same_bytes(answer)))
    assert asked[0] == asked[1]
