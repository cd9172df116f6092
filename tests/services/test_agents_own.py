"""An agent's own session, and what host code is told of whatever is created."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from core.errors import Conflict, InvalidInput, NotFound
from core.ids import uuid7
from sessions_app.creation import on_created
from sessions_app.listing import SessionQuery, list_sessions
from sessions_app.models import PersonalState, Session, Turn
from sessions_app.selectors import get_session
from sessions_app.services.agents_own import open_agents_session
from sessions_app.services.archiving import archive_session, delete_session, unarchive_session
from sessions_app.services.forking import ForkRequest, fork_session
from sessions_app.services.turns import Prompt
from tests.factories import Cast, make_session, send


def agent_of(cast: Cast) -> object:
    return make_session(cast).agent_id


def test_it_has_its_agents_id_is_in_no_default_list_and_stays(cast: Cast) -> None:
    agent_id, member = agent_of(cast), cast.access("member")
    own = open_agents_session(access=cast.access("viewer"), agent_id=agent_id)
    assert (own.pk, own.origin_type, own.maker_id) == (agent_id, "agent", None)
    assert open_agents_session(access=member, agent_id=agent_id).head_seq == own.head_seq
    listed = list_sessions(access=member, query=SessionQuery(cast.workspace.pk)).rows
    assert agent_id not in {row.pk for row in listed}
    query = SessionQuery(cast.workspace.pk, origin_type="agent")
    assert [row.pk for row in list_sessions(access=member, query=query).rows] == [agent_id]
    with pytest.raises(NotFound):
        get_session(access=member, session_id=agent_id, origin_type="work")
    send(cast, own)
    for act in (archive_session, delete_session):
        with pytest.raises(Conflict, match="agents_own_session"):
            act(access=cast.access("owner"), session_id=agent_id)
    with pytest.raises(InvalidInput, match="reserved_origin"):
        make_session(cast, origin={"type": "agent"})


def test_nobody_opens_the_session_of_what_is_no_agent_of_theirs(cast: Cast) -> None:
    agent_id = agent_of(cast)
    for _ in range(2):
        for who, named in (
            ("outsider", agent_id),
            ("member", uuid7()),
            ("member", make_session(cast).pk),
        ):
            with pytest.raises(NotFound):
                open_agents_session(access=cast.access(who), agent_id=named)
        open_agents_session(access=cast.access("member"), agent_id=agent_id)


@pytest.mark.slow
def test_two_at_once_make_one(committed_cast: Cast) -> None:
    agent_id, access = agent_of(committed_cast), committed_cast.access("member")

    def open_it(_: int) -> object:
        try:
            return open_agents_session(access=access, agent_id=agent_id).head_seq
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(open_it, range(8)))) == 1


def test_host_code_is_told_once_before_the_first_prompt_and_its_failure_harms_nothing(
    cast: Cast,
) -> None:
    told: list[tuple[object, int, int]] = []

    def note(session: Session) -> None:
        head = Session.objects.get(pk=session.pk).head_seq
        told.append((session.pk, session.turns.count(), head))

    async def wait(session: Session) -> None:
        told.append((session.pk, -1, -1))

    def fail(session: Session) -> None:
        PersonalState.objects.filter(session=session).delete()
        Turn.objects.raw("SELECT nonsense")[0]

    ends = [on_created(hook) for hook in (fail, note, wait)]
    try:
        made = make_session(cast, prompts=(Prompt("Hello"),))
        child = make_session(cast, parent_id=made.pk)
        fork = fork_session(access=cast.access("member"), session_id=child.pk, fork=ForkRequest())
        own = open_agents_session(access=cast.access("member"), agent_id=made.agent_id)
        idle = make_session(cast)
        archive_session(access=cast.access("member"), session_id=idle.pk)
        unarchive_session(access=cast.access("member"), session_id=idle.pk)
    finally:
        for end in ends:
            end()
            end()
    make_session(cast)
    expected = [each.pk for each in (made, child, fork, own, idle) for _ in range(2)]
    assert [pk for pk, _, _ in told] == expected
    assert told[0][1:] == (0, 1)
    assert made.turns.count() == 1
    assert PersonalState.objects.filter(session=made).exists()
