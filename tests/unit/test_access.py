"""Access only narrows; the rule of visibility and its SQL agree."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import Forbidden
from orgs.access import Access, AgentReach, Principal, PrincipalKind, WorkspaceGrant
from orgs.roles import ROLE_ACTIONS, Action, WorkspaceKind, WorkspaceRole
from sessions_app.domain.visibility import SessionFacts, admits, reaches
from sessions_app.domain.vocabulary import AgentAccess, Visibility
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
    facts = SessionFacts(workspace.pk, visibility, maker.pk if maker else None, session.pk)
    found = Session.objects.visible_to(access).filter(pk=session.pk).exists()
    assert found == admits(access, facts)


SESSION, USER, SHARED = AgentAccess
ADA, BO = ("shop", "ada"), ("shop", "bo")


@pytest.mark.parametrize(
    ("caller", "target", "is_same_user", "is_reached"),
    [
        (SESSION, SESSION, True, False),
        (SESSION, USER, True, False),
        (SESSION, SHARED, True, False),
        (USER, SESSION, True, False),
        (USER, USER, True, True),
        (USER, USER, False, False),
        (USER, SHARED, True, True),
        (USER, SHARED, False, False),
        (SHARED, SESSION, True, False),
        (SHARED, USER, True, True),
        (SHARED, USER, False, False),
        (SHARED, SHARED, True, True),
        (SHARED, SHARED, False, True),
    ],
)
def test_the_table_of_pairs(
    caller: AgentAccess, target: AgentAccess, is_same_user: bool, is_reached: bool
) -> None:
    agent = AgentReach(WORKSPACES[0], UUID(int=1), caller, ADA, is_private=False)
    facts = SessionFacts(
        WORKSPACES[0],
        Visibility.WORKSPACE,
        None,
        UUID(int=2),
        target,
        ADA if is_same_user else BO,
    )
    assert reaches(agent, facts) is is_reached
    own = replace(facts, root_id=UUID(int=1))
    assert reaches(agent, own)
    nobody = replace(agent, end_user=None)
    # None never equals none.
    expected = caller is target is SHARED
    assert reaches(nobody, replace(facts, end_user=None)) is expected


def test_a_private_session_is_reached_from_a_private_one_alone() -> None:
    agent = AgentReach(WORKSPACES[0], UUID(int=1), SHARED, None, is_private=False)
    facts = SessionFacts(WORKSPACES[0], Visibility.PRIVATE, PEOPLE[0], UUID(int=2))
    assert not reaches(agent, facts)
    assert reaches(replace(agent, is_private=True), facts)


def test_an_agent_leaves_neither_its_workspace_nor_its_initiators_sight(cast: Cast) -> None:
    owner = cast.access("owner")
    agent = AgentReach(cast.workspace.pk, UUID(int=1), SHARED, None, is_private=True)
    access = owner.as_agent(agent)
    assert set(access.grants) == {cast.workspace.pk}
    assert access.organizations == {}
    assert access.agent == agent
    assert access.narrow(actions=Action).agent == agent


@pytest.mark.django_db
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_the_reach_of_agents_and_its_sql_admit_the_same_sessions(
    cast: Cast, data: st.DataObject
) -> None:
    draw = data.draw
    users = st.sampled_from([None, ADA, BO])
    root = make_session(cast)
    child = make_session(cast, parent_id=root.pk)
    maker = draw(st.sampled_from([cast.owner, cast.member, None]))
    visibility, agent_access = (draw(st.sampled_from(kind)) for kind in (Visibility, AgentAccess))
    end_user = draw(users)
    source, own_id = end_user or ("", "")
    Session.objects.filter(pk__in=[root.pk, child.pk]).update(
        maker=maker,
        visibility=visibility,
        agent_access=agent_access,
        end_user_source=source,
        end_user_id=own_id,
    )
    own_root = draw(st.sampled_from([root.pk, UUID(int=7)]))
    agent = AgentReach(
        draw(st.sampled_from([cast.workspace.pk, cast.other_workspace.pk])),
        own_root,
        draw(st.sampled_from(AgentAccess)),
        draw(users),
        draw(st.booleans()),
    )
    who = draw(st.sampled_from(["owner", "member", "viewer", "workspace_key"]))
    access = cast.access(who).as_agent(agent)
    facts = SessionFacts(
        cast.workspace.pk, visibility, maker.pk if maker else None, root.pk, agent_access, end_user
    )
    found = set(Session.objects.visible_to(access).values_list("pk", flat=True))
    assert found == ({root.pk, child.pk} if admits(access, facts) else set())
    Session.objects.filter(pk=child.pk).delete()
    Session.objects.filter(pk=root.pk).delete()
