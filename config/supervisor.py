"""`python -m config.supervisor`: the whole of Sederunt on one machine, until Ctrl-C.

PostgreSQL (unless DATABASE_URL names one), web and worker processes; one that dies starts again.
It imports no Django: it stays small, single-threaded, and lives when an application does not.
"""

from __future__ import annotations

import base64
import fcntl
import http.client
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

import psycopg

from config.processes import Child, last_lines, spawn
from core.embedded_postgres import EXTENSIONS, EmbeddedPostgres, PostgresError, write_private

ROOT = Path(__file__).resolve().parent.parent
TICK_SECONDS = 0.1
SLOW_START_SECONDS = 60
# The worker's grace for calls already started, and then its last words to the database.
STOP_SECONDS = 25
POSTGRES_PAUSE_SECONDS = 2
OLDEST_POSTGRES = 15
BACKLOG = 1024
# Each process has a pool; and durability is not for trying out.
POSTGRES_OPTIONS = {"max_connections": "200"}


class Refusal(Exception):
    """The start is refused; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for by the environment. `port` 0 takes a free one."""

    home: Path
    kind: str
    host: str
    port: int
    web: int
    workers: int
    database_url: str

    @property
    def is_development(self) -> bool:
        return self.kind in {"development", "test"}


def read_plan(environ: Mapping[str, str]) -> Plan:
    kind = environ.get("SEDERUNT_ENV", "") or "development"
    if kind not in {"development", "test", "production"}:
        raise Refusal("SEDERUNT_ENV must be development, test or production.")
    database_url = environ.get("DATABASE_URL", "").strip()
    if kind == "production":
        for name in ("DATABASE_URL", "SEDERUNT_SECRET_KEY", "SEDERUNT_ENCRYPTION_KEY"):
            if not environ.get(name, "").strip():
                raise Refusal(
                    f"Production needs {name}. To try Sederunt out, set SEDERUNT_ENV=development."
                )
    return Plan(
        home=Path(environ.get("SEDERUNT_HOME", "") or ROOT / ".sederunt").resolve(),
        kind=kind,
        host=environ.get("HOST", "") or "127.0.0.1",
        port=_number(environ, "PORT", 8000, lowest=0, highest=65_535),
        web=_number(environ, "WEB", 1, lowest=1, highest=64),
        workers=_number(environ, "WORKERS", 1, lowest=0, highest=64),
        database_url=database_url,
    )


class Supervisor:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._signals = 0
        self._lock: IO[str] | None = None
        self._postgres: EmbeddedPostgres | None = None
        self._postgres_at = 0.0  # not before this moment (monotonic)
        self._children: list[Child] = []
        self._announced = False
        self._listener: socket.socket | None = None

    def run(self) -> int:
        """Until a signal. The exit status: 0 after an orderly stop."""
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, self._on_signal)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup wants it
            signal.signal(signal.SIGHUP, self._on_signal)
        try:
            self._prepare()
            if not self._is_stopping:
                self._watch()
        finally:
            self._stop_all()
        return 0

    # ── signals ──
    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1

    @property
    def _is_stopping(self) -> bool:
        return self._signals > 0

    # ── starting ──
    def _prepare(self) -> None:
        home = self._plan.home
        for folder in (home, *(home / name for name in ("run", "logs", "keys", "static"))):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _lock_home(home / "run" / "supervisor.lock")
        for leftover in (home / "run").glob("*.pid"):
            leftover.unlink()
        self._listener = _listen(self._plan.host, self._plan.port)
        environment = self._environment(self._database_url())
        if self._is_stopping:
            return
        if not self._renew_demo():
            self._run_preparation(environment)
        if not self._is_stopping:
            self._children = self._plan_children(environment)

    def _renew_demo(self) -> bool:
        """Whether all is there already, so that a second start takes seconds: our own database
        has had the migrations of this code, and the demo's file only needs the new address.
        """
        demo = self._plan.home / "demo.json"
        if self._postgres is None or not demo.is_file() or not self._plan.is_development:
            return False
        stamp = self._postgres.folder / "prepared"
        if not stamp.is_file() or stamp.read_text() != _migrations():
            return False
        try:
            renewed = {**json.loads(demo.read_text()), "base_url": self.base_url}
        except ValueError:  # someone edited it: the preparation writes a new one
            return False
        write_private(demo, json.dumps(renewed, indent=2))
        return True

    def _run_preparation(self, environment: dict[str, str]) -> None:
        """Migrations and demo, to their end; a signal breaks it off. Raises Refusal."""
        log_file = self._plan.home / "logs" / "prepare.log"
        command = [sys.executable, "-m", "config.prepare", "--base-url", self.base_url]
        process = spawn(command, environment=environment, log_file=log_file)
        while process.poll() is None:
            if self._is_stopping:
                process.kill()
            time.sleep(TICK_SECONDS / 5)
        if process.returncode and not self._is_stopping:
            raise Refusal(f"The preparation failed: {last_lines(log_file)}\n({log_file})")
        if process.returncode == 0 and self._postgres is not None:
            write_private(self._postgres.folder / "prepared", _migrations())

    @property
    def base_url(self) -> str:
        assert self._listener is not None
        host = f"[{self._plan.host}]" if ":" in self._plan.host else self._plan.host
        return f"http://{host}:{self._listener.getsockname()[1]}"

    def _database_url(self) -> str:
        if self._plan.database_url:
            check_server(self._plan.database_url)
            return self._plan.database_url
        self._postgres = EmbeddedPostgres(
            self._plan.home / "postgres",
            options=POSTGRES_OPTIONS,
            log_file=self._plan.home / "logs" / "postgres.log",
        )
        return self._postgres.start()

    def _environment(self, database_url: str) -> dict[str, str]:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "SEDERUNT_ENV": self._plan.kind,
            "SEDERUNT_HOME": str(self._plan.home),
            "DATABASE_URL": database_url,
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        }
        environment["DATABASE_DIRECT_URL"] = os.environ.get("DATABASE_DIRECT_URL") or database_url
        if self._plan.is_development:
            _provide_keys(self._plan.home / "keys", environment)
        return environment

    def _plan_children(self, environment: dict[str, str]) -> list[Child]:
        assert self._listener is not None
        listener = self._listener.fileno()
        web = [sys.executable, "-m", "config.serve", "--fd", str(listener)]
        work = [sys.executable, str(ROOT / "manage.py"), "work"]
        home = self._plan.home
        children = [
            Child(f"web-{number}", web, environment, home, inherited=[listener])
            for number in range(1, self._plan.web + 1)
        ]
        children += [
            Child(f"worker-{number}", work, environment, home)
            for number in range(1, self._plan.workers + 1)
        ]
        return children

    # ── running ──
    def _watch(self) -> None:
        began = time.monotonic()
        warned = False
        while not self._is_stopping:
            self._keep_postgres()
            for child in self._children:
                if sentence := child.tend():
                    say(sentence)
            if not self._announced and self._is_ready():
                self._announced = True
                self._announce()
            if not self._announced and not warned and time.monotonic() - began > SLOW_START_SECONDS:
                warned = True
                say(f"Not ready after {SLOW_START_SECONDS} seconds; see {self._plan.home / 'logs'}")
            time.sleep(TICK_SECONDS)

    def _keep_postgres(self) -> None:
        """A database that died is started again, at the same address."""
        postgres = self._postgres
        if postgres is None or not postgres.is_down or time.monotonic() < self._postgres_at:
            return
        say("PostgreSQL ended; it starts again.")
        try:
            postgres.start()
        except (PostgresError, psycopg.Error, OSError) as error:
            self._postgres_at = time.monotonic() + POSTGRES_PAUSE_SECONDS
            say(f"{error}")

    def _is_ready(self) -> bool:
        assert self._listener is not None
        host, port = self._listener.getsockname()[:2]
        connection = http.client.HTTPConnection(host, port, timeout=1)
        try:
            connection.request("GET", "/readyz", headers={"Host": f"localhost:{port}"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _announce(self) -> None:
        say(f"\nSederunt is ready: {self.base_url}")
        demo = self._plan.home / "demo.json"
        if self._plan.is_development and demo.is_file():
            owner = json.loads(demo.read_text())["users"][0]
            say(f"  sign in with  {owner['email']}")
            say(f"  password      {owner['password']}")
            say(f"  more logins and API keys are in {demo}")
        say(f"  logs are in {self._plan.home / 'logs'}; Ctrl-C stops everything\n")

    # ── stopping ──
    def _stop_all(self) -> None:
        if self._children:
            say("Stopping…")
        signals = self._signals
        for child in self._children:
            child.signal(signal.SIGTERM)
        self._wait_for_end(STOP_SECONDS, hurried=lambda: self._signals > max(1, signals))
        for child in self._children:
            child.signal(signal.SIGKILL)
        self._wait_for_end(5, hurried=lambda: False)
        for child in self._children:
            child.forget()
        if self._listener is not None:
            self._listener.close()
        if self._postgres is not None:
            self._postgres.stop(at_once=self._signals > max(1, signals))
        if self._lock is not None:
            self._lock.close()

    def _wait_for_end(self, seconds: float, *, hurried: Callable[[], bool]) -> None:
        deadline = time.monotonic() + seconds
        while any(child.is_running for child in self._children):
            if hurried() or time.monotonic() > deadline:
                return
            time.sleep(TICK_SECONDS / 5)


def check_server(url: str) -> None:
    """A server that is not ours must be able to do what we need. Raises Refusal."""
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            version = connection.info.server_version // 10_000
            if version < OLDEST_POSTGRES:
                raise Refusal(f"DATABASE_URL is PostgreSQL {version}; {OLDEST_POSTGRES} is needed.")
            folds = connection.execute("SELECT lower('Ü') = 'ü'").fetchone()
            encoding = connection.execute("SHOW server_encoding").fetchone()
            if encoding != ("UTF8",) or folds != (True,):
                raise Refusal("DATABASE_URL must be a UTF-8 database with a UTF-8 LC_CTYPE.")
            for name in EXTENSIONS:
                connection.execute(f"CREATE EXTENSION IF NOT EXISTS {name}")
    except psycopg.errors.InsufficientPrivilege as error:
        needed = "; ".join(f"CREATE EXTENSION {name}" for name in EXTENSIONS)
        raise Refusal(f"A superuser must first do this in the database: {needed}") from error
    except psycopg.Error as error:
        raise Refusal(f"DATABASE_URL does not work: {str(error).strip()}") from error


def _migrations() -> str:
    """The names of all migrations of this code, and of the packages that bring their own."""
    ours = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("*/migrations/[0-9]*.py"))
    lock = (ROOT / "uv.lock").stat()
    return "\n".join([*ours, f"{lock.st_size} {lock.st_mtime_ns}"])


def say(text: str) -> None:
    print(text, flush=True)


def _number(
    environ: Mapping[str, str], name: str, default: int, *, lowest: int, highest: int
) -> int:
    raw = environ.get(name, "").strip() or str(default)
    if not (raw.isascii() and raw.isdigit() and lowest <= int(raw) <= highest):
        raise Refusal(f"{name} must be a whole number between {lowest} and {highest}, not {raw!r}.")
    return int(raw)


def _lock_home(path: Path) -> IO[str]:
    lock = path.open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        pid = lock.read().strip() or "?"
        lock.close()
        raise Refusal(
            f"Sederunt already runs in {path.parent.parent} (process {pid}). Stop it, or set "
            "SEDERUNT_HOME and PORT for a second one."
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise Refusal(
            f"Cannot listen on {host}:{port}: {error.strerror or error}. "
            f"Another port: PORT={port + 1} make run"
        ) from error
    listener.listen(BACKLOG)
    return listener


def _provide_keys(folder: Path, environment: dict[str, str]) -> None:
    """Made once, so that logins and stored credentials outlive a restart."""
    makers = {
        "SEDERUNT_SECRET_KEY": ("secret_key", lambda: secrets.token_urlsafe(64)),
        "SEDERUNT_ENCRYPTION_KEY": (
            "encryption_key",
            lambda: base64.urlsafe_b64encode(os.urandom(32)).decode(),
        ),
    }
    for name, (file_name, make) in makers.items():
        path = folder / file_name
        if environment.get(name):
            continue
        if not path.is_file():
            write_private(path, make())
        environment[name] = path.read_text().strip()


def main() -> int:
    try:
        return Supervisor(read_plan(os.environ)).run()
    except (Refusal, PostgresError, OSError) as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
