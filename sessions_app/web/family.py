"""A session's kin on pages: the tree it stands in, its ancestors, and what those below it ask."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any
from uuid import UUID

from core.errors import NotFound
from core.ids import InvalidId, Prefix, decode_id, encode_id
from orgs.access import Access
from orgs.roles import Action
from sessions_app.models import Session, Wait
from sessions_app.tree import Node, find_askers, list_ancestors, list_asks_below, read_tree
from sessions_app.web.naming import (
    child_state,
    display_title,
    mark_of,
    note_first_words,
    session_state,
    short_word,
    state_word,
)
from sessions_app.web.rendering import render_item
from sessions_app.web.waits import item_of

ASKS_SHOWN = 5
TREE_SHOWN = 40  # beside a session; the tree's own page shows all


@dataclass(frozen=True, slots=True)
class Relative:
    """A session as its kin's pages name it."""

    id: str
    root_id: str
    title: str
    state: str
    short_word: str
    rest: str
    note: str

    @property
    def mark(self) -> str:
        return mark_of(self.state)


@dataclass(slots=True)
class TreeRow:
    session: Relative
    is_current: bool
    children: list[TreeRow] = field(default_factory=list)


def make_relative(session: Session) -> Relative:
    state = session_state(session) if session.parent_id is None else child_state(session)
    short = short_word(state, session)
    rest = state_word(state, session).removeprefix(short)
    title = display_title(session)
    note = session.preview_text if session.preview_text != title else ""
    root_id = encode_id(Prefix.SESSION, session.root_id or session.pk)
    return Relative(session.public_id, root_id, title, state, short, rest, note)


def find_relatives(access: Access, public_ids: Collection[str]) -> dict[str, Relative]:
    """Those that the reader may see, by id: one query, and one for titles where they miss."""
    wanted = [pk for public_id in public_ids if (pk := _pk(public_id))]
    if not wanted:
        return {}
    rows = list(Session.objects.visible_to(access).filter(pk__in=wanted).with_tree_state())
    note_first_words(rows)
    return {row.public_id: make_relative(row) for row in rows}


def note_askers(access: Access, sessions: Collection[Session]) -> None:
    """Notes the name of the session below that asks, where one does: for list rows."""
    asked = [each for each in sessions if each.open_waits and not each.is_waiting]
    askers = find_askers(access=access, sessions=asked)
    note_first_words(list({asker.pk: asker for asker in askers.values()}.values()))
    for session in asked:
        if session.pk in askers:
            session.__dict__["asker"] = display_title(askers[session.pk])


def crumbs(access: Access, session: Session) -> list[dict[str, str]]:
    """The way down from the root, itself left out."""
    above = list_ancestors(access=access, session=session)
    note_first_words(above)
    return [{"id": each.public_id, "title": display_title(each)} for each in above]


def asks_context(
    access: Access, session: Session, *, zone: tzinfo | None, token: str = ""
) -> dict[str, Any]:
    """The cards of what waits below, for the dock, and the name of the first that asks."""
    waits: list[Wait] = []
    if session.has_children and session.open_waits:
        waits = list_asks_below(access=access, session=session, limit=ASKS_SHOWN + 1)
    shown = waits[:ASKS_SHOWN]
    note_first_words(list({wait.session_id: wait.session for wait in shown}.values()))
    may_control = access.may(
        Action.SESSION_CONTROL, session.workspace_id, maker_id=session.maker_id
    )
    cards = []
    for wait in shown:
        item = item_of(wait)
        asker = {"title": display_title(wait.session), "id": wait.session.public_id}
        html = render_item(
            item,
            session=wait.session,
            zone=zone,
            may_control=may_control,
            token=token,
            place=session.public_id,
            asker=asker,
        )
        cards.append({"key": item.key, "html": html})
    asker_title = display_title(shown[0].session) if shown else ""
    return {"asks": cards, "asks_more": len(waits) > len(shown), "asker": asker_title}


def tree_context(access: Access, session: Session, *, is_whole: bool = False) -> dict[str, Any]:
    """The tree that a session stands in, from its root; nothing for one without kin.

    TREE_SHOWN of it and the way down to the session, unless `is_whole`.
    """
    if session.root_id is None and not session.has_children:
        return {"tree": None}
    try:
        tree = read_tree(access=access, session_id=session.root_id or session.pk)
    except NotFound:
        return {"tree": None}
    nodes = list(_level_by_level(tree.top))
    shown = nodes if is_whole else nodes[:TREE_SHOWN]
    kept = {*session.ancestor_ids, session.pk, *(node.session.pk for node in shown)}
    chosen = [node.session for node in nodes if node.session.pk in kept]
    note_first_words(chosen)
    return {
        "tree": _row(tree.top, session.pk, kept),
        "tree_total": len(nodes) - 1,
        "tree_hidden": len(nodes) - len(chosen),
        "tree_cut_at": len(nodes) - 1 if tree.is_truncated else 0,
        "root_id": encode_id(Prefix.SESSION, session.root_id or session.pk),
    }


def _level_by_level(top: Node) -> Iterator[Node]:
    level = [top]
    while level:
        yield from level
        level = [child for node in level for child in node.children]


def _row(node: Node, current: UUID, kept: Collection[UUID]) -> TreeRow:
    children = [_row(each, current, kept) for each in node.children if each.session.pk in kept]
    return TreeRow(make_relative(node.session), node.session.pk == current, children)


def _pk(public_id: str) -> UUID | None:
    try:
        return decode_id(Prefix.SESSION, public_id)
    except InvalidId:
        return None
