"""The bell. It carries no news: "session at 57". It rings after commit, and only from here."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import transaction

from core.bus import ring
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Session


def announce(*, session_id: UUID, seq: int, workspace_id: UUID, row_changed: bool) -> None:
    hint = f"s:{session_id.hex}:{seq}:{workspace_id.hex}:{int(row_changed)}"
    transaction.on_commit(lambda: ring(hint))


def announce_rows(*, session_ids: Iterable[UUID], workspace_id: UUID) -> None:
    """Their rows tell of what is below them, and something there changed; their logs did not."""
    for session_id in session_ids:
        announce(session_id=session_id, seq=0, workspace_id=workspace_id, row_changed=True)


def announce_folders(*, workspace_id: UUID) -> None:
    """Folders came, went, or are called or ordered differently: lists that show them differ."""
    transaction.on_commit(lambda: ring(f"f:{workspace_id.hex}"))


def announce_draft(*, user_id: UUID, session_id: UUID, revision: int) -> None:
    """A person's unsent text changed: their other tabs and devices may take it."""
    transaction.on_commit(lambda: ring(f"d:{user_id.hex}:{session_id.hex}:{revision}"))


def announce_waits(*, session: Session) -> None:
    """It asks people, or asks no more: the inboxes of who may decide it may differ.

    Of a private session nobody but its maker may hear, not even that something happened.
    """
    is_private = session.visibility == Visibility.PRIVATE
    only = session.maker_id.hex if is_private and session.maker_id else ""
    if only or not is_private:
        transaction.on_commit(lambda: ring(f"w:{session.workspace_id.hex}:{only}"))


def announce_turn() -> None:
    """A turn may be claimed."""
    transaction.on_commit(lambda: ring("q"))


def announce_attempt(*, attempt_id: UUID) -> None:
    """The worker of this attempt should look at its lease now."""
    transaction.on_commit(lambda: ring(f"c:{attempt_id.hex}"))
