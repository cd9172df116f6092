"""Approvals and questions in a transcript: cards, and what becomes of them."""

from __future__ import annotations

from sessions_app.web import waits
from sessions_app.web.items import Call, Change, Item, Json, item_of


class AskItems:
    """The part of a transcript that folds what is asked of people, and their decisions."""

    _by_key: dict[str, Item]
    _calls: dict[str, tuple[Item, Call]]

    def _append(self, item: Item) -> Change:
        raise NotImplementedError

    def _card(self, data: Json, call: Call) -> Item:
        """A call that waits for people stands alone."""
        item = item_of(data, key=waits.ask_key(call.key), kind=waits.APPROVAL)
        call.is_asking = True
        item.calls.append(call)
        item.facts = waits.asked_facts({})
        self._calls[call.key] = (item, call)
        return item

    def _question(self, data: Json) -> list[Change]:
        item = item_of(data, key=waits.ask_key(data["id"]), kind="agent.question")
        item.facts = waits.asked_facts(data)
        changes = self._note_asking(data, True)
        return [*changes, self._append(item)]

    def _note_asking(self, data: Json, is_asking: bool) -> list[Change]:
        found = self._calls.get(data["tool_use_id"])
        if found is None:
            return []
        found[1].is_asking = is_asking
        return [Change("put", found[0])]

    def _decided(self, data: Json) -> list[Change]:
        """The card says by whom; a line does where the card stands on an earlier page."""
        asked = data["tool_use_id"] if "tool_name" in data else data["question_id"]
        item = self._by_key.get(waits.ask_key(asked))
        if item is None:
            item = item_of(data, key=data["id"], kind="_decided")
            item.facts = waits.told_facts(data)
            return [self._append(item)]
        waits.settle_card(item, waits.told_facts(data))
        return [Change("put", item)]

    def _question_closed(self, data: Json) -> list[Change]:
        changes = self._note_asking(data, False)
        item = self._by_key.get(waits.ask_key(data["question_id"]))
        if item is None or not waits.is_open_card(item):
            return changes
        waits.close_card(item, data["outcome"])
        return [*changes, Change("put", item)]
