"""Child sessions in a transcript: a card where one began, a line where its result arrived."""

from __future__ import annotations

from sessions_app.web.items import Call, Change, Item, Json, item_of

CARD = "child.started"
LINE = "child.result"


def card_key(child_id: str) -> str:
    return f"child-{child_id}"


class ChildItems:
    """The part of a transcript that folds `child.*`."""

    items: list[Item]
    _by_key: dict[str, Item]
    _calls: dict[str, tuple[Item, Call]]

    def _append(self, item: Item) -> Change:
        raise NotImplementedError

    def _drop(self, item: Item) -> Change:
        raise NotImplementedError

    def _child_cards(self) -> list[Item]:
        """Results may come long after: cards are never forgotten."""
        return [item for item in self._by_key.values() if item.type == CARD]

    def _child_started(self, data: Json) -> list[Change]:
        card = item_of(data, key=card_key(data["child_id"]), kind=CARD)
        card.text = data["prompt_text"]
        author = data["author"]
        card.facts = {
            "child": data["child_id"],
            "title": data["title"],
            "by": "" if author["type"] == "agent" else author["name"],
            "result": None,
        }
        return [*self._take_place_of_call(data.get("tool_use_id")), self._append(card)]

    def _take_place_of_call(self, tool_use_id: str | None) -> list[Change]:
        """The card says all that the line of its call would. One that was approved stays."""
        group, call = self._calls.get(tool_use_id or "", (None, None))
        if group is None or call is None or group.type != "agent.tool_use":
            return []
        del self._calls[call.key]
        group.calls.remove(call)
        return [Change("put", group) if group.calls else self._drop(group)]

    def _child_awaited(self, data: Json) -> list[Change]:
        found = self._calls.get(data["tool_use_id"])
        if found is None:  # its call stands on an earlier page
            return []
        item, call = found
        call.awaits = list(data["child_ids"])
        return [Change("put", item)]

    def _child_result(self, data: Json) -> list[Change]:
        """The card tells it; where something stands below the card, a line does as well."""
        card = self._by_key.get(card_key(data["child_id"]))
        changes = []
        if card is not None:
            card.facts["result"] = told_result(data)
            changes.append(Change("put", card))
            if self.items and self.items[-1] is card:
                return changes
        line = item_of(data, key=data["id"], kind=LINE)
        line.facts = {"child": data["child_id"], "title": data["title"], "status": data["status"]}
        return [*changes, self._append(line)]


def told_result(data: Json) -> Json:
    error = data.get("error") or {}
    return {
        "status": data["status"],
        "text": data["text"],
        "error": error.get("message", ""),
        "is_cut": bool(data.get("truncated")),
    }


def relatives_named(items: list[Item]) -> set[str]:
    """The public ids of all sessions that these items speak of, or come from."""
    named = {item.facts["child"] for item in items if item.type in {CARD, LINE}}
    named |= {item.facts["from"] for item in items if item.facts.get("by") == "agent"}
    return named | {child for item in items for call in item.calls for child in call.awaits}
