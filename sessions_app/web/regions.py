"""The parts of a session page that are state, not history: each can be rendered alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import tzinfo
from typing import Any

from django.template.loader import render_to_string

from orgs.access import Access
from orgs.roles import Action
from sessions_app import selectors
from sessions_app.domain.vocabulary import SessionStatus, Visibility
from sessions_app.models import Session
from sessions_app.web.family import asks_context, tree_context
from sessions_app.web.naming import display_title, session_state, state_word
from sessions_app.web.strip import strip_context

# Which parts an event may change.
REGIONS_BY_TYPE: dict[str, frozenset[str]] = {
    "session.updated": frozenset({"title", "model"}),
    "session.archived": frozenset({"state", "strip", "foot", "menu"}),
    "session.unarchived": frozenset({"state", "strip", "foot", "menu"}),
    "session.visibility_changed": frozenset({"seen_by", "menu"}),
    "session.status_running": frozenset({"state", "strip"}),
    "session.status_rescheduled": frozenset({"state", "strip"}),
    "session.status_idle": frozenset({"state", "strip"}),
    "session.status_terminated": frozenset({"state", "strip", "foot", "menu"}),
    "user.message": frozenset({"strip", "state", "title"}),
    "session.paused": frozenset({"state", "strip", "menu"}),
    "session.resumed": frozenset({"state", "strip", "menu"}),
    "queue.changed": frozenset({"strip"}),
    "turn.withdrawn": frozenset({"strip"}),
    "turn.superseded": frozenset({"strip", "usage", "state"}),
    "turn.started": frozenset({"strip", "state", "model"}),
    "turn.completed": frozenset({"strip", "usage", "state"}),
    "turn.failed": frozenset({"strip", "usage", "state"}),
    "turn.cancelled": frozenset({"strip", "usage", "state"}),
    "turn.recovering": frozenset({"strip", "state"}),
    "attempt.started": frozenset({"strip", "state"}),
    "step.checkpoint": frozenset({"strip", "model"}),
    "agent.tool_use": frozenset({"state"}),
    "agent.question": frozenset({"state"}),
    "agent.question_closed": frozenset({"state", "strip"}),
    "user.tool_confirmation": frozenset({"state", "strip"}),
    "user.question_response": frozenset({"state", "strip"}),
    "turn.waiting": frozenset({"state", "strip"}),
    "model.usage": frozenset({"usage"}),
    "child.started": frozenset({"tree", "state"}),
    "child.awaited": frozenset({"state", "strip"}),
    "child.result": frozenset({"tree", "state", "strip", "asks"}),
}
ALL_REGIONS = (
    "title",
    "state",
    "seen_by",
    "model",
    "strip",
    "foot",
    "menu",
    "usage",
    "asks",
    "tree",
)
# What changes of the sessions below one may show on its page.
FAMILY_REGIONS = ("state", "strip", "asks", "tree")


def regions_of(types: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(REGIONS_BY_TYPE.get(kind, frozenset()) for kind in types))


def may(access: Access, action: Action, session: Session) -> bool:
    return access.may(action, session.workspace_id, maker_id=session.maker_id)


def session_context(
    *,
    session: Session,
    access: Access,
    zone: tzinfo | None,
    names: Collection[str] = ALL_REGIONS,
    token: str = "",
) -> dict[str, Any]:
    """What the named parts show. The session was read with this access just now.

    `token` is for forms that are sent without a script.
    """
    state = session_state(session)
    context: dict[str, Any] = {
        "session": session,
        "session_id": session.public_id,
        "title": display_title(session),
        "state": state,
        "state_word": state_word(state, session),
        "may_control": may(access, Action.SESSION_CONTROL, session),
        "may_administer": may(access, Action.SESSION_ADMINISTER, session),
        "is_archived": session.archived_at is not None,
        "is_open": session.archived_at is None and session.status != SessionStatus.TERMINATED,
        "zone": zone,
        "workspace_name": access.grants[session.workspace_id].name,
    }
    if "menu" in names:
        context |= _who_may_see(access, session)
    if {"state", "strip", "asks"} & set(names):
        context |= asks_context(access, session, zone=zone, token=token)
    if "tree" in names:
        context |= tree_context(access, session)
    if "strip" in names:
        context |= strip_context(session)
    if "usage" in names:
        context["usage"] = _usage(session)
    return context


def _who_may_see(access: Access, session: Session) -> dict[str, bool]:
    """What the maker is offered; the service decides."""
    is_own = session.maker_id == access.user_id is not None
    decides = is_own and session.parent_id is None and may(access, Action.SESSION_CONTROL, session)
    is_private = session.visibility == Visibility.PRIVATE
    return {
        "may_show": decides and is_private,
        "may_hide": decides
        and not is_private
        and selectors.allows_private(access=access, workspace_id=session.workspace_id),
    }


def render_regions(
    *, session: Session, access: Access, zone: tzinfo | None, names: Collection[str]
) -> dict[str, str]:
    """Markup by name."""
    context = session_context(session=session, access=access, zone=zone, names=names)
    return {name: render_to_string(f"parts/{name}.html", context) for name in sorted(names)}


def _usage(session: Session) -> dict[str, Any]:
    used = selectors.sum_usage(session)
    totals = [turn.input_tokens + turn.output_tokens for turn in used][-7:]
    top = max(totals, default=0) or 1
    width = 100 / max(len(totals), 1)
    bars = [
        {
            "x": f"{place * width:.1f}",
            "width": f"{max(width - 2, 1):.1f}",
            "height": f"{max(2, 34 * total / top):.1f}",
            "y": f"{34 - max(2, 34 * total / top):.1f}",
        }
        for place, total in enumerate(totals)
    ]
    return {
        "input": short_number(sum(turn.input_tokens for turn in used)),
        "output": short_number(sum(turn.output_tokens for turn in used)),
        "is_counted": any(totals),
        "turns": session.turn_count,
        "bars": bars if len(bars) > 1 else [],
        "first": max(session.turn_count - len(bars) + 1, 1),
    }


def short_number(number: int) -> str:
    """`950`, `76k`, `1.2M`."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"
