"""The log as people read it: events folded into items, one at a time, on page and live alike.

A page folds the events it loads; a live stream goes on with the same fold. So what a reload
shows is what a tab that never left shows. This module renders nothing and reads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sessions_app.eventlog import StoredEvent
from sessions_app.web import provider_waits, waits
from sessions_app.web.ask_items import AskItems
from sessions_app.web.child_items import ChildItems
from sessions_app.web.items import (
    SILENT_TYPES,
    Call,
    Change,
    Item,
    Json,
    OpenTurn,
    item_of,
    text_key,
    text_of,
    when,
)


class Transcript(AskItems, ChildItems):
    """`add` returns what changed. Items are in the order of the page."""

    def __init__(self, find_prompt: Callable[[str], Json | None] | None = None) -> None:
        self.items: list[Item] = []
        self.turn: OpenTurn | None = None
        self._by_key: dict[str, Item] = {}
        self._waiting: dict[str, Json] = {}  # prompts behind a running turn, by turn id
        self._numbers: dict[str, int] = {}
        self._calls: dict[str, tuple[Item, Call]] = {}
        self._interrupt: Json = {}
        self._started: set[str] = set()
        self._next = ""  # the turn that starts at once: its prompt is shown before it does
        self._next_prompt: Json = {}
        self._failed: Item | None = None  # the newest failed turn, while nobody has retried it
        self._find_prompt = find_prompt

    def add_all(self, events: Iterable[StoredEvent]) -> None:
        for event in events:
            self.add(event)

    def add(self, event: StoredEvent) -> list[Change]:
        """What this event changes on the page; nothing for bookkeeping."""
        handle = _HANDLERS.get(event.type)
        if handle is None:
            return self._unknown(event) if event.type not in SILENT_TYPES else []
        return handle(self, event.data)

    def get(self, key: str) -> Item | None:
        return self._by_key.get(key)

    def previous_key(self, item: Item) -> str:
        """The item above it; empty for the first, and for one that a stream has forgotten."""
        place = self.items.index(item) if item in self.items else 0
        return self.items[place - 1].key if place else ""

    def forget_closed(self) -> None:
        """Keep what can still change: the end of a long page is all that a stream needs."""
        keep = self.turn.id if self.turn else ""
        kept = [item for item in self.items[:-1] if keep and item.turn == keep]
        self.items = [*kept, *self.items[-1:]]
        self._by_key = {item.key: item for item in [*self._child_cards(), *self.items]}

    def drop_unstarted(self) -> None:
        """For a page that others follow: a prompt stands on the page where its turn starts."""
        prompts = [item for item in self.items if item.type == "user.message"]
        for item in prompts:
            if item.turn and item.turn not in self._started:
                self._drop(item)

    # ── Prompts and turns ──
    def _user_message(self, data: Json) -> list[Change]:
        turn = data.get("turn_id", "")
        if self.turn is None and not self._next and not self._waiting:
            self._next, self._next_prompt = turn, data
            return [self._put_prompt(turn, data)]
        self._waiting[turn] = data
        return []

    def _put_prompt(self, turn: str, data: Json) -> Change:
        item = item_of(data, key=turn or data["id"], kind="user.message")
        item.text = text_of(data["content"])
        author = data["author"]
        item.facts = {"author": author["name"], "by": author["type"], "from": author.get("id")}
        return self._append(item)

    def _turn_queued(self, data: Json) -> list[Change]:
        turn = data.get("turn_id", "")
        self._numbers[turn] = data["number"]
        changes = self._hold_next() if data.get("held") and turn == self._next else []
        if self._failed and self._failed.turn == data.get("retry_of"):
            changes += self._note_failed(None)
        return changes

    def _hold_next(self) -> list[Change]:
        """It does not start at once: it stands in the queue, like those behind it."""
        turn, self._next = self._next, ""
        if not turn:
            return []
        self._waiting[turn] = self._next_prompt
        item = self._by_key.get(turn)
        return [self._drop(item)] if item else []

    def _note_failed(self, item: Item | None) -> list[Change]:
        """Only the newest failed turn may be retried, and only once."""
        older, self._failed = self._failed, item
        if older is None:
            return []
        older.facts["may_retry"] = False
        return [Change("put", older)]

    def _turn_started(self, data: Json) -> list[Change]:
        turn = data.get("turn_id", "")
        changes = self._abandon_open()
        self._leave_queue(turn)
        self.turn = OpenTurn(turn, data["number"], 0, data["model"].get("display_name", ""))
        prompt = self._waiting.pop(turn, None)
        if turn in self._by_key:
            return changes
        if prompt is None and self._find_prompt is not None:
            prompt = self._find_prompt(turn)
        return [*changes, self._put_prompt(turn, prompt)] if prompt else changes

    def _leave_queue(self, turn: str) -> None:
        self._started.add(turn)
        self._next = "" if self._next == turn else self._next

    def _turn_withdrawn(self, data: Json) -> list[Change]:
        turn = data.get("turn_id", "")
        self._waiting.pop(turn, None)
        self._next = "" if self._next == turn else self._next
        item = self._by_key.get(turn)
        return [self._drop(item)] if item else []

    def _turn_completed(self, data: Json) -> list[Change]:
        changes = [*self._abandon_open(), *self._went_on(data)]
        self.turn = None
        return changes

    def _turn_failed(self, data: Json) -> list[Change]:
        number = self.turn.number if self.turn else self._numbers.get(data.get("turn_id", ""), 0)
        changes = self._turn_completed(data)
        item = item_of(data, key=data["id"], kind="turn.failed")
        item.facts = {"number": number, "may_retry": True, **data["error"]}
        changes += self._note_failed(item)
        self._leave_queue(turn := data.get("turn_id", ""))
        if turn in self._waiting:
            changes.append(self._put_prompt(turn, self._waiting.pop(turn)))
        return [*changes, self._append(item)]

    def _user_interrupt(self, data: Json) -> list[Change]:
        self._interrupt = data
        return []

    def _turn_cancelled(self, data: Json) -> list[Change]:
        if self._waiting.pop(data.get("turn_id", ""), None):  # it never was in the transcript
            return []
        changes = self._turn_completed(data)
        item = item_of(data, key=data["id"], kind="turn.cancelled")
        author = self._interrupt.get("author") or {}
        item.facts = {"by": author.get("name", ""), "is_forked": data.get("reason") == "forked"}
        self._interrupt = {}
        return [*changes, self._append(item)]

    def _turn_superseded(self, data: Json) -> list[Change]:
        changes = self._turn_completed(data)
        return [*changes, self._append(item_of(data, key=data["id"], kind="turn.superseded"))]

    def _note_by(self, data: Json) -> list[Change]:
        item = item_of(data, key=data["id"], kind=data["type"])
        item.facts = {"by": data["author"].get("name", "")}
        held = self._hold_next() if data["type"] == "session.paused" else []
        return [*held, self._append(item)]

    def _visibility(self, data: Json) -> list[Change]:
        item = item_of(data, key=data["id"], kind=data["type"])
        item.facts = {
            "by": data["author"].get("name", ""),
            "is_private": data["visibility"] == "private",
        }
        return [self._append(item)]

    def _turn_recovering(self, data: Json) -> list[Change]:
        changes = self._abandon_open()
        if data["reason"] == "paused":  # the pause has said so
            return changes
        item = item_of(data, key=data["id"], kind="turn.recovering")
        item.facts = {"reason": data["reason"], "resumed_at": None}
        return [*changes, self._append(item)]

    def _rescheduled(self, data: Json) -> list[Change]:
        return [self._append(item) for item in provider_waits.begin(data)]

    def _went_on(self, data: Json) -> list[Change]:
        return [Change("put", item) for item in provider_waits.end(self.items)]

    def _attempt_started(self, data: Json) -> list[Change]:
        changes = [*self._abandon_open(), *self._went_on(data)]
        if self.turn is None and data.get("turn_id"):
            self.turn = OpenTurn(data["turn_id"])
        note = next((i for i in reversed(self.items) if i.type == "turn.recovering"), None)
        if note and note.turn == data.get("turn_id") and note.facts["resumed_at"] is None:
            note.facts["resumed_at"] = when(data)
            changes.append(Change("put", note))
        return changes

    def _checkpoint(self, data: Json) -> list[Change]:
        changes = self._abandon_open()
        if self.turn is None:
            self.turn = OpenTurn(data.get("turn_id", ""))
        self.turn.step = data["step"]
        self.turn.model = data["model"].get("display_name") or self.turn.model
        return changes

    # ── What the agent wrote ──
    def _delta(self, data: Json, kind: str) -> list[Change]:
        key = text_key(kind, data["message_id"])
        item = self._by_key.get(key)
        if item is not None:
            if not item.is_open:  # sealed: nothing comes twice
                return []
            item.text += data["text"]
            return [Change("grow", item)]
        changes = [*self._abandon_open(only=kind), *self._end_thinking(kind)]
        item = item_of(data, key=key, kind=kind)
        item.text, item.is_open = data["text"], True
        item.facts = {"model": self.turn.model if self.turn else ""}
        return [*changes, self._append(item)]

    def _message_delta(self, data: Json) -> list[Change]:
        return self._delta(data, "agent.message")

    def _thinking_delta(self, data: Json) -> list[Change]:
        return self._delta(data, "agent.thinking")

    def _message(self, data: Json) -> list[Change]:
        item, is_new = self._seal(data, "agent.message", text_of(data["content"]))
        item.is_interrupted = bool(data.get("interrupted"))
        if not item.text.strip():
            return [] if is_new else [self._drop(item)]
        return [self._append(item) if is_new else Change("put", item)]

    def _thinking(self, data: Json) -> list[Change]:
        item, is_new = self._seal(data, "agent.thinking", data["text"])
        item.facts = {"model": item.facts.get("model", ""), "duration_ms": data["duration_ms"]}
        return [self._append(item) if is_new else Change("put", item)]

    def _seal(self, data: Json, kind: str, text: str) -> tuple[Item, bool]:
        key = text_key(kind, data["message_id"])
        found = self._by_key.get(key)
        item = found or item_of(data, key=key, kind=kind)
        if found is None:
            item.facts = {"model": self.turn.model if self.turn else ""}
        item.text, item.is_open, item.is_abandoned = text, False, False
        item.seq, item.at = data["seq"], when(data)
        return item, found is None

    def _end_thinking(self, kind: str) -> list[Change]:
        """The answer begins: the thinking is over, although its whole text comes later."""
        if kind != "agent.message":
            return []
        over = [i for i in self.items if i.is_open and i.type == "agent.thinking"]
        for item in over:
            item.facts["is_over"] = True
        return [Change("put", item) for item in over]

    def _abandon_open(self, only: str = "") -> list[Change]:
        """Text that no final event sealed, and that something else follows, is folded away.

        Thinking and its answer may overlap; two texts of one kind may not.
        """
        changes = []
        for item in [i for i in self.items if i.is_open]:
            if only and item.type != only:
                continue
            item.is_open, item.is_abandoned = False, True
            changes.append(Change("put", item) if item.text.strip() else self._drop(item))
        return changes

    # ── Tools ──
    def _tool_use(self, data: Json) -> list[Change]:
        call = Call(data["id"], data["name"], data["seq"], when(data), data["input"])
        if data.get("evaluated_permission") == "ask":
            return [self._append(self._card(data, call))]
        group = self._open_group(data)
        is_new = group is None
        item = group or item_of(data, key=f"calls-{data['id']}", kind="agent.tool_use")
        item.calls.append(call)
        self._calls[call.key] = (item, call)
        return [self._append(item) if is_new else Change("put", item)]

    def _open_group(self, data: Json) -> Item | None:
        """Neighbours share one box; a closed fold of many begins anew with the next turn."""
        last = self.items[-1] if self.items else None
        if last and last.type == "agent.tool_use" and last.turn == data.get("turn_id", ""):
            return last
        return None

    def _tool_result(self, data: Json) -> list[Change]:
        found = self._calls.pop(data["tool_use_id"], None)
        if found is None:  # its call stands on an earlier page
            return []
        item, call = found
        call.outcome = data["outcome"]
        call.text = text_of(data["content"])
        call.duration_ms = data.get("duration_ms")
        call.result_seq = data["seq"]
        call.is_asking = False
        waits.close_card(item, call.outcome)
        return [Change("put", item)]

    # ── The session itself ──
    def _note(self, data: Json) -> list[Change]:
        return [self._append(item_of(data, key=data["id"], kind=data["type"]))]

    def _unknown(self, event: StoredEvent) -> list[Change]:
        item = item_of(event.data, key=event.data["id"], kind="_unknown")
        item.facts = {"type": event.type}
        return [self._append(item)]

    def _append(self, item: Item) -> Change:
        self.items.append(item)
        self._by_key[item.key] = item
        return Change("put", item)

    def _drop(self, item: Item) -> Change:
        self.items.remove(item)
        self._by_key.pop(item.key, None)
        return Change("drop", item)


_HANDLERS: dict[str, Callable[[Transcript, Json], list[Change]]] = {
    "user.message": Transcript._user_message,
    "user.interrupt": Transcript._user_interrupt,
    "turn.queued": Transcript._turn_queued,
    "turn.started": Transcript._turn_started,
    "turn.withdrawn": Transcript._turn_withdrawn,
    "turn.completed": Transcript._turn_completed,
    "turn.failed": Transcript._turn_failed,
    "turn.cancelled": Transcript._turn_cancelled,
    "turn.superseded": Transcript._turn_superseded,
    "turn.recovering": Transcript._turn_recovering,
    "attempt.started": Transcript._attempt_started,
    "session.status_rescheduled": Transcript._rescheduled,
    "session.status_running": Transcript._went_on,
    "step.checkpoint": Transcript._checkpoint,
    "agent.message_delta": Transcript._message_delta,
    "agent.message": Transcript._message,
    "agent.thinking_delta": Transcript._thinking_delta,
    "agent.thinking": Transcript._thinking,
    "agent.tool_use": Transcript._tool_use,
    "agent.tool_result": Transcript._tool_result,
    **dict.fromkeys(("session.forked", "session.paused", "session.resumed"), Transcript._note_by),
    "session.visibility_changed": Transcript._visibility,
    "agent.question": Transcript._question,
    "user.tool_confirmation": Transcript._decided,
    "user.question_response": Transcript._decided,
    "agent.question_closed": Transcript._question_closed,
    **dict.fromkeys(
        ("session.archived", "session.unarchived", "session.status_terminated"), Transcript._note
    ),
    "child.started": Transcript._child_started,
    "child.awaited": Transcript._child_awaited,
    "child.result": Transcript._child_result,
}
