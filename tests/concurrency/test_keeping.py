"""What people keep beside a session, and its end, at the same moment: one of them is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.db import connection

from core.errors import NotFound
from orgs.access import Access
from sessions_app.models import ComposerDraft, PersonalState, Session
from sessions_app.services.archiving import delete_session
from sessions_app.services.composer_drafts import save_draft
from sessions_app.services.personal import mark_read, set_pinned
from tests.factories import Cast, make_session


def read(access: Access, session: Session) -> None:
    mark_read(access=access, session_id=session.pk, seq=1)


def pin(access: Access, session: Session) -> None:
    set_pinned(access=access, session_id=session.pk, pinned=True)


def write(access: Access, session: Session) -> None:
    save_draft(
        access=access,
        workspace_id=session.workspace_id,
        session_id=session.pk,
        text="Dear",
        expected_revision=0,
    )


@pytest.mark.parametrize("keep", [read, pin, write])
def test_a_session_that_is_deleted_meanwhile_is_gone_or_takes_it_along(
    committed_cast: Cast, keep: Callable[[Access, Session], None]
) -> None:
    owner, member = committed_cast.access("owner"), committed_cast.access("member")

    def race(act: Callable[[], None], barrier: threading.Barrier) -> None:
        try:
            barrier.wait()
            act()
        except NotFound:
            return
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        for _ in range(25):
            session, barrier = make_session(committed_cast), threading.Barrier(2)

            def delete(pk: UUID = session.pk) -> None:
                delete_session(access=owner, session_id=pk)

            def add(session: Session = session) -> None:
                keep(member, session)

            for future in [pool.submit(race, act, barrier) for act in (delete, add)]:
                future.result()
    assert Session.objects.count() == 0
    assert (ComposerDraft.objects.count(), PersonalState.objects.count()) == (0, 0)
