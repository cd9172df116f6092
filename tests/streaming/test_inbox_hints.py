"""What rings where people are asked, or asked no more: for whom, and when not at all."""

from __future__ import annotations

from typing import Any

from core import bus
from core.db import in_db_thread
from orgs.services.epochs import bump_access_epoch
from sessions_app.domain.vocabulary import Visibility, WaitKind
from sessions_app.models import Session, Wait
from sessions_app.services import attempts
from sessions_app.services.archiving import delete_session
from sessions_app.services.attempts import Completed
from sessions_app.services.calls import Call
from sessions_app.services.children.awaiting import wait_for_children
from sessions_app.services.interruption import interrupt_session
from sessions_app.services.settling import expire_waits
from tests.factories import Cast, claim, make_session, message, send
from tests.services.test_children import allow_private
from tests.services.test_turn_machine import call as tool_use
from tests.services.test_waits import Asking


def make_private(cast: Cast) -> Session:
    allow_private(cast)
    return make_session(cast, visibility=Visibility.PRIVATE)


def waits_for_child(cast: Cast, timeout_seconds: int | None = None) -> tuple[Session, Any]:
    """A parent that waits for a child, and the lease of the child's turn."""
    parent = make_session(cast)
    child = make_session(cast, parent_id=parent.pk)
    send(cast, parent)
    lease = claim().lease
    send(cast, child)
    below = claim().lease
    (seq,) = attempts.record(lease=lease, drafts=[tool_use()])
    made = Call(parent.pk, seq, "call_1", "session.wait_children")
    attempts.record_effect(
        lease=lease,
        call=made,
        effect=lambda held, turn: wait_for_children(
            held, turn=turn, call=made, named=None, timeout_seconds=timeout_seconds
        ),
    )
    assert (lease.session_id, below.session_id) == (parent.pk, child.pk)
    assert attempts.suspend_turn(lease=lease)
    return parent, below


def finish(lease: Any) -> None:
    attempts.record(lease=lease, drafts=[message("Done.")])
    attempts.finish_turn(lease=lease, outcome=Completed())


async def heard_of_waits(cast: Cast, act: Any) -> list[str]:
    """The hints about waits that `act` rings, each once."""
    async with bus.listen(("w", "e")) as hints:
        assert await anext(hints) is bus.RESYNC
        await in_db_thread(act)
        await in_db_thread(
            bump_access_epoch, organization_id=cast.organization.pk
        )  # the last to be rung
        heard: set[str] = set()
        async for each in hints:
            heard |= each
            if any(hint.startswith("e") for hint in each):
                return sorted(hint for hint in heard if hint.startswith("w"))
    raise AssertionError


async def test_every_hint_of_a_private_session_names_its_maker(
    committed_cast: Cast, postgres_bus: str
) -> None:
    asking = await in_db_thread(lambda: Asking(committed_cast, make_private(committed_cast)))
    mine = f"w:{committed_cast.workspace.pk.hex}:{committed_cast.member.pk.hex}"

    def ask_and_expire() -> None:
        asking.question(expires_in=-1)
        assert expire_waits() == 1

    assert await heard_of_waits(committed_cast, asking.approval) == [mine]
    assert await heard_of_waits(committed_cast, ask_and_expire) == [mine]


async def test_a_wait_for_children_asks_nobody_and_rings_for_nobody(
    committed_cast: Cast, postgres_bus: str
) -> None:
    access = await in_db_thread(committed_cast.access, "member")

    def answer() -> None:
        parent, below = waits_for_child(committed_cast)
        finish(below)
        goes_on = claim().lease
        assert goes_on.session_id == parent.pk
        finish(goes_on)

    def stop() -> None:
        parent, _ = waits_for_child(committed_cast)
        interrupt_session(access=access, session_id=parent.pk)

    def expire() -> None:
        waits_for_child(committed_cast, timeout_seconds=0)
        assert expire_waits() == 1

    for act in (answer, stop, expire):
        assert await heard_of_waits(committed_cast, act) == [], act.__name__
    assert await in_db_thread(Wait.objects.filter(kind=WaitKind.CHILDREN).count) == 3


async def test_what_is_deleted_asks_no_more_also_below(
    committed_cast: Cast, postgres_bus: str
) -> None:
    parent = await in_db_thread(make_session, committed_cast)
    child = await in_db_thread(lambda: make_session(committed_cast, parent_id=parent.pk))
    asking = await in_db_thread(Asking, committed_cast, child)
    await in_db_thread(asking.approval)
    access = await in_db_thread(committed_cast.access, "owner")
    shared = f"w:{committed_cast.workspace.pk.hex}:"
    heard = await heard_of_waits(
        committed_cast,
        lambda: delete_session(access=access, session_id=parent.pk, stop=True),
    )
    assert heard == [shared]
