"""Is it alive, can it serve, and how does it do: `/healthz`, `/readyz`, `/metrics`."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

import prometheus_client
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound, JsonResponse
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import REGISTRY, Collector

from core.db import in_db_thread
from sessions_app import eventlog
from sessions_app.streaming.hub import current_hub

# A turn that nobody has taken up for this long: no worker runs, or there are too few.
QUEUE_AGE_MAX_SECONDS: Final = 120.0
DATABASE_TIMEOUT_SECONDS: Final = 3.0

# Each of these reads a partial index that holds only what is unfinished.
_OLDEST_READY = (
    "SELECT coalesce(extract(epoch FROM now() - min(ready_at)), 0)::float8"
    " FROM sessions_app_session WHERE ready_at <= now()"
)
_UNFINISHED_TURNS = (
    "SELECT status, count(*) FROM sessions_app_turn"
    " WHERE status IN ('queued', 'running', 'waiting', 'recovering') GROUP BY status"
)
# Migrations that were applied stay so; asking again costs more than all the rest.
_known: set[str] = set()


async def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers. Nothing else is asked, so that a database outage restarts nobody."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> HttpResponse:
    """200 when requests and streams can be served; 503 with what is wrong, by name."""
    hub = current_hub()
    hub.start()
    problems = {}
    age = 0.0
    if hub.is_draining:
        problems["process"] = "This process is stopping."
    try:
        async with asyncio.timeout(DATABASE_TIMEOUT_SECONDS):
            age = await in_db_thread(_check_database, problems)
    except TimeoutError:
        problems["database"] = f"No answer within {DATABASE_TIMEOUT_SECONDS:.0f} seconds."
    except DatabaseError as error:
        problems["database"] = f"Not reachable ({type(error).__name__})."
    if not await hub.hears_the_bus_within(1.0):
        problems["bus"] = "The bus is not connected; hints are lost, and the poll stands in."
    if age > QUEUE_AGE_MAX_SECONDS:
        problems["queue"] = f"The oldest turn has waited {age:.0f} seconds for a worker."
    body = {
        "status": "unavailable" if problems else "ok",
        "problems": problems,
        "queue_age_seconds": round(age, 1),
    }
    return JsonResponse(body, status=503 if problems else 200)


async def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text: for the machine itself, or with `Authorization: Bearer METRICS_TOKEN`."""
    if not _may_read_metrics(request):
        return HttpResponseNotFound()
    text = await in_db_thread(prometheus_client.generate_latest)
    return HttpResponse(text, content_type=prometheus_client.CONTENT_TYPE_LATEST)


def _check_database(problems: dict[str, str]) -> float:
    """The age of the queue, in seconds. Pending migrations are written into `problems`."""
    if "migrated" not in _known:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if pending:
            problems["migrations"] = f"{len(pending)} migrations have not been applied."
            return 0.0
        _known.add("migrated")
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST_READY)
        return float(cursor.fetchone()[0])


def _may_read_metrics(request: HttpRequest) -> bool:
    token = settings.METRICS_TOKEN
    sent = request.headers.get("authorization", "")
    if token and hmac.compare_digest(sent.encode(), f"Bearer {token}".encode()):
        return True
    if token or {"x-forwarded-for", "forwarded"} & {name.lower() for name in request.headers}:
        # Behind a proxy every request comes from a near address; then only the token counts.
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


class DatabaseCollector(Collector):
    """What all processes together have done, asked of the database when it is scraped."""

    def describe(self) -> list[Metric]:
        """Nothing is read when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        turns = GaugeMetricFamily("sederunt_turns", "Unfinished turns.", labels=["status"])
        age = GaugeMetricFamily("sederunt_queue_age_seconds", "How long the oldest turn waits.")
        events = CounterMetricFamily("sederunt_events_appended", "Events ever written.")
        stale = CounterMetricFamily(
            "sederunt_stale_writes_refused", "Writes by attempts that were no longer the live one."
        )
        stale.add_metric([], eventlog.refused_writes())
        with connection.cursor() as cursor:
            cursor.execute(_UNFINISHED_TURNS)
            for status, count in cursor.fetchall():
                turns.add_metric([status], count)
            cursor.execute(_OLDEST_READY)
            age.add_metric([], cursor.fetchone()[0])
        events.add_metric([], eventlog.count_appended())
        yield from (turns, age, events, stale)


REGISTRY.register(DatabaseCollector())
