"""Access only narrows; the rule of visibility and its SQL agree."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import Forbidden
from orgs.access import Access, Principal, PrincipalKind, WorkspaceGrant
from orgs.roles import ROLE_ACTIONS, Action, WorkspaceKind, WorkspaceRole
from sessions_app.domain.visibility import SessionFacts, admits
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Session
from tests.factories import Cast, make_session

WORKSPACES = [UUID(int=n) for n in range(1, 4)]
PEOPLE = [UUID(int=n) for n in range(10, 13)]
ORGANIZATION = UUID(int=99)


@st.composite
def accesses(draw: st.DrawFn) -> Access:
    grants = {
        workspace: WorkspaceGrant(
            ORGANIZATION,
            WorkspaceKind.SHARED,
            "w",
            role,
            ROLE_ACTIONS[role] if role else frozenset(draw(st.sets(st.sampled_from(Action)))),
        )
        for workspace in draw(st.sets(st.sampled_from(WORKSPACES)))
        for role in [draw(st.sampled_from([*WorkspaceRole, None]))]
    }
    user = draw(st.sampled_from([*PEOPLE, None]))
    kind = PrincipalKind.USER if user else PrincipalKind.KEY
    return Access(Principal(kind, user or UUID(int=50), "n", user), grants)


@given(
    accesses(),
    st.sets(st.sampled_from(WORKSPACES)),
    st.sets(st.sampled_from(Action)),
    st.sampled_from(Action),
    st.sampled_from(WORKSPACES),
    st.sampled_from([*PEOPLE, None]),
)
def test_narrowing_never_grants(
    access: Access,
    workspaces: set[UUID],
    actions: set[Action],
    action: Action,
    workspace: UUID,
    maker: UUID | None,
) -> None:
    narrowed = access.narrow(workspaces=workspaces, actions=actions)
    if narrowed.may(action, workspace, maker_id=maker):
        assert access.may(action, workspace, maker_id=maker)
        assert workspace in workspaces


def test_an_access_cannot_be_changed() -> None:
    access = Access(Principal(PrincipalKind.USER, PEOPLE[0], "Ada Moreau", PEOPLE[0]), {})
    with pytest.raises(TypeError):
        access.grants[WORKSPACES[0]] = None  # type: ignore[index]
    with pytest.raises(AttributeError):
        access.principal = None  # type: ignore[misc]


def test_a_refused_key_learns_which_scope_it_lacks(cast: Cast) -> None:
    with pytest.raises(Forbidden) as refusal:
        make_session(cast, by="read_only_key")
    assert refusal.value.details["required_scope"] == "write"


@pytest.mark.django_db
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_the_rule_and_its_sql_admit_the_same_sessions(cast: Cast, data: st.DataObject) -> None:
    workspaces = [cast.workspace, cast.other_workspace]
    people = [cast.owner, cast.member, None]
    session = make_session(cast)
    workspace = data.draw(st.sampled_from(workspaces))
    maker = data.draw(st.sampled_from(people))
    visibility = data.draw(st.sampled_from(Visibility))
    Session.objects.filter(pk=session.pk).update(
        workspace=workspace, maker=maker, visibility=visibility
    )
    who = data.draw(
        st.sampled_from(
            ["owner", "admin", "member", "viewer", "outsider", "workspace_key", "organization_key"]
        )
    )
    access = cast.access(who)
    if data.draw(st.booleans()):
        access = access.narrow(actions=data.draw(st.sets(st.sampled_from(Action))))
    facts = SessionFacts(workspace.pk, visibility, maker.pk if maker else None)
    found = Session.objects.visible_to(access).filter(pk=session.pk).exists()
    assert found == admits(access, facts)
