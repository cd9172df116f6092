"""The access matrix' columns of agents: which sessions each may look at while its turn runs.

By the access that a live attempt has, so with whoever sent its prompt, in their present roles.
"""

from __future__ import annotations

from typing import Any

import pytest

from orgs.services.workspaces import create_shared_workspace
from sessions_app.domain.end_user import EndUser
from sessions_app.domain.visibility import SessionFacts, admits
from sessions_app.domain.vocabulary import AgentAccess, Visibility
from sessions_app.models import Session
from sessions_app.services.children.spawning import agent_access
from sessions_app.services.sessions import NewSession, create_session
from tests.factories import Cast, make_session, send
from tests.services.test_children import allow_private, make_child

SESSION, USER, WORKSPACE = AgentAccess
ADA, BO = EndUser("shop", "ada"), EndUser("shop", "bo")
PRIVATE = {"visibility": Visibility.PRIVATE}
# Who asks: its session's fields, and who sent its prompt.
AGENTS: dict[str, tuple[dict[str, Any], str]] = {
    "session": ({"agent_access": SESSION, "end_user": ADA}, "member"),
    "user of Ada": ({"agent_access": USER, "end_user": ADA}, "member"),
    "user of nobody": ({"agent_access": USER}, "member"),
    "workspace": ({}, "member"),
    "workspace of Ada": ({"end_user": ADA}, "member"),
    "private": (PRIVATE, "member"),
    "private of Ada": ({**PRIVATE, "end_user": ADA}, "member"),
    "by a key": ({}, "workspace_key"),
    "by an owner": ({}, "owner"),
}
# What there is beside its own tree, and which of the above reach it, by their place.
TARGETS: dict[str, tuple[dict[str, Any], str]] = {
    "session": ({"agent_access": SESSION}, ". . . . . . . . ."),
    "session of Ada": ({"agent_access": SESSION, "end_user": ADA}, ". . . . . . . . ."),
    "user of nobody": ({"agent_access": USER}, ". . . . . . . . ."),
    "user of Ada": ({"agent_access": USER, "end_user": ADA}, ". x . . x . x . ."),
    "user of Bo": ({"agent_access": USER, "end_user": BO}, ". . . . . . . . ."),
    "workspace": ({}, ". . . x x x x x x"),
    "workspace of Ada": ({"end_user": ADA}, ". x . x x x x x x"),
    "the member's own": (PRIVATE, ". . . . . x x . ."),
    "the member's own, of Ada": (
        {**PRIVATE, "agent_access": USER, "end_user": ADA},
        ". . . . . . x . .",
    ),
    "the second member's own": ({**PRIVATE, "by": "second_member"}, ". . . . . . . . ."),
    "personal": ({"where": "personal"}, ". . . . . . . . ."),
    "another workspace": ({"where": "harbour", "by": "owner"}, ". . . . . . . . ."),
    "another tenant": ({"where": "theirs", "by": "outsider"}, ". . . . . . . . ."),
}


@pytest.fixture
def there(cast: Cast) -> dict[str, Session]:
    allow_private(cast)
    harbour = create_shared_workspace(
        access=cast.access("owner"), organization_id=cast.organization.pk, name="Harbour"
    )
    places = {
        "here": cast.workspace.pk,
        "harbour": harbour.pk,
        "theirs": cast.other_workspace.pk,
        "personal": cast.member.personal_workspaces.get(organization=cast.organization).pk,
    }
    made = {}
    for name, (fields, _) in TARGETS.items():
        own = dict(fields)
        by, where = own.pop("by", "member"), own.pop("where", "here")
        new = NewSession(workspace_id=places[where], **own)
        made[name] = create_session(access=cast.access(by), new=new)
    return made


def facts_of(session: Session) -> SessionFacts:
    named = (session.end_user_source, session.end_user_id)
    return SessionFacts(
        session.workspace_id,
        Visibility(session.visibility),
        session.maker_id,
        session.root_id or session.pk,
        AgentAccess(session.agent_access),
        named if session.end_user_id else None,
    )


@pytest.mark.parametrize("place", range(len(AGENTS)), ids=list(AGENTS))
def test_an_agent_reaches_what_the_table_says(
    cast: Cast, there: dict[str, Session], place: int
) -> None:
    fields, by = list(AGENTS.values())[place]
    own = make_session(cast, by="member" if fields.get("visibility") else by, **fields)
    child = make_child(cast, own, by="member")
    send(cast, own, by=by)
    send(cast, child, by=by)
    expected = {name for name, (_, row) in TARGETS.items() if row.split()[place] == "x"}
    for session in (own, child):  # a child is in the same tree, and reaches no further
        access = agent_access(session, turn=session.turns.get())
        seen = set(Session.objects.visible_to(access).values_list("pk", flat=True))
        assert {name for name, each in there.items() if each.pk in seen} == expected
        assert {own.pk, child.pk} <= seen
        ruled = {name for name, each in there.items() if admits(access, facts_of(each))}
        assert ruled == expected


def test_every_row_has_a_mark_for_each_agent() -> None:
    assert {len(row.split()) for _, row in TARGETS.values()} == {len(AGENTS)}
