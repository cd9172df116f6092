"""Forking on pages: the message's menu, where it leads, and what the pages say of each other."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Session
from sessions_app.services import attempts
from sessions_app.services.attempts import Completed
from sessions_app.services.forking import ForkRequest, fork_session
from tests.factories import Cast, claim, make_session, message, send


@pytest.fixture
def source(cast: Cast) -> Session:
    """A prompt at seq 2, its answer at seq 7."""
    session = make_session(cast, title="Harbour survey")
    send(cast, session, "Count the stations")
    lease = claim().lease
    attempts.record(lease=lease, drafts=[message("There are nine.")])
    attempts.finish_turn(lease=lease, outcome=Completed())
    return session


def browser(cast: Cast, name: str = "member") -> Client:
    client = Client()
    client.force_login(getattr(cast, name))
    return client


def page(client: Client, session: Session) -> str:
    return client.get(f"/s/{session.public_id}/").content.decode()


def test_each_message_offers_a_fork_to_who_may_make_sessions(cast: Cast, source: Session) -> None:
    shown = page(browser(cast), source)
    assert re.findall(r'name="(from_seq|before_seq)" value="(\d+)"', shown) == [
        ("from_seq", "2"),
        ("before_seq", "2"),
        ("from_seq", "7"),
    ]
    read_only = page(browser(cast, "viewer"), source)
    assert "Fork from here" not in read_only
    assert 'id="fork"' not in read_only


def test_it_leads_to_the_fork_which_says_where_it_comes_from(cast: Cast, source: Session) -> None:
    client = browser(cast, "second_member")
    answer = client.post(f"/s/{source.public_id}/fork", {"from_seq": "7"})
    made = Session.objects.get(forked_from_id=source.pk)
    assert answer.status_code == 302
    assert answer["Location"] == f"/s/{made.public_id}/#end"
    shown = page(client, made)
    assert f'Forked from <a href="/s/{source.public_id}/#m7" dir="auto">Harbour survey</a>' in shown
    assert f"Forked by {cast.second_member.name} on" in shown
    assert "There are nine." in shown
    assert "data-composer" in shown
    assert f'<a href="/s/{made.public_id}/" dir="auto">Harbour survey (fork)</a>' in page(
        client, source
    )


def test_editing_in_a_fork_puts_the_prompt_into_its_composer(cast: Cast, source: Session) -> None:
    client = browser(cast)
    answer = client.post(f"/s/{source.public_id}/fork", {"before_seq": "2"})
    shown = client.get(answer["Location"].removesuffix("#end")).content.decode()
    assert re.search(r"<textarea[^>]*>\s*Count the stations</textarea>", shown)
    assert 'data-kind="answer"' not in shown


def test_a_cut_turn_says_so(cast: Cast, source: Session) -> None:
    client = browser(cast)
    client.post(f"/s/{source.public_id}/fork", {"from_seq": "2"})
    made = Session.objects.get(forked_from_id=source.pk)
    assert "Forked here." in page(client, made)
    assert "Stopped" not in page(client, made)


def test_neither_page_leaks_the_other(cast: Cast, source: Session) -> None:
    """The source became its maker's alone; its fork stays the workspace's."""
    access = cast.access("second_member")
    made = fork_session(access=access, session_id=source.pk, fork=ForkRequest())
    Session.objects.filter(pk=source.pk).update(visibility=Visibility.PRIVATE)
    shown = page(browser(cast, "second_member"), made)
    assert "Forked from a session that is gone, or not yours to see" in shown
    assert source.public_id not in shown
    assert '<a href="/s/' + made.public_id in page(browser(cast), source)
    Session.objects.filter(pk=source.pk).update(visibility=Visibility.WORKSPACE)
    Session.objects.filter(pk=made.pk).update(visibility=Visibility.PRIVATE)
    assert made.public_id not in page(browser(cast), source)


def test_a_refused_fork_comes_back_with_the_reason(cast: Cast, source: Session) -> None:
    client = browser(cast)
    here = f"http://testserver/s/{source.public_id}/"
    headers = {"referer": here}
    answer = client.post(f"/s/{source.public_id}/fork", {"from_seq": "3"}, headers=headers)
    assert answer["Location"] == here
    assert "Fork from a message" in page(client, source)
    viewer = browser(cast, "viewer")
    assert viewer.post(f"/s/{source.public_id}/fork", {"from_seq": "7"}).status_code == 403
    outsider = browser(cast, "outsider")
    assert outsider.post(f"/s/{source.public_id}/fork", {"from_seq": "7"}).status_code == 404
