"""README's own commands, as written: what somebody types in their first minute."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

from engine.providers.assistant_texts import LONG
from tests.journeys.client import Client, count, texts
from tests.journeys.server import ROOT, Server

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
STREAM_SECONDS = 10


def block(language: str, holds: str) -> str:
    (found,) = [text for kind, text in BLOCKS if kind == language and holds in text]
    return str(found)


def run(server: Server, tmp_path: Path, commands: str) -> str:
    """In a folder with a `.sederunt`, as beside `make run`; a stream ends by itself."""
    (tmp_path / ".sederunt").symlink_to(server.home)
    commands = commands.replace("http://127.0.0.1:8000", server.url)
    commands = commands.replace("curl -N", f"curl -sS -N --max-time {STREAM_SECONDS}")
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    done = subprocess.run(
        ["bash", "-c", f"{commands}\necho session=$SESSION"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_the_examples_make_a_session_and_follow_it(server: Server, tmp_path: Path) -> None:
    told = run(server, tmp_path, block("sh", "curl"))
    assert "event: session.created" in told
    assert "event: turn.completed" in told
    assert re.search(r"^session=ses_\w+$", told, re.MULTILINE)


def test_the_first_prompt_streams_long_enough_to_kill_the_worker_in(tmp_path: Path) -> None:
    own = Server()
    try:
        own.start()
        client = own.client()
        prompt = block("text", "a long answer").strip()
        session = made(client, prompt)
        client.wait_for(session, lambda events: count(events, "agent.message_delta") >= 10)
        kill = block("sh", "kill -9")
        assert shlex.split(kill)[:2] == ["kill", "-9"]
        own.worker_of(session)
        run(own, tmp_path, kill)
        events = client.wait_for_idle(session, seconds=90)
        assert count(events, "turn.recovering") == count(events, "turn.completed") == 1
        assert count(events, "turn.started") == 1
        assert texts(events)[-1] == LONG
    finally:
        own.remove()


def made(client: Client, prompt: str) -> str:
    """A session as the pages make it: with the default model."""
    body = {"initial_events": [{"type": "user.message", "content": prompt}]}
    return str(client.call("POST", "sessions", json=body)["id"])
