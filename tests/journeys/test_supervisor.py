"""`make run` itself: what it writes, that it starts again in seconds, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from core.embedded_postgres import EmbeddedPostgres
from tests.journeys.client import texts
from tests.journeys.server import ROOT, Server, is_at_work, still_at_work

# What a second start takes on two idle cores is told in the README; other tests run beside this.
SECOND_START_SECONDS = 20


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """A server that these tests stop and start; each finds and leaves it running."""
    server = Server()
    try:
        yield server.start()
    finally:
        server.remove()


def test_demo_json_is_what_the_contract_says(own: Server) -> None:
    path = own.home / "demo.json"
    assert path.stat().st_mode & 0o777 == 0o600
    demo = own.demo
    assert set(demo) == {"base_url", "organization_id", "workspace_id", "users", "keys"}
    roles = sorted(user["role"] for user in demo["users"])
    assert roles == ["admin", "member", "member", "outsider", "owner", "viewer"]
    assert all(set(user) == {"name", "email", "password", "role"} for user in demo["users"])
    assert all(set(key) == {"name", "scope", "key"} for key in demo["keys"])
    scopes = sorted(key["scope"] for key in demo["keys"])
    assert scopes == ["organization", "read_only", "workspace"]
    assert demo["organization_id"].startswith("org_")
    assert demo["workspace_id"].startswith("wrk_")
    for kept in ("keys/secret_key", "keys/encryption_key", "postgres/connection.json"):
        assert (own.home / kept).stat().st_mode & 0o777 == 0o600


def test_the_example_sessions_were_produced_by_turns_that_ran(own: Server) -> None:
    client = own.client()
    listed = client.call("GET", "sessions", params={"workspace_id": client.workspace_id})
    assert len(listed["data"]) >= 4
    for session in listed["data"]:
        events = client.wait_for(
            session["id"], lambda log: log[-1]["type"] == "session.status_idle", seconds=60
        )
        assert texts(events)


def test_everyone_in_demo_json_can_sign_in_with_the_form(own: Server) -> None:
    for user in own.demo["users"]:
        with httpx.Client(base_url=own.url, follow_redirects=True) as browser:
            page = browser.get("/")
            assert 'name="email"' in page.text
            assert 'name="password"' in page.text
            form = {"email": user["email"], "password": user["password"]}
            form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
            entered = browser.post(page.url, data=form)
            assert entered.status_code == 200
            assert user["name"] in entered.text


def test_each_key_does_what_its_scope_says(own: Server) -> None:
    for scope in ("organization", "workspace"):
        own.client(scope).create(f"By the {scope} key")
    with pytest.raises(AssertionError, match="missing_scope"):
        own.client("read_only").create("Refused")


def test_ctrl_c_leaves_nothing_running_and_the_second_start_takes_seconds(own: Server) -> None:
    made = own.client().create("Kept over a restart")
    before, pids = own.demo, own.pids()
    assert set(pids) == {"web-1", "worker-1", "postgres"}
    assert own.stop(signal.SIGINT) == 0
    assert not still_at_work(pids)
    assert not list((own.home / "run").glob("*.pid"))
    assert not (own.home / "postgres" / "connection.json").exists()
    own.start()
    assert own.seconds_to_ready < SECOND_START_SECONDS
    after = own.demo
    assert after.pop("base_url") == own.url != before.pop("base_url")
    assert after == before
    assert own.client().session(made)["title"] == "Kept over a restart"


def test_sigterm_stops_as_ctrl_c_does(own: Server) -> None:
    pids = own.pids()
    assert own.stop(signal.SIGTERM) == 0
    assert not still_at_work(pids)
    own.start()


def test_a_killed_starter_leaves_nothing_running(own: Server) -> None:
    pids = own.pids()
    assert own.process is not None
    own.process.kill()
    own.process.wait()
    own.process = None
    own.wait_until(lambda: not still_at_work(pids), 20, "something outlived its starter")
    own.start()


def test_a_process_that_dies_is_started_again(own: Server) -> None:
    for name in ("web-1", "worker-1"):
        pid = own.pid(name)
        os.kill(pid, signal.SIGKILL)
        own.wait_until(lambda n=name, p=pid: own.pid(n) != p, 20, f"{name} is not back")
    assert "was ended by SIGKILL" in own.output
    session_id = own.client().start({"say": "here"})
    assert texts(own.client().wait_for_idle(session_id)) == ["here"]


def test_a_shell_of_the_same_home_attaches_to_its_database(own: Server) -> None:
    done = own.manage("shell", "-c", "from orgs.models import User; print(User.objects.count())")
    assert done.stdout.split()[-1] == "6", done.stderr


def test_a_second_server_in_the_same_home_is_refused_with_a_sentence(own: Server) -> None:
    second = Server(home=own.home)
    answer = _refused(SEDERUNT_HOME=str(second.home), PORT="0")
    assert "already runs in" in answer
    assert own.client().call("GET", "sessions", params={"workspace_id": own.demo["workspace_id"]})


def test_a_taken_port_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = _refused(SEDERUNT_HOME=str(tmp_path), PORT=str(port))
    assert f"PORT={port + 1} make run" in answer


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"PORT": "eighty"}, "PORT must be a whole number"),
        ({"WEB": "0"}, "WEB must be a whole number between 1"),
        ({"SEDERUNT_ENV": "staging"}, "must be development, test or production"),
        ({"SEDERUNT_ENV": "production"}, "Production needs DATABASE_URL"),
        (
            {"SEDERUNT_ENV": "production", "DATABASE_URL": "postgresql://nobody@localhost/none"},
            "Production needs SEDERUNT_SECRET_KEY",
        ),
        ({"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}, "DATABASE_URL does not work"),
    ],
)
def test_a_wrong_setting_is_refused_with_a_sentence(
    tmp_path: Path, environment: dict[str, str], sentence: str
) -> None:
    answer = _refused(**{"SEDERUNT_HOME": str(tmp_path), "PORT": "0", **environment})
    assert sentence in answer
    assert "Traceback" not in answer


def test_database_url_uses_that_server_and_starts_none(tmp_path: Path) -> None:
    elsewhere = EmbeddedPostgres(tmp_path / "pg", options={"fsync": "off"})
    url = elsewhere.start()
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE theirs")
        server = Server(DATABASE_URL=url.replace("/sederunt?", "/theirs?"))
        try:
            server.start()
            assert "postgres" not in server.pids()
            assert not (server.home / "postgres").exists()
            session_id = server.client().start({"say": "elsewhere"})
            assert texts(server.client().wait_for_idle(session_id)) == ["elsewhere"]
            assert server.stop() == 0
        finally:
            server.remove()
        assert elsewhere.is_running()
    finally:
        elsewhere.stop()


def test_a_second_ctrl_c_kills(tmp_path: Path) -> None:
    """A worker that is busy with a slow call would have its grace; impatience ends it."""
    server = Server()
    try:
        server.start()
        client = server.client()
        call = {"tool": "probe.append", "args": {"line": "slow", "sleep_ms": 60_000}}
        session_id = client.start({"call": [call]})
        client.wait_for(session_id, lambda log: any(e["type"] == "agent.tool_use" for e in log))
        pids = server.pids()
        process = server.process
        assert process is not None
        process.send_signal(signal.SIGINT)
        server.wait_until(lambda: "Stopping" in server.output, 10, "it does not stop")
        assert is_at_work(pids["worker-1"])
        process.send_signal(signal.SIGINT)
        assert process.wait(8) == 0
        assert not still_at_work(pids)
    finally:
        server.remove()


def _refused(**environment: str) -> str:
    """What is said by a start that does not happen."""
    inherited = {key: value for key, value in os.environ.items() if key[:9] != "SEDERUNT_"}
    for name in ("DATABASE_URL", "DATABASE_DIRECT_URL", "REDIS_URL"):
        inherited.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "config.supervisor"],
        env={**inherited, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert json.dumps(done.stdout) == '""'
    return done.stderr
