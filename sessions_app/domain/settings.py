"""Model settings of a turn, and which source decides each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Source(StrEnum):
    """In order of precedence."""

    PROMPT = "prompt"
    NEXT_SEND = "next_send_override"
    LATEST_TURN = "latest_started_turn"
    SESSION = "session"
    AGENT = "agent"
    WORKSPACE = "workspace"
    ORGANIZATION = "organization"


@dataclass(frozen=True, slots=True)
class PartialSettings:
    """What one source says; None says nothing. `model` is (provider id, model id)."""

    model: tuple[str, str] | None = None
    reasoning_effort: str | None = None
    speed: str | None = None

    def to_json(self) -> dict[str, Any]:
        provider_id, model_id = self.model or (None, None)
        return {
            "provider_id": provider_id,
            "model_id": model_id,
            "reasoning_effort": self.reasoning_effort,
            "speed": self.speed,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> PartialSettings:
        if not value:
            return cls()
        model = (value["provider_id"], value["model_id"]) if value.get("model_id") else None
        return cls(model, value.get("reasoning_effort"), value.get("speed"))

    @property
    def is_empty(self) -> bool:
        return self == PartialSettings()

    def over(self, other: PartialSettings) -> PartialSettings:
        """These, and where they say nothing the other's."""
        return PartialSettings(
            self.model or other.model,
            self.reasoning_effort or other.reasoning_effort,
            self.speed or other.speed,
        )


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """Frozen at the start of a turn. `reasoning_effort` None is the provider's default."""

    provider_id: str
    model_id: str
    reasoning_effort: str | None = None
    speed: str = "standard"

    def to_json(self) -> dict[str, Any]:
        return {
            "provider_id": self.provider_id,
            "model_id": self.model_id,
            "reasoning_effort": self.reasoning_effort,
            "speed": self.speed,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TurnSettings:
        return cls(
            value["provider_id"],
            value["model_id"],
            value.get("reasoning_effort"),
            value.get("speed") or "standard",
        )


def settle(sources: Iterable[tuple[Source, PartialSettings]]) -> tuple[TurnSettings | None, Source]:
    """The settings that the sources give, in order of precedence, and which one chose the model.

    None where no source names a model.
    """
    ordered = list(sources)
    model = next(((source, s.model) for source, s in ordered if s.model), None)
    if model is None:
        return None, Source.ORGANIZATION
    effort = next((s.reasoning_effort for _, s in ordered if s.reasoning_effort), None)
    speed = next((s.speed for _, s in ordered if s.speed), None)
    reason, (provider_id, model_id) = model
    return TurnSettings(provider_id, model_id, effort, speed or "standard"), reason


def overlay(settings: TurnSettings, change: PartialSettings) -> TurnSettings:
    """`settings` with what `change` says; for a change at a checkpoint."""
    provider_id, model_id = change.model or (settings.provider_id, settings.model_id)
    return TurnSettings(
        provider_id,
        model_id,
        change.reasoning_effort or settings.reasoning_effort,
        change.speed or settings.speed,
    )
