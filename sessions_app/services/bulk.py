"""The same act on many sessions: a result for each, and one token that takes back what it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.db import transaction

from core.errors import DomainError, InvalidInput
from orgs.access import Access, PrincipalKind
from orgs.roles import Action
from sessions_app.models import Session
from sessions_app.selectors import Lock, get_session
from sessions_app.services.archiving import archive_session, unarchive_session
from sessions_app.services.folders import move_session

_SALT = "sessions.bulk"


class BulkAction(StrEnum):
    ARCHIVE = "archive"
    UNARCHIVE = "unarchive"
    MOVE = "move"


@dataclass(frozen=True, slots=True)
class Result:
    """Of one session: `error` says why nothing was done; `changed` is False where it was so
    already, or, on taking back, where somebody else has changed it since.
    """

    session_id: UUID
    changed: bool = False
    error: DomainError | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """In the order that was asked. `undo`: a token, None where nothing changed."""

    results: list[Result]
    undo: str | None = None


# A session that changed, as a token remembers it: its id, and two more that say how it stood.
# Archived: by which archiving. Moved: from which folder, and into which.
_Change: TypeAlias = tuple[str, str, str]


def act_in_bulk(
    *, access: Access, action: BulkAction, session_ids: Sequence[UUID], folder_id: UUID | None
) -> Outcome:
    """Each in a transaction of its own: one that is refused holds up no other. Of an id that is
    named twice the second changes nothing. Raises Forbidden for a key that may change nothing.
    """
    _require_may_control(access)
    changes: list[_Change] = []

    def do(session_id: UUID) -> bool:
        change = _ACTS[action](access, session_id, folder_id)
        changes.extend([change] if change else [])
        return change is not None

    results = [_result(session_id, do) for session_id in session_ids]
    return Outcome(results, _token(access, action, changes) if changes else None)


def undo_bulk(*, access: Access, token: str) -> Outcome:
    """Takes back what that call did, and nothing else: what somebody has changed since stays.

    Raises InvalidInput `invalid_undo` for a token that is not one, is too old, or is another's.
    """
    action, changes = _read(access, token)
    back = _UNDOING[action]
    kept = {UUID(hex=pk): (pk, first, second) for pk, first, second in changes}
    return Outcome([_result(pk, lambda at: back(access, kept[at])) for pk in kept])


def _require_may_control(access: Access) -> None:
    """A person has a workspace of their own; a key may have scopes to read alone."""
    is_key = access.principal.kind is PrincipalKind.KEY
    if is_key and access.grants and not access.workspaces_with(Action.SESSION_CONTROL):
        access.require(Action.SESSION_CONTROL, next(iter(access.grants)))


def _result(session_id: UUID, do: Callable[[UUID], bool]) -> Result:
    try:
        with transaction.atomic():
            return Result(session_id, changed=do(session_id))
    except DomainError as error:
        return Result(session_id, error=error)


def _hold(access: Access, session_id: UUID) -> Session:
    return get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)


def _archive(access: Access, session_id: UUID, _: UUID | None) -> _Change | None:
    was_archived = _hold(access, session_id).archived_at is not None
    session = archive_session(access=access, session_id=session_id)
    return None if was_archived else (session_id.hex, _hex(session.archiving_id), "")


def _unarchive(access: Access, session_id: UUID, _: UUID | None) -> _Change | None:
    was_archived = _hold(access, session_id).archived_at is not None
    unarchive_session(access=access, session_id=session_id)
    return (session_id.hex, "", "") if was_archived else None


def _move(access: Access, session_id: UUID, folder_id: UUID | None) -> _Change | None:
    before = get_session(access=access, session_id=session_id, lock=Lock.ALONE).folder_id
    move_session(access=access, session_id=session_id, folder_id=folder_id)
    return None if before == folder_id else (session_id.hex, _hex(before), _hex(folder_id))


def _take_back_archive(access: Access, change: _Change) -> bool:
    session_id, archiving_id, _ = change
    session = _hold(access, UUID(hex=session_id))
    if session.archived_at is None or _hex(session.archiving_id) != archiving_id:
        return False
    unarchive_session(access=access, session_id=session.pk)
    return True


def _take_back_unarchive(access: Access, change: _Change) -> bool:
    return _archive(access, UUID(hex=change[0]), None) is not None


def _take_back_move(access: Access, change: _Change) -> bool:
    session_id, before, after = change
    session = get_session(access=access, session_id=UUID(hex=session_id), lock=Lock.ALONE)
    if _hex(session.folder_id) != after:
        return False
    folder_id = UUID(hex=before) if before else None
    move_session(access=access, session_id=session.pk, folder_id=folder_id)
    return True


_ACTS = {
    BulkAction.ARCHIVE: _archive,
    BulkAction.UNARCHIVE: _unarchive,
    BulkAction.MOVE: _move,
}
_UNDOING = {
    BulkAction.ARCHIVE: _take_back_archive,
    BulkAction.UNARCHIVE: _take_back_unarchive,
    BulkAction.MOVE: _take_back_move,
}


def _hex(pk: UUID | None) -> str:
    return pk.hex if pk else ""


def _token(access: Access, action: BulkAction, changes: Sequence[_Change]) -> str:
    told = {"by": access.principal.public_id, "action": action, "changes": changes}
    return signing.dumps(told, salt=_SALT, compress=True)


def _read(access: Access, token: str) -> tuple[BulkAction, list[_Change]]:
    try:
        told = signing.loads(token, salt=_SALT, max_age=settings.BULK_UNDO_SECONDS)
    except signing.BadSignature:
        told = {}
    if told.get("by") != access.principal.public_id:
        raise InvalidInput(
            "invalid_undo",
            "Send the undo token as the answer gave it, with the same login or key,"
            f" within {settings.BULK_UNDO_SECONDS} seconds.",
            param="undo",
        )
    return BulkAction(told["action"]), [(pk, a, b) for pk, a, b in told["changes"]]
