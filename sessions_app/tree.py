"""Sessions by their place: the children of one, and the tree below it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce

from orgs.access import Access
from sessions_app.listing import Archived, SessionPage, SessionQuery, list_sessions
from sessions_app.models import Session, Wait
from sessions_app.models.wait import ASKS_PEOPLE
from sessions_app.selectors import get_session


@dataclass(slots=True)
class Node:
    """A session and those that it started, oldest first."""

    session: Session
    children: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Tree:
    """`ancestors` from the root down to the parent. `is_truncated`: there are more sessions."""

    ancestors: list[Session]
    top: Node
    is_truncated: bool


def list_children(
    *,
    access: Access,
    session_id: UUID,
    archived: Archived = Archived.EXCLUDE,
    ascending: bool = True,
    limit: int = 20,
    page: str = "",
) -> SessionPage:
    """A page of a session's own children, of every partition. Raises NotFound, InvalidInput."""
    session = get_session(access=access, session_id=session_id)
    query = SessionQuery(
        workspace_id=session.workspace_id,
        origin_type=None,
        parent_id=session.pk,
        archived=archived,
        ascending=ascending,
        limit=limit,
        page=page,
    )
    return list_sessions(access=access, query=query)


def read_tree(*, access: Access, session_id: UUID) -> Tree:
    """The session with all below it that is not archived, at most TREE_MAX_SESSIONS of them.

    Three queries, however deep. Raises NotFound.
    """
    session = get_session(access=access, session_id=session_id)
    rows = Session.objects.visible_to(access).with_personal_state(access.user_id).with_tree_state()
    above = list(rows.filter(pk__in=session.ancestor_ids).order_by("depth"))
    below = rows.below(session).filter(archived_at__isnull=True)
    # From the top down: what is cut off never leaves a child without its parent.
    found = list(below.order_by("depth", "created_at", "pk")[: settings.TREE_MAX_SESSIONS + 1])
    nodes = {session.pk: Node(session)}
    for child in found[: settings.TREE_MAX_SESSIONS]:
        parent = nodes.get(child.parent_id or child.pk)
        if parent is not None:  # below an archived one nothing is shown
            nodes[child.pk] = Node(child)
            parent.children.append(nodes[child.pk])
    return Tree(above, nodes[session.pk], len(found) > settings.TREE_MAX_SESSIONS)


def list_ancestors(*, access: Access, session: Session) -> list[Session]:
    """From the root down to the parent, as far as the caller sees them."""
    if not session.ancestor_ids:
        return []
    return list(
        Session.objects.visible_to(access).filter(pk__in=session.ancestor_ids).order_by("depth")
    )


def list_asks_below(*, access: Access, session: Session, limit: int) -> list[Wait]:
    """What the sessions below one ask people and nobody has decided, oldest first."""
    below = Session.objects.visible_to(access).below(session).filter(archived_at__isnull=True)
    asked = Wait.objects.filter(ASKS_PEOPLE, session__in=below)
    return list(asked.select_related("session").order_by("pk")[:limit])


def find_askers(*, access: Access, sessions: Collection[Session]) -> dict[UUID, Session]:
    """For each of these, the session below it that has asked people longest, however much is
    asked there. Two queries, or none.
    """
    if not sessions:
        return {}
    seen = Session.objects.visible_to(access)
    below = seen.filter(
        root_id=Coalesce(OuterRef(OuterRef("root_id")), OuterRef(OuterRef("pk"))),
        ancestor_ids__contains=[OuterRef(OuterRef("pk"))],
        archived_at__isnull=True,
    )
    longest = Wait.objects.filter(ASKS_PEOPLE, session__in=below).order_by("pk")
    asked = seen.filter(pk__in=[session.pk for session in sessions])
    asker_of = dict(
        asked.annotate(asker_id=Subquery(longest.values("session_id")[:1])).values_list(
            "pk", "asker_id"
        )
    )
    askers = seen.in_bulk(list(filter(None, asker_of.values())))
    return {pk: askers[asker] for pk, asker in asker_of.items() if asker in askers}


def count_archived_below(*, access: Access, session_id: UUID) -> int:
    """How many sessions the archive of this one took along. Raises NotFound."""
    session = get_session(access=access, session_id=session_id)
    below = Session.objects.visible_to(access).below(session)
    return below.filter(archived_at__isnull=False, archiving_id=session.archiving_id).count()
