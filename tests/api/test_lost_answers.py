"""A web process is killed with a request in its hands; the client asks again (BR-043)."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from tests.journeys.client import Client
from tests.journeys.server import Server

pytestmark = pytest.mark.slow
HELD_BACK = {"events": [{"type": "user.message", "content": "Once"}]}


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """Two web processes: the one that is asked again is another one."""
    server = Server(WEB="2", WORKERS="1")
    try:
        yield server.start()
    finally:
        server.remove()


def headers(client: Client, key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {client.key}", "Idempotency-Key": key}


def ask_and_forget(client: Client, session_id: str, key: str) -> threading.Thread:
    """Sends the prompt; what becomes of the answer nobody looks at."""

    def ask() -> None:
        try:
            httpx.post(
                f"{client.url}/v1/sessions/{session_id}/events",
                json=HELD_BACK,
                headers=headers(client, key),
                timeout=60,
            )
        except httpx.TransportError:
            return

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def kill_web(server: Server) -> None:
    for name, pid in server.pids().items():
        if name.startswith("web"):
            os.kill(pid, signal.SIGKILL)


def ask_again(server: Server, client: Client, session_id: str, key: str) -> httpx.Response:
    answers: list[httpx.Response] = []

    def answered() -> bool:
        try:
            answer = httpx.post(
                f"{client.url}/v1/sessions/{session_id}/events",
                json=HELD_BACK,
                headers=headers(client, key),
                timeout=30,
            )
        except httpx.TransportError:
            return False
        answers.append(answer)
        return answer.status_code < 500

    server.wait_until(answered, 60, "no web process came back")
    return answers[-1]


def test_killed_after_the_commit_the_retry_gets_the_first_receipt(own: Server) -> None:
    client = own.client()
    session_id = client.create()
    asked = ask_and_forget(client, session_id, "after")
    own.wait_until(lambda: client.events(session_id, "user.message"), 30, "nothing was written")
    kill_web(own)
    asked.join()
    again = ask_again(own, client, session_id, "after")
    assert (again.status_code, again.headers["idempotent-replayed"]) == (202, "true")
    (written,) = client.events(session_id, "user.message")
    (echo,) = again.json()["data"]
    assert (echo["id"], echo["turn_id"]) == (written["id"], written["turn_id"])
    client.wait_for_idle(session_id)
    assert len(client.turns(session_id)) == 1


def test_killed_before_the_commit_the_retry_does_the_work(own: Server) -> None:
    client = own.client()
    session_id = client.create()
    database = json.loads((own.home / "postgres" / "connection.json").read_text())["url"]
    with psycopg.connect(database) as holder:
        holder.execute(
            "SELECT 1 FROM sessions_app_session WHERE id = %s FOR UPDATE",
            [session_id.removeprefix("ses_")],
        )
        asked = ask_and_forget(client, session_id, "before")
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        own.wait_until(lambda: own.query(waiting), 30, "nobody waits for the session")
        kill_web(own)
        asked.join()
    again = ask_again(own, client, session_id, "before")
    assert again.status_code == 202
    assert len(client.events(session_id, "user.message")) == 1
    client.wait_for_idle(session_id)
    assert len(client.turns(session_id)) == 1
