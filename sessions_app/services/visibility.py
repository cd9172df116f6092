"""Who sees a session and all below it: its workspace, or its maker alone.

Only the maker changes that. Towards the workspace at any time; towards *Only me* while nothing of
the tree works, so that nobody's open page watches an answer vanish, and only where the
organization still allows it. A child is never wider than its parent: the tree changes together.
"""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from core.errors import Conflict, Forbidden
from orgs.access import Access
from orgs.roles import Action
from orgs.services.epochs import bump_access_epoch
from sessions_app import eventlog
from sessions_app.domain.events import Draft
from sessions_app.domain.vocabulary import Visibility
from sessions_app.eventlog.announce import announce_waits
from sessions_app.models import Session, Turn
from sessions_app.selectors import Lock, get_session
from sessions_app.services.holding import lock_tree
from sessions_app.services.sessions import require_private_allowed
from sessions_app.wire import author_json


@transaction.atomic
def set_visibility(*, access: Access, session_id: UUID, visibility: Visibility) -> Session:
    """Repeating it writes nothing. Open pages and streams of others end within two seconds.

    Raises NotFound; Forbidden `not_the_maker`, `private_needs_a_person`, `private_not_allowed`;
    Conflict `follows_parent`, `session_working`, `made_by_others`.
    """
    session = get_session(access=access, session_id=session_id, lock=Lock.WITH_PARENT)
    _require_maker(access, session)
    access.require(Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id)
    if session.visibility == visibility:
        return session
    if session.parent_id is not None:
        raise Conflict(
            "follows_parent",
            "A child session is seen by whoever sees the session above it; change that one.",
        )
    tree = [session, *lock_tree(session)]
    if visibility is Visibility.PRIVATE:
        require_private_allowed(access=access, organization_id=session.organization_id)
        _require_idle(tree)
        _require_made_alone(access, tree)
    change = {"visibility": str(visibility), "author": author_json(access)}
    for each in tree:
        eventlog.append(session_id=each.pk, drafts=[Draft("session.visibility_changed", change)])
        each.refresh_from_db()
        announce_waits(session=each)
    bump_access_epoch(organization_id=session.organization_id)
    return get_session(access=access, session_id=session_id)


def _require_maker(access: Access, session: Session) -> None:
    if access.user_id is None or session.maker_id != access.user_id:
        raise Forbidden(
            "not_the_maker", "Only the person who made this session decides who sees it."
        )


def _require_idle(tree: list[Session]) -> None:
    if Turn.objects.filter(session__in=tree, ended_at__isnull=True).exists():
        raise Conflict(
            "session_working",
            "This session or one below it has work; stop it, or wait until it is done.",
        )


def _require_made_alone(access: Access, tree: list[Session]) -> None:
    if any(each.maker_id != access.user_id for each in tree):
        raise Conflict(
            "made_by_others",
            "Somebody else made a session below this one; it would be hidden from them.",
        )
