"""The real thing: `python -m config.supervisor` in a home of its own, as `make run` starts it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from config.processes import is_alive
from tests.journeys.client import Client

ROOT = Path(__file__).resolve().parents[2]
# What must not come from the developer's shell, nor from the test run's own database.
OURS = ("DATABASE_URL", "DATABASE_DIRECT_URL", "REDIS_URL", "PORT", "WEB", "WORKERS", "HOST")
# A lost worker is noticed after two seconds, so that the journeys do not wait for ten.
SHORT_LEASE = {"LEASE_SECONDS": "2", "HEARTBEAT_SECONDS": "1", "LOG_LEVEL": "INFO"}
START_SECONDS = 90
READY = "Sederunt is ready: "


class Server:
    """`home` is made, with a space in its path, and removed by `remove`."""

    def __init__(self, *, home: Path | None = None, **environment: str) -> None:
        self._folder = None if home else Path(tempfile.mkdtemp(prefix="sederunt-journey-"))
        self.home = home or self._folder / "a home"
        self._environment = {**SHORT_LEASE, "PORT": "0", "SEDERUNT_ENV": "development"}
        self._environment |= environment
        self.process: subprocess.Popen[bytes] | None = None
        self.seconds_to_ready = 0.0

    # ── its life ──
    def launch(self) -> None:
        """Start it, and wait for nothing."""
        self.home.mkdir(parents=True, exist_ok=True)
        inherited = {k: v for k, v in os.environ.items() if k not in OURS and k[:9] != "SEDERUNT_"}
        inherited.pop("DJANGO_SETTINGS_MODULE", None)
        with self.output_file.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "config.supervisor"],
                env={**inherited, **self._environment, "SEDERUNT_HOME": str(self.home)},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start(self) -> Server:
        began = time.monotonic()
        self.launch()
        self.wait_until(lambda: READY in self.output, START_SECONDS, "it is not ready")
        self.seconds_to_ready = time.monotonic() - began
        return self

    def stop(self, sign: signal.Signals = signal.SIGINT) -> int:
        """The exit status after an orderly stop."""
        process, self.process = self.process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(sign)
        try:
            return process.wait(60)
        finally:
            process.kill()
            process.wait()

    def restart(self) -> Server:
        """At the same address."""
        self._environment["PORT"] = str(urlsplit(self.url).port)
        self.stop()
        return self.start()

    def remove(self) -> None:
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # ── what it says ──
    @property
    def output_file(self) -> Path:
        return self.home / "output.txt"

    @property
    def output(self) -> str:
        return self.output_file.read_text() if self.output_file.is_file() else ""

    @property
    def demo(self) -> dict[str, Any]:
        return dict(json.loads((self.home / "demo.json").read_text()))

    @property
    def url(self) -> str:
        return str(self.demo["base_url"])

    def client(self, scope: str = "workspace") -> Client:
        key = next(key["key"] for key in self.demo["keys"] if key["scope"] == scope)
        return Client(self.url, key, self.demo["workspace_id"])

    def logs(self) -> str:
        """The ends of all its logs, for a failing test's message."""
        ends = [
            f"== {path.name}\n" + "\n".join(path.read_text().splitlines()[-15:])
            for path in sorted((self.home / "logs").glob("*.log"))
        ]
        return "\n".join([*ends, f"== output\n{self.output}"])

    # ── its processes ──
    def pid(self, name: str) -> int:
        """Of a process that lives: one that a test before killed is waited for."""
        path = self.home / "run" / f"{name}.pid"
        self.wait_until(lambda: is_alive(int(path.read_text() or 0)), 30, f"no {name} lives")
        return int(path.read_text())

    def pids(self) -> dict[str, int]:
        """Of web and workers by name, and of PostgreSQL where it is ours."""
        found = {path.stem: int(path.read_text()) for path in (self.home / "run").glob("*.pid")}
        lock = self.home / "postgres" / "data" / "postmaster.pid"
        if lock.is_file():
            found["postgres"] = int(lock.read_text().splitlines()[0])
        return found

    def worker_of(self, session_id: str) -> int:
        """The process that holds the session's live attempt."""
        found: list[tuple[Any, ...]] = []

        def is_held() -> bool:
            found[:] = self.query(
                "SELECT worker FROM sessions_app_attempt"
                " WHERE session_id = %s AND status = 'running'",
                session_id.removeprefix("ses_"),
            )
            return bool(found)

        self.wait_until(is_held, 30, f"nobody works on {session_id}")
        return int(found[0][0].rpartition(":")[2])

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Empty while the database is away."""
        try:
            url = json.loads((self.home / "postgres" / "connection.json").read_text())["url"]
            with psycopg.connect(url, autocommit=True) as connection:
                return connection.execute(statement, values).fetchall()
        except psycopg.OperationalError:
            return []

    def manage(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A management command that finds the database by the home alone, as a person's would."""
        inherited = {k: v for k, v in os.environ.items() if k not in OURS}
        return subprocess.run(
            [sys.executable, "manage.py", *command],
            env={**inherited, **self._environment, "SEDERUNT_HOME": str(self.home)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )

    # ── the probe ──
    def probed(self, line: str) -> int:
        """How often the probe tool has really written this line."""
        path = self.home / "probe.log"
        return path.read_text().splitlines().count(line) if path.is_file() else 0

    def wait_until(
        self, condition: Callable[[], object], seconds: float, what: str, every: float = 0.05
    ) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            ended = self.process is not None and self.process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"{what}\n{self.logs()}")
            time.sleep(every)


def is_at_work(pid: int) -> bool:
    """A process that ended but that nobody has waited for has no command line any more."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def still_at_work(pids: Mapping[str, int]) -> dict[str, int]:
    return {name: pid for name, pid in pids.items() if is_at_work(pid)}
