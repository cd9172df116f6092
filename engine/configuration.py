"""The engine as the settings want it."""

from __future__ import annotations

from django.conf import settings

from engine.database import RETURN_SECONDS
from engine.loop import Limits
from engine.response import ResponseBounds
from engine.tools.registry import ToolRegistry, build_registry
from engine.worker import WorkerSettings


def worker_settings() -> WorkerSettings:
    return WorkerSettings(
        concurrency=settings.WORKER_CONCURRENCY,
        lease_seconds=settings.LEASE_SECONDS,
        heartbeat_seconds=settings.HEARTBEAT_SECONDS,
        poll_seconds=settings.POLL_SECONDS,
        grace_seconds=settings.HANDOVER_GRACE_SECONDS,
        flush_seconds=settings.JOURNAL_FLUSH_MS / 1000,
        flush_characters=settings.JOURNAL_FLUSH_BYTES,
        return_grace_seconds=settings.HEARTBEAT_SECONDS + RETURN_SECONDS,
        limits=Limits(
            tries=settings.PROVIDER_MAX_TRIES,
            tool_event_max_bytes=settings.TOOL_EVENT_MAX_BYTES,
            response=ResponseBounds(
                characters=settings.RESPONSE_MAX_CHARACTERS,
                calls=settings.RESPONSE_MAX_CALLS,
                argument_bytes=settings.RESPONSE_MAX_ARGUMENT_BYTES,
            ),
        ),
    )


def tool_registry() -> ToolRegistry:
    return build_registry(is_development=settings.IS_DEVELOPMENT, home=settings.SEDERUNT_HOME)
