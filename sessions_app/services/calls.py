"""A tool call of a live attempt, as services that answer it know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from core.errors import DomainError
from core.ids import event_id
from core.text import clip
from sessions_app.domain.events import Draft

REFUSAL_MAX_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Call:
    """`tool_use_seq` is that of its agent.tool_use, `call_id` the model's own id of it."""

    session_id: UUID
    tool_use_seq: int
    call_id: str
    name: str

    @property
    def tool_use_id(self) -> str:
        return event_id(self.session_id, self.tool_use_seq)

    def result(
        self, told: Any, *, child_result_ids: Sequence[str] = (), outcome: str = "ok"
    ) -> Draft:
        """It went well, or as far as it could; `told` becomes JSON for the model."""
        drafted = self._result(orjson.dumps(told).decode(), outcome)
        if child_result_ids:
            drafted["child_result_ids"] = list(child_result_ids)
        return Draft("agent.tool_result", drafted)

    def refusal(self, error: DomainError) -> Draft:
        """What is wrong in words, which may repeat what was asked for, and the code."""
        message = clip(error.message, REFUSAL_MAX_CHARACTERS)
        return Draft("agent.tool_result", self._result(f"{message} ({error.code})", "error"))

    def _result(self, text: str, outcome: str) -> dict[str, Any]:
        return {
            "tool_use_id": self.tool_use_id,
            "call_id": self.call_id,
            "name": self.name,
            "content": [{"type": "text", "text": text}],
            "is_error": outcome == "error",
            "outcome": outcome,
        }
