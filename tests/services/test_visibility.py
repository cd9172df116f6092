"""The maker decides who sees a session, for its whole tree at once."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import Conflict, Forbidden, NotFound
from sessions_app import eventlog
from sessions_app.domain.vocabulary import Visibility
from sessions_app.listing import SessionQuery, list_sessions
from sessions_app.models import Session
from sessions_app.selectors import get_session
from sessions_app.services import attempts
from sessions_app.services.attempts import Completed
from sessions_app.services.holding import pause_session
from sessions_app.services.verification import verify_session
from sessions_app.services.visibility import set_visibility
from tests.factories import Cast, claim, make_session, send
from tests.services.test_children import allow_private, make_child

PRIVATE, WORKSPACE = Visibility.PRIVATE, Visibility.WORKSPACE
OTHERS = (
    "owner",
    "admin",
    "second_member",
    "viewer",
    "workspace_key",
    "organization_key",
    "read_only_key",
)


def change(cast: Cast, session: Session, to: Visibility, by: str = "member") -> Session:
    return set_visibility(access=cast.access(by), session_id=session.pk, visibility=to)


def seen_by(cast: Cast, session: Session) -> set[str]:
    found = set()
    for name in ("member", *OTHERS):
        access = cast.access(name)
        page = list_sessions(
            access=access,
            query=SessionQuery(cast.workspace.pk, origin_type=None, parent_id=session.parent_id),
        )
        try:
            get_session(access=access, session_id=session.pk)
        except NotFound:
            assert session.pk not in [row.pk for row in page.rows]
            continue
        assert session.pk in [row.pk for row in page.rows]
        found.add(name)
    return found


def test_a_tree_is_hidden_and_shown_as_one(cast: Cast) -> None:
    """BR-090."""
    allow_private(cast)
    root = make_session(cast)
    child = make_child(cast, root)
    below = make_child(cast, child)
    for to, seers in ((PRIVATE, {"member"}), (WORKSPACE, {"member", *OTHERS})):
        change(cast, root, to)
        for session in (root, child, below):
            session.refresh_from_db()
            assert session.visibility == to
            assert seen_by(cast, session) == seers
            assert verify_session(session_id=session.pk) == []
    events = eventlog.read_after(session_id=root.pk, after=0, limit=100)
    told = [e.data for e in events if e.type == "session.visibility_changed"]
    assert [event["visibility"] for event in told] == ["private", "workspace"]
    assert told[0]["author"]["name"] == cast.member.name


def test_repeating_it_writes_nothing(cast: Cast) -> None:
    session = make_session(cast)
    head = session.head_seq
    assert change(cast, session, WORKSPACE).head_seq == head


@pytest.mark.parametrize("by", OTHERS)
def test_nobody_but_the_maker_decides(cast: Cast, by: str) -> None:
    allow_private(cast)
    session = make_session(cast)
    with pytest.raises(Forbidden) as refused:
        change(cast, session, PRIVATE, by)
    assert refused.value.code == "not_the_maker"
    change(cast, session, PRIVATE)
    with pytest.raises(NotFound):
        change(cast, session, WORKSPACE, by)


def test_what_a_key_made_stays_with_the_workspace(cast: Cast) -> None:
    allow_private(cast)
    session = make_session(cast, by="workspace_key")
    for by in ("workspace_key", "owner"):
        with pytest.raises(Forbidden):
            change(cast, session, PRIVATE, by)


def test_it_is_hidden_only_where_the_organization_allows_it_and_shown_always(cast: Cast) -> None:
    session = make_session(cast)
    with pytest.raises(Forbidden) as refused:
        change(cast, session, PRIVATE)
    assert refused.value.code == "private_not_allowed"
    allow_private(cast)
    change(cast, session, PRIVATE)
    cast.organization.allows_private_sessions = False
    cast.organization.save()
    assert seen_by(cast, session) == {"member"}
    change(cast, session, WORKSPACE)


@pytest.mark.parametrize("state", ["queued", "running", "held", "below"])
def test_nothing_that_works_is_hidden(cast: Cast, state: str) -> None:
    allow_private(cast)
    session = make_session(cast)
    child = make_child(cast, session)
    if state == "held":
        pause_session(access=cast.access("member"), session_id=session.pk)
    send(cast, child if state == "below" else session)
    if state == "running":
        claim()
    with pytest.raises(Conflict) as refused:
        change(cast, session, PRIVATE)
    assert refused.value.code == "session_working"


def test_what_works_in_private_may_be_shown(cast: Cast) -> None:
    allow_private(cast)
    session = make_session(cast, visibility=PRIVATE)
    send(cast, session)
    lease = claim().lease
    change(cast, session, WORKSPACE)
    attempts.finish_turn(lease=lease, outcome=Completed())
    assert seen_by(cast, session) == {"member", *OTHERS}
    assert verify_session(session_id=session.pk) == []


def test_a_child_is_changed_with_the_session_above_it_alone(cast: Cast) -> None:
    allow_private(cast)
    root = make_session(cast, visibility=PRIVATE)
    with pytest.raises(Conflict) as refused:
        change(cast, make_child(cast, root), WORKSPACE)
    assert refused.value.code == "follows_parent"


def test_nobody_loses_sight_of_what_they_made_themselves(cast: Cast) -> None:
    allow_private(cast)
    root = make_session(cast)
    make_child(cast, root, by="second_member")
    with pytest.raises(Conflict) as refused:
        change(cast, root, PRIVATE)
    assert refused.value.code == "made_by_others"


def test_open_pages_look_again(cast: Cast) -> None:
    allow_private(cast)
    before: Any = cast.access("member").epochs
    change(cast, make_session(cast), PRIVATE)
    assert cast.access("member").epochs != before


def test_a_maker_who_only_reads_by_now_decides_nothing(cast: Cast) -> None:
    allow_private(cast)
    session = make_session(cast)
    cast.member.workspace_memberships.filter(workspace=cast.workspace).update(role="viewer")
    with pytest.raises(Forbidden) as refused:
        change(cast, session, PRIVATE)
    assert refused.value.code == "missing_role"
