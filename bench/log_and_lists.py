"""The log and the lists against bare SQL on the same PostgreSQL.

`python -m bench.log_and_lists [--sessions 100000] [--events 10000] [--json FILE]` starts an
embedded PostgreSQL in a temporary folder of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

from bench.measure import Result, compare, table
from core.embedded_postgres import EmbeddedPostgres

ROUNDS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sederunt-bench-") as home:
        server = EmbeddedPostgres(Path(home) / "postgres")
        os.environ.update(
            DJANGO_SETTINGS_MODULE="config.settings",
            SEDERUNT_ENV="test",
            SEDERUNT_HOME=home,
            DATABASE_URL=server.start(),
        )
        try:
            results = run(options.sessions, options.events)
        finally:
            server.stop()
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps([r.to_json() for r in results], indent=2))


def run(sessions: int, events: int) -> list[Result]:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    from bench import scenarios

    world = scenarios.make_world(sessions=sessions, events=events)
    results = [
        compare(name, ours=ours, floor=floor, goal=goal, rounds=rounds, items=items)
        for name, ours, floor, goal, rounds, items in scenarios.all_of(world)
    ]
    connection.close()
    return results


if __name__ == "__main__":
    main()
