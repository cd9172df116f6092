"""Items made into fragments: the one markup that pages, Load earlier and live frames share."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from core.clock import now
from core.ids import Prefix, encode_id
from core.text import clip, strip_marks
from sessions_app.models import Session
from sessions_app.web.items import Call, Item, call_summary
from sessions_app.web.markdown import render_blocks, render_markdown
from sessions_app.web.times import day_name, duration
from sessions_app.web.waits import APPROVAL, Typed, argument_views, question_views

PROMPT_SHOWN_CHARACTERS = 12_000
PROMPT_OPEN_CHARACTERS = 1_200
PROMPT_OPEN_LINES = 16
OUTPUT_SHOWN_CHARACTERS = 1_600
INPUT_SHOWN_CHARACTERS = 1_600
FOLD_CALLS_ABOVE = 4
_INLINE_CODE = re.compile(r"`([^`\n]{1,300})`")
_TOOL_ICONS = (
    (("read", "file", "write", "edit"), "file-text"),
    (("search", "find", "lookup"), "search"),
    (("shell", "exec", "run", "append"), "square-terminal"),
    (("query", "database", "sql"), "database"),
    (("http", "fetch", "web"), "globe"),
    (("session",), "messages-square"),
)


@dataclass(frozen=True, slots=True)
class Placed:
    """An item with its markup, and the day mark that stands above it."""

    html: SafeString
    day: str
    day_key: str


def render_items(
    items: list[Item],
    *,
    session: Session,
    zone: tzinfo,
    may_control: bool = False,
    may_fork: bool = False,
    token: str = "",
    typed: Typed | None = None,
    relatives: Mapping[str, Any] | None = None,
) -> list[Placed]:
    """With a day mark above the first item and above each prompt of a new day."""
    placed: list[Placed] = []
    shown: date | None = None
    today = now().astimezone(zone).date()
    for item in items:
        day = item.at.astimezone(zone).date()
        begins = shown is None or (item.type == "user.message" and day != shown)
        shown = day if begins else shown
        mark = (day_name(day, today), day.isoformat()) if begins else ("", "")
        markup = render_item(
            item,
            session=session,
            zone=zone,
            may_control=may_control,
            may_fork=may_fork,
            token=token,
            typed=typed,
            relatives=relatives,
        )
        placed.append(Placed(markup, *mark))
    return placed


def render_item(
    item: Item,
    *,
    session: Session,
    zone: tzinfo | None = None,
    may_control: bool = False,
    may_fork: bool = False,
    token: str = "",
    typed: Typed | None = None,
    place: str = "",
    relatives: Mapping[str, Any] | None = None,
    asker: Mapping[str, str] | None = None,
) -> SafeString:
    """`may_control`: the reader may act on it, where it offers an act; `may_fork`: make a session
    of their own from a message.

    `token` is for forms that are sent without a script, `place` where such a form comes back to.
    `relatives`: the sessions by id that its fragment may name and link. `asker`: {title, id} of
    the session that asks, on a page of another one.
    """
    context: dict[str, Any] = {
        "item": item,
        "zone": zone,
        "session_id": encode_id(Prefix.SESSION, session.pk),
        "may_control": may_control,
        "may_fork": may_fork,
        "token": token,
        "place": place,
        "asker": asker,
        **_VIEWS.get(item.type, _no_view)(item),
    }
    if item.type == "agent.question":
        context |= _question(item, typed)
    elif item.type == APPROVAL:
        context |= _approval(item)
    context |= _kin(item, relatives or {})
    _name_awaited(context, relatives or {})
    return SafeString(render_to_string(f"events/{item.type}.html", context).strip())


def _no_view(item: Item) -> dict[str, Any]:
    return {}


def _kin(item: Item, relatives: Mapping[str, Any]) -> dict[str, Any]:
    """The session that an item is about or from."""
    named = item.facts.get("child") or item.facts.get("from")
    return {"relative": relatives.get(named) if named else None}


def _name_awaited(context: dict[str, Any], relatives: Mapping[str, Any]) -> None:
    for view in context.get("calls", ()):
        view["awaits"] = [relatives[each] for each in view["call"].awaits if each in relatives]


def _child(item: Item) -> dict[str, Any]:
    result = item.facts["result"]
    prose = render_markdown(result["text"]) if result and result["text"].strip() else ""
    begins = clip(strip_marks(result["text"].strip().split("\n")[0]), 200) if prose else ""
    return {
        "result": result,
        "begins": begins,
        "prose": mark_safe(prose),  # noqa: S308 (cleaned by an allow-list)
    }


def _prompt(item: Item) -> dict[str, Any]:
    shown = item.text[:PROMPT_SHOWN_CHARACTERS]
    begins = _beginning(shown)
    return {
        "text": plain_text(begins),
        "rest": plain_text(shown[len(begins) :].lstrip("\n")),
        "hidden": len(item.text) - len(shown),
    }


def _beginning(text: str) -> str:
    """As much of a long prompt as stands open, cut between words."""
    lines = text.split("\n")
    if len(text) <= PROMPT_OPEN_CHARACTERS and len(lines) <= PROMPT_OPEN_LINES:
        return text
    head = "\n".join(lines[:PROMPT_OPEN_LINES])[:PROMPT_OPEN_CHARACTERS]
    cut = max(head.rfind(" "), head.rfind("\n"))
    return head[:cut] if cut > PROMPT_OPEN_CHARACTERS // 2 else head


def plain_text(text: str) -> SafeString:
    """As written, line by line; only `code` is told apart."""
    return mark_safe(_INLINE_CODE.sub(r"<code>\1</code>", html.escape(text)))  # noqa: S308


def _prose(item: Item) -> dict[str, Any]:
    # A text that grows is rendered by the live rules, so that its next frame fits on it.
    made = render_blocks(item.text).html if item.is_open else render_markdown(item.text)
    return {"prose": mark_safe(made)}  # noqa: S308 (cleaned by an allow-list)


def _thinking(item: Item) -> dict[str, Any]:
    spent = duration(item.facts.get("duration_ms"))
    return {**_prose(item), "spent": spent, "who": item.facts.get("model") or "The model"}


def _calls(item: Item) -> dict[str, Any]:
    views = [call_view(call) for call in item.calls]
    done = all(call.outcome for call in item.calls)
    total = sum(call.duration_ms or 0 for call in item.calls)
    failed = sum(call.outcome == "error" for call in item.calls)
    unknown = sum(call.outcome == "unknown" for call in item.calls)
    return {
        "calls": views,
        "is_folded": done and len(views) > FOLD_CALLS_ABOVE,
        "total": duration(total),
        "failed": failed,
        "unknown": unknown,
    }


def call_view(call: Call) -> dict[str, Any]:
    word, state, mark = _outcome(call)
    pretty = "\n".join(f"{key}: {_value(value)}" for key, value in call.input.items())
    return {
        "call": call,
        "icon": _tool_icon(call.name),
        "summary": call_summary(call),
        "word": word,
        "state": state,
        "mark": mark,
        "input": clip(pretty, INPUT_SHOWN_CHARACTERS),
        "output": clip(call.text, OUTPUT_SHOWN_CHARACTERS),
        "is_cut": len(call.text) > OUTPUT_SHOWN_CHARACTERS or len(pretty) > INPUT_SHOWN_CHARACTERS,
    }


def _approval(item: Item) -> dict[str, Any]:
    (call,) = item.calls
    arguments, is_cut = argument_views(call.input)
    return {"view": call_view(call), "arguments": arguments, "are_cut": is_cut}


def _question(item: Item, typed: Typed | None) -> dict[str, Any]:
    mine = typed if typed and typed.key == item.key else None
    expires_at = item.facts["expires_at"]
    if isinstance(expires_at, str):
        expires_at = datetime.fromisoformat(expires_at)
    return {"questions": question_views(item, mine), "expires_at": expires_at}


def _value(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _outcome(call: Call) -> tuple[str, str, str]:
    """Word, class, mark."""
    match call.outcome:
        case "" if call.awaits:
            return "Waiting", "", "awaiting"
        case "" if call.is_asking:
            return "Waiting for an answer", "is-unknown", "needs_you"
        case "":
            return "Running", "is-working", "working"
        case "ok":
            return duration(call.duration_ms), "", "done"
        case "unknown":
            return "Outcome unknown", "is-unknown", "needs_you"
        case "denied" | "expired":
            return call.outcome.capitalize(), "is-failed", "failed"
        case "cancelled":
            return "Not run", "is-failed", "failed"
        case _:
            return "Failed", "is-failed", "failed"


def _tool_icon(name: str) -> str:
    lowered = name.lower()
    for words, icon in _TOOL_ICONS:
        if any(word in lowered for word in words):
            return icon
    return "wrench"


def _recovering(item: Item) -> dict[str, Any]:
    resumed: datetime | None = item.facts["resumed_at"]
    return {"resumed_at": resumed, "is_lost": item.facts["reason"] == "worker_lost"}


_VIEWS = {
    "user.message": _prompt,
    "agent.message": _prose,
    "agent.thinking": _thinking,
    "agent.tool_use": _calls,
    "turn.recovering": _recovering,
    "child.started": _child,
}
