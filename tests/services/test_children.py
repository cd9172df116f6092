"""Child sessions as rows and facts: what they take over, when they report, what goes with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.db import connection

from catalog.models import Agent, Model
from core.errors import Conflict, DomainError, Forbidden, InvalidInput, NotFound
from core.ids import Prefix, encode_id
from engine.context import fold
from engine.ports import LogEvent
from sessions_app import eventlog
from sessions_app.domain.fitting import fit_entries, size_of
from sessions_app.domain.settings import PartialSettings
from sessions_app.domain.vocabulary import AgentAccess, MemoryScope, Visibility
from sessions_app.models import Session, Turn, Wait
from sessions_app.selectors import get_session, list_queue
from sessions_app.services import attempts
from sessions_app.services.archiving import archive_session, delete_session, unarchive_session
from sessions_app.services.attempts import Completed, Failed, Lease
from sessions_app.services.calls import Call
from sessions_app.services.cancelling import cancel_session
from sessions_app.services.children import awaiting
from sessions_app.services.children.awaiting import wait_for_children
from sessions_app.services.children.results import results_of_deleted
from sessions_app.services.forking import ForkRequest, fork_session
from sessions_app.services.holding import pause_session, resume_session
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.model_settings import RequestedSettings, effective_settings
from sessions_app.services.queueing import QueuedTurn, delete_queued
from sessions_app.services.sessions import EndUser
from sessions_app.services.turns import Prompt, submit_prompt
from sessions_app.services.verification import verify_session
from sessions_app.tree import find_askers, list_children, read_tree
from tests.factories import WORKER_TOKEN, Cast, claim, make_session, message, send
from tests.services.test_turn_machine import call as tool_use
from tests.services.test_waits import Asking


def make_child(cast: Cast, parent: Session, *, by: str = "member", **fields: Any) -> Session:
    return make_session(cast, by=by, parent_id=parent.pk, **fields)


def allow_private(cast: Cast) -> None:
    cast.organization.allows_private_sessions = True
    cast.organization.save()


def told(session: Session, kind: str = "child.result") -> list[dict[str, Any]]:
    events = eventlog.read_after(session_id=session.pk, after=0, limit=1_000, types=[kind])
    return [event.data for event in events]


def work(cast: Cast, session: Session, text: str = "Done.") -> None:
    """One prompt, answered."""
    send(cast, session)
    lease = claim().lease
    attempts.record(lease=lease, drafts=[message(text)])
    attempts.finish_turn(lease=lease, outcome=Completed())


def test_a_child_has_the_reach_of_its_parent_or_less(cast: Cast) -> None:
    parent = make_session(
        cast,
        agent_access=AgentAccess.USER,
        memory_scope=MemoryScope.SESSION,
        end_user=EndUser("shop", "7"),
        origin={"type": "chat", "shop": 1},
    )
    child = make_child(cast, parent, agent_access=AgentAccess.SESSION)
    assert (child.agent_access, child.memory_scope) == ("session", "session")
    assert (child.end_user_source, child.end_user_id) == ("shop", "7")
    assert child.origin == parent.origin
    assert child.agent_snapshot == parent.agent_snapshot
    grandchild = make_child(cast, child)
    assert (grandchild.agent_access, grandchild.depth) == ("session", 2)
    assert grandchild.ancestor_ids == [parent.pk, child.pk]
    assert (grandchild.root_id, grandchild.parent_id) == (parent.pk, child.pk)


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"agent_access": AgentAccess.WORKSPACE}, "wider_than_parent", "agent_access"),
        ({"memory_scope": MemoryScope.USER}, "wider_than_parent", "memory_scope"),
        ({"visibility": Visibility.PRIVATE}, "differs_from_parent", "visibility"),
        ({"end_user": EndUser("shop", "8")}, "differs_from_parent", "end_user"),
    ],
)
def test_a_child_is_never_wider(cast: Cast, fields: dict[str, Any], code: str, param: str) -> None:
    allow_private(cast)
    parent = make_session(
        cast,
        agent_access=AgentAccess.SESSION,
        memory_scope=MemoryScope.SESSION,
        end_user=EndUser("shop", "7"),
    )
    with pytest.raises(Forbidden) as refused:
        make_child(cast, parent, **fields)
    assert (refused.value.code, refused.value.param) == (code, param)
    assert Session.objects.count() == 1
    assert told(parent, "child.started") == []


def make_agent(cast: Cast, model_id: str, **fields: Any) -> Agent:
    model = Model.objects.get(provider__organization=cast.organization, model_id=model_id)
    return Agent.objects.create(workspace=cast.workspace, model=model, **fields)


def model_of(session: Session) -> str:
    settings = effective_settings(session=session, change=PartialSettings())
    assert settings is not None
    return settings.model_id


def test_a_child_begins_with_the_model_to_which_its_parent_was_switched(cast: Cast) -> None:
    """The agent's own stands behind it, unless the call names the agent or a model."""
    make_agent(cast, "assistant", name="Clerk")
    parent = make_session(cast, agent="Clerk")
    assert model_of(make_child(cast, parent)) == "assistant"
    requested = RequestedSettings(model="demo/scripted")
    prompt = Prompt("Hello", requested=requested)
    submit_prompt(access=cast.access("member"), session_id=parent.pk, prompt=prompt)
    claim()
    parent.refresh_from_db()
    assert model_of(parent) == "scripted"
    assert model_of(make_child(cast, parent)) == "scripted"
    assert model_of(make_child(cast, parent, agent="Clerk")) == "assistant"
    named = RequestedSettings(model="demo/assistant")
    assert model_of(make_child(cast, parent, requested=named)) == "assistant"


def test_a_list_of_tools_below_the_default_ones_is_bounded_by_them(cast: Cast) -> None:
    """By those that are the default when a turn starts, down to the last child."""
    make_agent(cast, "assistant", name="Clerk", tools=["probe.append"])
    parent = make_session(cast)
    child = make_child(cast, parent, tools=["probe.lookup", "session.result"])
    grandchild = make_child(cast, child, tools=["probe.lookup"])
    other = make_child(cast, parent, agent="Clerk")
    of_agent = make_session(cast, agent="Clerk")
    below_agent = make_child(cast, of_agent)
    expected = {
        child: (("probe.lookup", "session.result"), True),
        grandchild: (("probe.lookup",), True),
        other: (("probe.append",), True),
        of_agent: (("probe.append",), False),
        below_agent: (("probe.append",), False),
    }
    for session, (tools, is_bounded) in expected.items():
        send(cast, session)
        claimed = claim()
        assert claimed.lease.session_id == session.pk
        assert (claimed.tools, claimed.tools_within_default) == (tools, is_bounded)
    with pytest.raises(Forbidden) as refused:
        make_child(cast, child, tools=["session.start_child"])
    assert refused.value.code == "wider_than_parent"


def test_where_private_sessions_are_no_longer_allowed_a_private_one_gets_no_new_child(
    cast: Cast,
) -> None:
    """Nor a wider one: what is there stays private, what would be new is refused."""
    allow_private(cast)
    parent = make_session(cast, visibility=Visibility.PRIVATE)
    child = make_child(cast, parent)
    cast.organization.allows_private_sessions = False
    cast.organization.save()
    for above in (parent, child):
        for fields in (
            {},
            {"visibility": Visibility.PRIVATE},
            {"visibility": Visibility.WORKSPACE},
        ):
            with pytest.raises(Forbidden) as refused:
                make_child(cast, above, **fields)
            assert (refused.value.code, refused.value.param) == (
                "private_not_allowed",
                "visibility",
            )
    parent.refresh_from_db()
    assert (parent.visibility, parent.children.count()) == ("private", 1)
    assert told(parent, "child.started")[-1]["child_id"] == child.public_id


def test_a_private_parent_has_private_children_of_the_same_person(cast: Cast) -> None:
    allow_private(cast)
    parent = make_session(cast, visibility=Visibility.PRIVATE)
    child = make_child(cast, parent)
    assert (child.visibility, child.maker_id) == ("private", cast.member.pk)
    for other in ("owner", "second_member", "workspace_key"):
        with pytest.raises(NotFound):
            make_child(cast, parent, by=other)
        with pytest.raises(NotFound):
            get_session(access=cast.access(other), session_id=child.pk)


def test_who_may_not_control_the_parent_adds_no_child(cast: Cast) -> None:
    parent = make_session(cast)
    with pytest.raises(DomainError):
        make_child(cast, parent, by="viewer")
    with pytest.raises(NotFound):
        make_child(cast, parent, by="outsider")
    assert Session.objects.count() == 1


def test_a_child_is_in_the_workspace_of_its_parent(cast: Cast) -> None:
    parent = make_session(cast)
    personal = cast.access("member").default_workspace_id
    with pytest.raises(InvalidInput) as refused:
        make_child(cast, parent, workspace_id=personal)
    assert refused.value.code == "workspace_differs"


def test_depth_and_number_are_bounded(cast: Cast, settings: Any) -> None:
    settings.CHILD_MAX_DEPTH, settings.CHILDREN_MAX_LIVE = 2, 2
    parent = make_session(cast)
    child = make_child(cast, parent)
    grandchild = make_child(cast, child)
    with pytest.raises(Conflict, match="2 levels deep") as deep:
        make_child(cast, grandchild)
    assert deep.value.code == "too_deep"
    for _ in range(2):
        send(cast, make_child(cast, parent))
    with pytest.raises(Conflict) as many:
        make_child(cast, parent)
    assert many.value.code == "too_many_children"
    attempts.finish_turn(lease=claim().lease, outcome=Completed())
    rested = Session.objects.get(parent=parent, reported_turns=1)
    send(cast, make_child(cast, parent))  # one of them has come to rest
    assert not send(cast, rested).held  # people are not refused for its siblings' sake
    with pytest.raises(Conflict):
        make_child(cast, parent)
    for busy in list(parent.children.filter(reported_turns=0, turn_count=1)):
        pause_session(access=cast.access("member"), session_id=busy.pk)
        archive_session(access=cast.access("member"), session_id=busy.pk)
    make_child(cast, parent)  # what an archived one holds is no work


def test_each_time_that_a_child_worked_its_parent_is_told_once(cast: Cast) -> None:
    parent = make_session(cast)
    child = make_child(cast, parent, title="Left")
    send(cast, child)
    work(cast, child, "The first.")
    assert told(parent) == []  # one more is queued
    attempts.finish_turn(lease=claim().lease, outcome=Failed("provider_error", "It broke."))
    (result,) = told(parent)
    assert (result["status"], result["number"], result["title"]) == ("failed", 2, "Left")
    assert result["error"]["message"] == "It broke."
    work(cast, child, "The second.")
    assert [r["text"] for r in told(parent)] == ["", "The second."]
    for session in (parent, child):
        assert verify_session(session_id=session.pk) == []


def test_a_long_answer_is_cut_and_says_so(cast: Cast, settings: Any) -> None:
    settings.CHILD_RESULT_MAX_CHARACTERS = 100
    parent = make_session(cast)
    work(cast, make_child(cast, parent), "é" * 1_000)
    (result,) = told(parent)
    assert (len(result["text"]), result["truncated"]) == (100, {"characters": 1_000})


def test_a_stopped_child_and_one_whose_queue_is_emptied_report(cast: Cast) -> None:
    parent = make_session(cast)
    child = make_child(cast, parent)
    access = cast.access("member")
    send(cast, child)
    lease = claim().lease
    interrupt_session(access=access, session_id=child.pk)
    attempts.acknowledge_quiet(lease=lease)
    assert [r["status"] for r in told(parent)] == ["cancelled"]
    pause_session(access=access, session_id=child.pk)
    receipt = send(cast, child)
    assert receipt.turn_id is not None
    version = list_queue(access=access, session_id=child.pk).version
    delete_queued(access=access, queued=QueuedTurn(child.pk, receipt.turn_id, version))
    assert [r["status"] for r in told(parent)] == ["cancelled", "cancelled"]


def test_of_a_cancelled_tree_only_the_top_reports(cast: Cast) -> None:
    parent = make_session(cast)
    child = make_child(cast, parent)
    grandchild = make_child(cast, child)
    for session in (child, grandchild):
        send(cast, session)
    cancel_session(access=cast.access("admin"), session_id=child.pk)
    assert [r["child_id"] for r in told(parent)] == [child.public_id]
    assert told(child) == []
    for session in (child, grandchild):
        session.refresh_from_db()
        assert session.status == "terminated"
        with pytest.raises(Conflict) as refused:
            make_child(cast, session)
        assert refused.value.code == "session_terminated"


def test_pause_and_resume_reach_all_that_is_below(cast: Cast) -> None:
    parent = make_session(cast)
    child = make_child(cast, parent)
    access = cast.access("member")
    pause_session(access=access, session_id=parent.pk)
    late = make_child(cast, parent)
    assert send(cast, child).held
    assert send(cast, late).held
    resume_session(access=access, session_id=late.pk)
    assert claim().lease.session_id == late.pk
    assert attempts.claim_turn(worker="w", token=WORKER_TOKEN) is None
    resume_session(access=access, session_id=parent.pk)
    assert claim().lease.session_id == child.pk


def test_a_parent_works_while_something_below_it_does(cast: Cast) -> None:
    parent = make_session(cast)
    child = make_child(cast, make_child(cast, parent))
    access = cast.access("member")

    def is_working() -> bool:
        return get_session(access=access, session_id=parent.pk).is_working

    assert not is_working()
    send(cast, child)
    assert is_working()
    claim()
    assert is_working()
    archive_session(access=access, session_id=child.pk, stop=True)
    assert not is_working()


def test_archive_and_restore_take_the_tree_and_no_more(cast: Cast) -> None:
    parent = make_session(cast)
    kept, gone = make_child(cast, parent), make_child(cast, parent)
    access = cast.access("member")
    archive_session(access=access, session_id=gone.pk)
    send(cast, kept)
    with pytest.raises(Conflict) as refused:
        archive_session(access=access, session_id=parent.pk)
    assert refused.value.code == "target_working"
    assert refused.value.details["sessions_below"] == 1
    with pytest.raises(Conflict):
        archive_session(access=cast.access("workspace_key"), session_id=parent.pk, stop=True)
    archive_session(access=access, session_id=parent.pk, stop=True)
    kept.refresh_from_db()
    assert kept.archived_at is not None
    assert not kept.is_at_work
    with pytest.raises(Conflict) as above:
        unarchive_session(access=access, session_id=kept.pk)
    assert above.value.code == "parent_archived"
    unarchive_session(access=access, session_id=parent.pk)
    for session in (parent, kept, gone):
        session.refresh_from_db()
    assert [s.archived_at is None for s in (parent, kept, gone)] == [True, True, False]
    for session in (parent, kept, gone):
        assert verify_session(session_id=session.pk) == []


def wait_for(lease: Lease, named: Sequence[Session] | None = None) -> None:
    """A call of this attempt waits for these children, and the attempt ends if it has to."""
    call_wait(lease, named)
    attempts.suspend_turn(lease=lease)


def call_wait(lease: Lease, named: Sequence[Session] | None = None) -> None:
    (seq,) = attempts.record(lease=lease, drafts=[tool_use()])
    made = Call(lease.session_id, seq, "call_1", "session.wait_children")
    ids = None if named is None else [child.public_id for child in named]
    attempts.record_effect(
        lease=lease,
        call=made,
        effect=lambda parent, turn: wait_for_children(parent, turn=turn, call=made, named=ids),
    )


def answer_to(parent: Session) -> dict[str, Any]:
    """What the newest call of the parent was told."""
    answer: dict[str, Any] = orjson.loads(
        told(parent, "agent.tool_result")[-1]["content"][0]["text"]
    )
    return answer


@pytest.fixture
def awaited(cast: Cast) -> tuple[Session, Session]:
    """A parent that waits for its child alone, which is paused and holds one prompt."""
    parent = make_session(cast)
    child = make_child(cast, parent)
    pause_session(access=cast.access("member"), session_id=child.pk)
    send(cast, child)
    send(cast, parent)
    wait_for(claim().lease, [child])
    assert attempts.claim_turn(worker="w", token=WORKER_TOKEN) is None
    return parent, child


def test_a_turn_that_waits_names_each_child_once_by_its_public_id(cast: Cast) -> None:
    parent = make_session(cast)
    left, right = make_child(cast, parent), make_child(cast, parent)
    for session in (parent, left, right):
        send(cast, session)
    lease = claim().lease
    call_wait(lease, [left])
    wait_for(lease, [left, right])
    (waiting,) = told(parent, "turn.waiting")
    assert waiting["child_ids"] == [left.public_id, right.public_id]


def test_what_rests_and_was_told_is_not_read_for_a_wait(
    cast: Cast, django_assert_num_queries: Any
) -> None:
    """One statement for what was told, and one for the children, which gives those that count."""
    parent = make_session(cast)
    done = [make_child(cast, parent) for _ in range(5)]
    for child in done:
        work(cast, child)
    new, busy = make_child(cast, parent), make_child(cast, parent)
    send(cast, parent)
    lease = claim().lease
    work(cast, new)
    send(cast, busy)
    turn = Turn.objects.get(pk=lease.turn_id)
    with django_assert_num_queries(2) as queries:
        found = awaiting._with_work_or_news(turn)
    assert found == [new, busy]
    assert "agent_snapshot" not in queries[1]["sql"]


@pytest.mark.parametrize("letter", ["a", "é", '"', "\n", "\x01", "\U0001f33f"])
def test_what_is_told_of_many_children_fits_and_short_answers_stay_whole(
    cast: Cast, settings: Any, letter: str
) -> None:
    settings.TOOL_EVENT_MAX_BYTES = 16_384
    parent = make_session(cast)
    children = [make_child(cast, parent, title="é" * 120) for _ in range(6)]
    work(cast, children[0], "Short.")
    for child in children[1:5]:
        work(cast, child, letter * 9_000)
    send(cast, children[5])
    failed = Failed("provider_error", letter * 9_000)
    attempts.finish_turn(lease=claim().lease, outcome=failed)
    send(cast, parent)
    call_wait(claim().lease, children)
    text = told(parent, "agent.tool_result")[-1]["content"][0]["text"]
    assert 16_000 <= len(text.encode()) <= 16_384
    first, *others = orjson.loads(text)["results"]
    assert (first["text"], first["title"], "truncated" in first) == ("Short.", "é" * 120, False)
    assert all(other["truncated"] for other in others)
    assert all(set(other["text"]) == {letter} for other in others[:4])
    assert set(others[4]["error"]["message"]) == {letter}


def test_a_hundred_children_fit_into_the_smallest_bound() -> None:
    error = {"code": "provider_context_exceeded", "message": "é" * 900}
    whole = {"session_id": "ses_" + "f" * 32, "title": "é" * 120, "status": "failed"}
    entries = [{**whole, "error": error, "text": ""} for _ in range(awaiting.NAMED_MAX)]
    assert size_of(fit_entries(entries, 32_768 - 2)) <= 32_768


def test_a_refusal_does_not_repeat_all_that_was_asked_for(cast: Cast) -> None:
    parent = make_session(cast)
    draft = Call(parent.pk, 1, "call_1", "x").refusal(InvalidInput("unknown", "y" * 60_000))
    text = draft.payload["content"][0]["text"]
    assert len(text) < 2_100
    assert text.endswith("(unknown)")


def test_a_result_belongs_to_no_turn_of_the_parent(cast: Cast) -> None:
    parent = make_session(cast)
    child = make_child(cast, parent)
    work(cast, child)
    for session in (child, parent):
        send(cast, session)
    below = claim().lease
    wait_for(claim().lease)
    attempts.finish_turn(lease=below, outcome=Completed())
    results = told(parent)
    assert [result["number"] for result in results] == [1, 2]
    assert not any("turn_id" in result for result in results)


def test_nobody_waits_for_a_child_that_is_archived_with_a_held_prompt(
    cast: Cast, awaited: tuple[Session, Session]
) -> None:
    parent, child = awaited
    access = cast.access("member")
    archive_session(access=access, session_id=child.pk)
    going_on = claim().lease
    assert going_on.session_id == parent.pk
    expected = {"session_id": child.public_id, "title": "", "status": "archived"}
    assert answer_to(parent) == {"results": [expected], "unfinished": []}
    assert told(parent) == []
    wait_for(going_on, [child])  # which is no wait
    assert told(parent, "child.awaited")[1:] == []
    assert answer_to(parent)["results"] == [expected]
    attempts.finish_turn(lease=going_on, outcome=Completed())
    for session in awaited:
        assert verify_session(session_id=session.pk) == []


def test_a_held_prompt_outlasts_the_archive_and_reports_when_it_has_run(
    cast: Cast, awaited: tuple[Session, Session]
) -> None:
    parent, child = awaited
    access = cast.access("member")
    archive_session(access=access, session_id=child.pk)
    attempts.finish_turn(lease=claim().lease, outcome=Completed())
    resume_session(access=access, session_id=child.pk)
    restored = unarchive_session(access=access, session_id=child.pk)
    assert restored.is_paused
    assert attempts.claim_turn(worker="w", token=WORKER_TOKEN) is None
    assert verify_session(session_id=child.pk) == []
    resume_session(access=access, session_id=child.pk)
    lease = claim().lease
    attempts.record(lease=lease, drafts=[message("At last.")])
    attempts.finish_turn(lease=lease, outcome=Completed())
    assert [result["text"] for result in told(parent)] == ["At last."]


def test_other_children_are_waited_for_when_one_is_archived(
    cast: Cast,
) -> None:
    parent = make_session(cast)
    left, right = make_child(cast, parent), make_child(cast, parent)
    access = cast.access("member")
    pause_session(access=access, session_id=left.pk)
    for session in (left, right, parent):
        send(cast, session)
    first, second = claim().lease, claim().lease
    assert (first.session_id, second.session_id) == (right.pk, parent.pk)
    wait_for(second)
    archive_session(access=access, session_id=left.pk)
    assert attempts.claim_turn(worker="w", token=WORKER_TOKEN) is None
    attempts.finish_turn(lease=first, outcome=Completed())
    assert claim().lease.session_id == parent.pk
    assert [each["status"] for each in answer_to(parent)["results"]] == ["archived", "completed"]


def test_a_deleted_child_ends_the_wait_for_it(cast: Cast, awaited: tuple[Session, Session]) -> None:
    parent, child = awaited
    delete_session(access=cast.access("admin"), session_id=child.pk)
    assert [result["status"] for result in told(parent)] == ["cancelled"]
    assert claim().lease.session_id == parent.pk
    assert answer_to(parent)["results"][0]["status"] == "cancelled"
    assert verify_session(session_id=parent.pk) == []


def test_deleting_takes_the_tree(cast: Cast) -> None:
    parent = make_session(cast)
    child = make_child(cast, parent)
    send(cast, make_child(cast, child))
    admin = cast.access("admin")
    with pytest.raises(Conflict) as refused:
        delete_session(access=admin, session_id=child.pk)
    assert refused.value.code == "target_working"
    assert refused.value.details["sessions_below"] == 1
    delete_session(access=admin, session_id=child.pk, stop=True)
    assert list(Session.objects.values_list("pk", flat=True)) == [parent.pk]
    assert verify_session(session_id=parent.pk) == []


def test_the_tree_is_read_from_the_top_down_without_archived_branches(cast: Cast) -> None:
    root = make_session(cast)
    left, right = make_child(cast, root), make_child(cast, root)
    below_left, below_right = make_child(cast, left), make_child(cast, right)
    access = cast.access("viewer")
    archive_session(access=cast.access("member"), session_id=right.pk)
    tree = read_tree(access=access, session_id=root.pk)
    assert [node.session.pk for node in tree.top.children] == [left.pk]
    assert [node.session.pk for node in tree.top.children[0].children] == [below_left.pk]
    inner = read_tree(access=access, session_id=below_left.pk)
    assert [session.pk for session in inner.ancestors] == [root.pk, left.pk]
    page = list_children(access=access, session_id=root.pk)
    assert [row.pk for row in page.rows] == [left.pk]
    with pytest.raises(NotFound):
        read_tree(access=cast.access("outsider"), session_id=below_right.pk)


def test_a_tree_costs_the_same_whatever_its_size(
    cast: Cast, django_assert_num_queries: Any
) -> None:
    root = make_session(cast)
    middle = make_child(cast, root)
    for _ in range(5):
        make_child(cast, make_child(cast, middle))
    access = cast.access("member")
    with django_assert_num_queries(3):
        read_tree(access=access, session_id=middle.pk)
    with django_assert_num_queries(2):
        list_children(access=access, session_id=root.pk)


def test_the_session_that_has_asked_longest_is_named_however_much_is_asked(
    cast: Cast, django_assert_num_queries: Any
) -> None:
    roots = [make_session(cast), make_session(cast)]
    first = make_child(cast, roots[0])
    middle = make_child(cast, roots[0])
    inner, gone, other = (make_child(cast, each) for each in (middle, middle, roots[1]))
    for session in (gone, first, inner, other):
        Asking(cast, session).approval()
    asked = Wait.objects.get(session=inner)
    fields = {f.attname: getattr(asked, f.attname) for f in Wait._meta.fields if f.name != "id"}
    Wait.objects.bulk_create(
        Wait(**{**fields, "event_seq": 1_000 + number}) for number in range(300)
    )
    archive_session(access=cast.access("member"), session_id=gone.pk, stop=True)
    access = cast.access("viewer")
    with django_assert_num_queries(2):
        askers = find_askers(access=access, sessions=[*roots, middle, inner])
    assert askers == {roots[0].pk: first, middle.pk: inner, roots[1].pk: other}
    assert find_askers(access=cast.access("outsider"), sessions=roots) == {}


def test_a_fork_keeps_what_its_source_was_told_of_its_children(cast: Cast) -> None:
    """The model of the fork reads the same history, results between turns and by calls alike."""
    parent = make_session(cast)
    child = make_child(cast, parent)
    work(cast, child, "Of the first.")
    send(cast, parent)
    lease = claim().lease
    send(cast, child)
    below = claim().lease
    wait_for(lease)
    attempts.record(lease=below, drafts=[message("Of the second.")])
    attempts.finish_turn(lease=below, outcome=Completed())
    lease = claim().lease
    attempts.record(lease=lease, drafts=[message("So.")])
    attempts.finish_turn(lease=lease, outcome=Completed())
    forked = fork_session(access=cast.access("member"), session_id=parent.pk, fork=ForkRequest())
    assert verify_session(session_id=forked.pk) == []
    assert forked.parent_id is None
    texts = [item_texts(session) for session in (parent, forked)]
    assert texts[0] == texts[1]
    assert "Of the first." in texts[0][0]
    (told_ids,) = [r["child_result_ids"] for r in told(forked, "agent.tool_result")]
    assert told_ids == [told(forked)[1]["id"]]


def item_texts(session: Session) -> list[str]:
    """What the model of the next turn is sent of the past, as texts."""
    events = eventlog.read_after(session_id=session.pk, after=0, limit=1_000)
    logged = [
        LogEvent(e.seq, e.type, f"trn_{e.turn_id.hex}" if e.turn_id else None, e.data)
        for e in events
    ]
    history, _ = fold(logged, turn_id="trn_next", provider_id="")
    return [item.text for item in history]


def test_what_a_deleted_child_said_is_told_all_the_same(cast: Cast) -> None:
    """Its result is in the parent's log, which outlives it."""
    parent = make_session(cast)
    gone, busy, silent = (make_child(cast, parent, title=t) for t in ("Rates", "Ports", "Idle"))
    send(cast, parent)
    lease = claim().lease
    work(cast, gone, "Rates are fine.")
    send(cast, busy)
    below = claim().lease
    call_wait(lease, [gone, busy, silent])
    for child in (gone, silent):
        delete_session(access=cast.access("admin"), session_id=child.pk)
    attempts.finish_turn(lease=below, outcome=Completed())
    results = {each["session_id"]: each for each in answer_to(parent)["results"]}
    assert results.keys() == {gone.public_id, busy.public_id, silent.public_id}
    assert results[gone.public_id] == {
        "session_id": gone.public_id,
        "title": "Rates",
        "status": "completed",
        "text": "Rates are fine.",
        "deleted": True,
    }
    assert results[silent.public_id]["status"] == "deleted"
    newest = told(parent, "agent.tool_result")[-1]
    assert set(newest["child_result_ids"]) == {each["id"] for each in told(parent)}


def test_a_made_up_child_costs_one_look_at_the_index_of_results(
    cast: Cast, django_assert_num_queries: Any
) -> None:
    """However many results the parent's log has: who asks holds its row."""
    parent = make_session(cast)
    made_up = uuid4()
    with django_assert_num_queries(1) as queries:
        (told,) = results_of_deleted(parent, [made_up])
    assert told == {"child_id": encode_id(Prefix.SESSION, made_up), "status": "deleted"}
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {queries[0]['sql']}")
        plan = "\n".join(line for (line,) in cursor)
    assert "newest_child_result" in plan
    assert "(payload ->> 'child_id'::text) = child_id" in plan, plan


def test_a_deleted_child_is_known_by_name_while_its_result_is(cast: Cast) -> None:
    parent = make_session(cast)
    gone, silent = make_child(cast, parent), make_child(cast, parent)
    work(cast, gone, "First.")
    work(cast, gone, "Second.")
    for child in (gone, silent):
        delete_session(access=cast.access("admin"), session_id=child.pk)
    send(cast, parent)
    lease = claim().lease
    call_wait(lease, [gone])
    (known,) = answer_to(parent)["results"]
    assert (known["text"], known["deleted"]) == ("Second.", True)
    call_wait(lease, [silent])
    refused = told(parent, "agent.tool_result")[-1]
    assert refused["is_error"]
    assert silent.public_id in refused["content"][0]["text"]
