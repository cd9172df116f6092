"""Who sees a session, on pages: chosen when it begins, changed by its maker from the menu."""

from __future__ import annotations

import pytest

from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Session
from tests.factories import Cast, make_session
from tests.services.test_children import allow_private, make_child
from tests.web.test_control import JSON, browser


def page(cast: Cast, session: Session, who: str = "member") -> str:
    return browser(getattr(cast, who)).get(f"/s/{session.public_id}/").content.decode()


def test_a_session_begins_for_oneself_alone_where_that_is_allowed(cast: Cast) -> None:
    client, workspace = browser(cast.member), f"/w/{cast.workspace.public_id}"
    form = {"text": "Only for me", "visibility": "private", "key": "0" * 32}
    assert "Only me" not in client.get(f"{workspace}/new/").content.decode()
    assert client.post(f"{workspace}/begin", form).status_code == 403
    allow_private(cast)
    assert "Only me" in client.get(f"{workspace}/new/").content.decode()
    client.post(f"{workspace}/begin", form)
    session = Session.objects.get()
    assert (session.visibility, session.maker_id) == ("private", cast.member.pk)
    assert "Only me" not in browser(cast.viewer).get(f"{workspace}/new/").content.decode()


def test_the_maker_hides_it_and_shows_it_again(cast: Cast) -> None:
    allow_private(cast)
    session = make_session(cast, title="Survey")
    client, path = browser(cast.member), f"/s/{session.public_id}/visibility"
    assert 'value="private"' in page(cast, session)
    client.post(path, {"visibility": "private"})
    session.refresh_from_db()
    assert session.visibility == Visibility.PRIVATE
    shown = page(cast, session)
    assert "Let the workspace see it" in shown
    assert "Only Chiara Novak sees this session since" in shown
    client.post(path, {"visibility": "workspace"})
    session.refresh_from_db()
    assert session.visibility == Visibility.WORKSPACE
    assert "let the workspace see this session" in page(cast, session, "viewer")


@pytest.mark.parametrize("who", ["owner", "admin", "second_member", "viewer"])
def test_others_are_offered_nothing_and_may_change_nothing(cast: Cast, who: str) -> None:
    allow_private(cast)
    session = make_session(cast)
    assert "/visibility" not in page(cast, session, who)
    answer = browser(getattr(cast, who)).post(
        f"/s/{session.public_id}/visibility", {"visibility": "private"}
    )
    assert answer.status_code == 403
    session.refresh_from_db()
    assert session.visibility == Visibility.WORKSPACE


def test_a_child_offers_no_change_of_its_own(cast: Cast) -> None:
    allow_private(cast)
    child = make_child(cast, make_session(cast))
    assert "/visibility" not in page(cast, child)


@pytest.mark.parametrize("chosen", ["", "everybody", "Private"])
def test_an_unknown_choice_is_refused(cast: Cast, chosen: str) -> None:
    path = f"/s/{make_session(cast).public_id}/visibility"
    assert browser(cast.member).post(path, {"visibility": chosen}, **JSON).status_code == 400
