"""What the app may weigh, and that its parts are all there."""

from __future__ import annotations

import gzip
import re
import zipfile
from pathlib import Path

import lucide
import pytest

from sessions_app.web.rendering import _TOOL_ICONS
from sessions_app.web.transcript import _HANDLERS

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "templates"
SHOWN_BY = {
    "turn.started": "user.message",
    "turn.queued": "user.message",
    "turn.withdrawn": "user.message",
    "turn.completed": "agent.message",
    "user.interrupt": "turn.cancelled",
    "attempt.started": "turn.recovering",
    "session.status_running": "session.status_rescheduled",
    "step.checkpoint": "agent.message",
    "agent.message_delta": "agent.message",
    "agent.thinking_delta": "agent.thinking",
    "agent.tool_result": "agent.tool_use",
    "agent.question_closed": "agent.question",
    "user.question_response": "agent.question",
    "child.awaited": "agent.tool_use",
}


@pytest.mark.parametrize(("kind", "budget"), [("css", 25_000), ("js", 60_000)])
def test_styles_and_scripts_stay_small(kind: str, budget: int) -> None:
    files = sorted((ROOT / "static" / kind).glob(f"*.{kind}"))
    assert files
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) <= budget


def test_every_shown_event_type_has_a_fragment() -> None:
    for kind in _HANDLERS:
        assert (TEMPLATES / "events" / f"{SHOWN_BY.get(kind, kind)}.html").is_file(), kind
    assert (TEMPLATES / "events" / "_unknown.html").is_file()


def test_every_icon_exists() -> None:
    archive = zipfile.ZipFile(Path(lucide.__file__).parent / "lucide.zip")
    known = {name.removesuffix(".svg") for name in archive.namelist()}
    used = {name for _, name in _TOOL_ICONS} | {"wrench"}
    for template in TEMPLATES.rglob("*.html"):
        used |= set(re.findall(r'{% icon "([^"]+)"', template.read_text()))
    assert used - known == set()


def test_colours_live_in_one_place() -> None:
    for sheet in (ROOT / "static" / "css").glob("*.css"):
        if sheet.name == "tokens.css":
            continue
        found = re.findall(r"#[0-9a-fA-F]{3,8}\b", sheet.read_text())
        assert found == [], f"{sheet.name} names a colour of its own: {found}"


def test_templates_hold_no_scripts_and_no_styles_of_their_own() -> None:
    for template in TEMPLATES.rglob("*.html"):
        text = template.read_text()
        assert " style=" not in text, template.name
        assert not re.search(r"<script(?![^>]*\bsrc=)", text), template.name
        assert not re.search(r"\son\w+=", text), template.name
