"""`manage.py work`: one worker process."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from django.core.management.base import BaseCommand

from engine.configuration import tool_registry, worker_settings
from engine.database import keep_connections_per_thread
from engine.worker import Worker


class Command(BaseCommand):
    help = "Runs a worker: it claims turns, asks models and runs tools, until SIGTERM or Ctrl-C."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        keep_connections_per_thread()
        asyncio.run(_work())


async def _work() -> None:
    worker = Worker(worker_settings(), tool_registry())
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, worker.stop)
    await worker.run()
