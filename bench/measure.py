"""Floor, ours, floor again: only ratios within one run count, so both are taken side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Result:
    """Milliseconds are medians of one operation; `goal` is the ratio that is due."""

    operation: str
    ours_ms: float
    floor_ms: float
    goal: float
    per_second: float

    @property
    def ratio(self) -> float:
        return self.ours_ms / self.floor_ms

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": round(self.ratio, 2)}


def compare(
    operation: str, *, ours: Work, floor: Work, goal: float, rounds: int, items: int = 1
) -> Result:
    """`items`: how many things one call of `ours` handles, for the rate."""
    for warm_up in (floor, ours):
        warm_up()
    before, own, after = [], [], []
    for _ in range(rounds):
        before.append(_time(floor))
        own.append(_time(ours))
        after.append(_time(floor))
    ours_ms = statistics.median(own)
    floor_ms = statistics.median([*before, *after])
    return Result(operation, ours_ms, floor_ms, goal, items * 1_000 / ours_ms)


def table(results: list[Result]) -> str:
    head = f"{'operation':<42}{'ours ms':>10}{'floor ms':>10}{'ratio':>8}{'goal':>7}{'per s':>10}"
    rows = [
        f"{r.operation:<42}{r.ours_ms:>10.3f}{r.floor_ms:>10.3f}{r.ratio:>8.2f}"
        f"{r.goal:>7.2f}{r.per_second:>10.0f}"
        for r in results
    ]
    return "\n".join([head, *rows])


def _time(work: Work) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1_000
