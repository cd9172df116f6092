"""The embedded PostgreSQL: who owns it, who may reach it, and that nothing outlives its owner."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from core.embedded_postgres import PORTS, EmbeddedPostgres

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
OPTIONS = {"fsync": "off", "max_connections": "20", "shared_buffers": "16MB"}
OWNER = """
import sys, time
from pathlib import Path
from core.embedded_postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), options={"fsync": "off", "max_connections": "20"})
print(server.start(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, because a socket's path is; with a space, because people have those."""
    with tempfile.TemporaryDirectory(prefix="pg ") as name:
        yield Path(name) / "postgres"


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(folder, options=OPTIONS)
    server.start()
    yield server
    server.stop()


def test_a_fresh_cluster_is_private_and_can_search(server: EmbeddedPostgres) -> None:
    assert server.folder.stat().st_mode & 0o777 == 0o700
    assert server.connection_file.stat().st_mode & 0o777 == 0o600
    assert json.loads(server.connection_file.read_text()) == {"url": server.url}
    with psycopg.connect(server.url) as connection:
        row = connection.execute(
            "SELECT lower('ÜÉ'), unaccent('é'), cardinality(show_trgm('日本語')) > 0"
        ).fetchone()
        assert row == ("üé", "e", True)
        method = connection.execute("SHOW password_encryption").fetchone()
        assert method == ("scram-sha-256",)


def test_a_wrong_password_is_refused(server: EmbeddedPostgres) -> None:
    password = (server.folder / "password").read_text()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.url.replace(password, "wrong"))


def test_a_second_process_attaches_and_does_not_stop_what_it_does_not_own(
    server: EmbeddedPostgres,
) -> None:
    other = EmbeddedPostgres(server.folder, options=OPTIONS)
    assert other.start() == server.url
    assert not other.owned
    other.stop()
    assert server.is_running()


def test_data_outlives_a_stop_and_a_stop_leaves_no_address(folder: Path) -> None:
    server = EmbeddedPostgres(folder, options=OPTIONS)
    with psycopg.connect(server.start()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    server.stop()
    assert not server.connection_file.exists()
    assert not (folder / "data" / "postmaster.pid").exists()
    with psycopg.connect(server.start()) as connection:
        assert connection.execute("SELECT one FROM kept").fetchone() == (1,)
    server.stop()


def test_a_killed_server_recovers_at_the_same_address(server: EmbeddedPostgres) -> None:
    url = server.url
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    os.kill(_server_pid(server.folder), signal.SIGKILL)
    _wait(lambda: server.is_down)
    assert server.start() == url
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT one FROM kept").fetchone() == (1,)


def test_a_pid_that_now_belongs_to_another_program_does_not_stop_the_start(folder: Path) -> None:
    server = EmbeddedPostgres(folder, options=OPTIONS)
    server.start()
    left = (folder / "data" / "postmaster.pid").read_text().splitlines()
    server.stop()
    left[0] = str(os.getpid())
    (folder / "data" / "postmaster.pid").write_text("\n".join(left) + "\n")
    server.start()
    assert server.is_running()
    server.stop()


def test_a_path_too_long_for_a_socket_is_served_on_loopback(folder: Path) -> None:
    server = EmbeddedPostgres(folder / ("long" * 30), options=OPTIONS)
    url = server.start()
    with psycopg.connect(url) as connection:
        assert connection.info.host == "127.0.0.1"
        assert connection.info.port in PORTS
    server.stop()
    assert server.start() == url
    server.stop()


def test_a_killed_owner_leaves_no_server_and_the_next_one_takes_over(folder: Path) -> None:
    owner = _start_owner(folder)
    pid = _server_pid(folder)
    owner.kill()
    owner.wait()
    server = EmbeddedPostgres(folder, options=OPTIONS)
    server.start()  # waits for the end of the server that was left
    assert server.owned
    assert not _is_at_work(pid)
    server.stop()


def test_an_ordinary_user_can_run_it(folder: Path) -> None:
    """Where the tests run as root, as nobody; else as ourselves."""
    prefix: list[str] = []
    if os.geteuid() == 0:
        folder.parent.chmod(0o755)
        folder.mkdir()
        os.chown(folder, 65534, 65534)
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    owner = _start_owner(folder, prefix)
    status = Path(f"/proc/{_server_pid(folder)}/status").read_text()
    assert "\nUid:\t0\t" not in status
    owner.terminate()
    owner.wait()
    _wait(lambda: not (folder / "data" / "postmaster.pid").exists())


def _start_owner(folder: Path, prefix: list[str] | None = None) -> subprocess.Popen[str]:
    owner = subprocess.Popen(
        [*(prefix or []), sys.executable, "-c", OWNER, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert owner.stdout is not None
    with owner.stdout:
        assert owner.stdout.readline().startswith("postgresql://")
    return owner


def _server_pid(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])


def _is_at_work(pid: int) -> bool:
    """A process that ended but that nobody has waited for has no command line any more."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def _wait(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
