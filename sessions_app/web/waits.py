"""Approvals and questions as cards: what they say, open and decided, and what a form sent.

Plain values. A card is an item like the others, so that transcript, live frames and the list of
what waits show the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.http import QueryDict

from sessions_app.domain.vocabulary import WaitKind, WaitStatus
from sessions_app.models import Session, Wait
from sessions_app.web.items import Call, Item, Json

APPROVAL = "user.tool_confirmation"  # the type whose fragment shows a call that waits
ARGUMENTS_SHOWN_CHARACTERS = 4_000
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Typed:
    """A form that was refused: what was in it, and the sentence that belongs to a question."""

    key: str
    values: Mapping[str, list[str]] = field(default_factory=dict)
    place: int = 0
    problem: str = ""


def ask_key(event_id: str) -> str:
    return f"ask-{event_id}"


def asked_facts(data: Json) -> Json:
    """Of a card that nobody has decided."""
    return {
        "status": "open",
        "questions": data.get("questions", []),
        "allow_skip": bool(data.get("allow_skip")),
        "expires_at": data.get("expires_at"),
    }


def told_facts(data: Json) -> Json:
    """What the event of a decision says: by whom, and what."""
    by = data["author"]["name"]
    if "tool_name" in data:
        is_allowed = data["result"] == "allow"
        return {
            "status": "allowed" if is_allowed else "denied",
            "by": by,
            "tool": data["tool_name"],
            "for_session": data.get("scope") == "session",
            "reason": data.get("deny_message") or "",
        }
    status = "skipped" if data["skip"] else "answered"
    return {"status": status, "by": by, "answers": data["answers"]}


def is_open_card(item: Item) -> bool:
    return item.facts.get("status") == "open"


def settle_card(item: Item, told: Json) -> None:
    """Somebody decided; how a call ends comes later."""
    item.facts = {**item.facts, **told}
    for call in item.calls:
        call.is_asking = False


def close_card(item: Item, outcome: str) -> None:
    """It is over although nobody decided: expired, or cancelled with its turn."""
    if is_open_card(item):
        item.facts["status"] = "expired" if outcome == "expired" else "cancelled"


def settle_past(session: Session, items: Iterable[Item]) -> None:
    """Cards of an earlier page, whose decision stands on a later one. One query, or none."""
    cards = {item.seq: item for item in items if is_open_card(item)}
    if not cards:
        return
    waits = session.waits.filter(event_seq__in=list(cards)).exclude(status=WaitStatus.OPEN)
    for wait in waits.select_related("decided_by", "decided_by_key"):
        settle_card(cards[wait.event_seq], _told_by_row(wait))


def item_of(wait: Wait) -> Item:
    """The card of a wait, without its log."""
    item = Item(ask_key(wait.event_id), "agent.question", wait.event_seq, wait.created_at)
    item.facts = asked_facts({**wait.request, "expires_at": wait.expires_at})
    if wait.kind == WaitKind.APPROVAL:
        item.type = APPROVAL
        call = Call(
            wait.event_id, wait.tool_name, wait.event_seq, wait.created_at, wait.request["input"]
        )
        call.is_asking = True
        item.calls.append(call)
    return item


def _told_by_row(wait: Wait) -> Json:
    if wait.status != WaitStatus.ANSWERED:
        return {"status": str(wait.status)}
    decider = wait.decided_by or wait.decided_by_key
    data = {**(wait.answer or {}), "author": {"name": decider.name if decider else ""}}
    if wait.kind == WaitKind.APPROVAL:
        data["tool_name"] = wait.tool_name
    return told_facts(data)


# ── What a card shows ──
def argument_views(arguments: Json) -> tuple[list[Json], bool]:
    """Name and text of each, readable; and whether something was left out."""
    left = ARGUMENTS_SHOWN_CHARACTERS
    views: list[Json] = []
    is_cut = False
    for name, value in arguments.items():
        text = value if isinstance(value, str) else _pretty(value)
        is_cut = is_cut or len(text) > left
        views.append({"name": name, "text": text[:left]})
        left = max(0, left - len(text))
    return views, is_cut


def _pretty(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def question_views(item: Item, typed: Typed | None) -> list[Json]:
    """The questions with their fields' names, what was typed, and what was answered."""
    answers = item.facts.get("answers") or {}
    return [
        _question_view(place, question, typed, answers.get(question["id"]))
        for place, question in enumerate(item.facts["questions"], start=1)
    ]


def _question_view(place: int, question: Json, typed: Typed | None, answer: Json | None) -> Json:
    name = f"q{place}"
    chosen = list(typed.values.get(name, [])) if typed else []
    texts = typed.values.get(f"{name}-{OTHER}", []) if typed else []
    return {
        "place": place,
        "name": name,
        "kind": question["kind"],
        "text": question["text"],
        "hint": _hint(question),
        "max_characters": question["max_characters"],
        "allow_other": question.get("allow_other", False),
        "options": [
            {**option, "value": str(number), "is_chosen": str(number) in chosen}
            for number, option in enumerate(question.get("options", []))
        ],
        "is_other": OTHER in chosen,
        "other": texts[0] if texts else "",
        "value": chosen[0] if chosen else "",
        "problem": typed.problem if typed and typed.place == place else "",
        "answer": _answer_text(answer),
    }


def _hint(question: Json) -> str:
    """`Required`, `Optional`, `Choose 2 to 3`."""
    needed = "Required" if question["required"] else "Optional"
    if question["kind"] != "multi_select":
        return needed
    least, most = question["min_selected"], question["max_selected"]
    available = len(question["options"]) + question["allow_other"]
    if least <= 1 and most >= available:
        return needed
    return f"{needed}, choose {least if least == most else f'{least} to {most}'}"


def _answer_text(answer: Json | None) -> str:
    if not answer:
        return ""
    written = [answer.get("text", ""), *answer.get("selected", ()), answer.get("other", "")]
    return ", ".join(text for text in written if text)


# ── What a form sent ──
def read_answers(questions: list[Json], posted: QueryDict) -> Json:
    """Fields `q1`, `q1-other`, … as answers by question id. Nothing is judged here."""
    answers: Json = {}
    for place, question in enumerate(questions, start=1):
        name = f"q{place}"
        if question["kind"] == "text":
            answers[question["id"]] = {"text": posted.get(name, "")}
            continue
        chosen = posted.getlist(name)
        labels = [option["label"] for option in question["options"]]
        selected = [label for n, label in enumerate(labels) if str(n) in chosen]
        other = posted.get(f"{name}-{OTHER}", "")
        if question["kind"] == "single_select" and selected:
            other = ""  # the option was chosen instead
        answers[question["id"]] = {"selected": selected, "other": other}
    return answers


def place_of_problem(questions: list[Json], param: str | None) -> int:
    """Which question the path of a refusal names, from 1; 0 for none. Ids may hold dots."""
    path = (param or "").removeprefix("answers.")
    found = 0
    longest = -1
    for place, question in enumerate(questions, start=1):
        named = question["id"]
        if (path == named or path.startswith(f"{named}.")) and len(named) > longest:
            found, longest = place, len(named)
    return found
