"""Time, as the loop asks for it."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
