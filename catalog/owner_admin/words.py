"""How states of providers are called on pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.kinds import ProviderState


@dataclass(frozen=True, slots=True)
class StateWords:
    """`mark`: its shape. `text`: what it means, and what would help."""

    mark: str
    word: str
    text: str


STATE_WORDS: Mapping[ProviderState, StateWords] = {
    ProviderState.AVAILABLE: StateWords("done", "Available", "Sessions can use its models."),
    ProviderState.DISABLED: StateWords(
        "paused", "Switched off", "No session can use its models until it is switched on."
    ),
    ProviderState.NO_CREDENTIALS: StateWords(
        "needs_you", "Needs a key", "Without a key it answers nobody. Change it to store one."
    ),
    ProviderState.NO_WORKER: StateWords(
        "failed",
        "No worker",
        "No worker is running that can reach it. Prompts wait; ask who operates this server.",
    ),
}
