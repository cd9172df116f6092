"""The documentation names what is there: event types, tests, settings, pages."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from sessions_app.domain import vocabulary
from sessions_app.domain.events import EVENT_TYPES, EventType

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "CHANGELOG.md"])
EVENT_LOG = (DOCS / "event-log.md").read_text()
# A cell may hold an escaped bar.
EVENT_ROW = re.compile(
    r"^\| `(?P<type>[a-z_]+\.[a-z_]+)` \| (?P<version>\d+) \| (?P<payload>(?:\\\||[^|])*) \|",
    re.MULTILINE,
)
ROWS = {row["type"]: row for row in EVENT_ROW.finditer(EVENT_LOG)}
GLOSSARY_ROW = re.compile(r"^\| \*\*(?P<term>[^*]+)\*\* \|", re.MULTILINE)
TERMS = """
    organization, workspace, member, role, principal, action, access, narrow, session, turn,
    attempt, step, checkpoint, event, draft, composer draft, log, seq, head, append, replay, follow,
    announce, claim, lease, heartbeat, expire, reap, fence, provider, model, tool, tool call,
    tool result, approval, question, wait, origin, directory, folder, service, selector
"""
SETTING = re.compile(
    r'env\.(?:text|required|number|flag|words|choice|networks|places)\(\s*"([A-Z_]+)"'
)
SETTING_ROW = re.compile(r"^\| `([A-Z_]+)` \|", re.MULTILINE)
# Read by the supervisor, before there are settings.
SETTINGS_OF_THE_START = {"HOST", "PORT", "WEB", "WORKERS"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_event_type_has_a_row_and_every_row_is_a_type() -> None:
    assert sorted(re.findall(r"^\| `(\w+\.\w+)`", EVENT_LOG, re.MULTILINE)) == sorted(EVENT_TYPES)
    assert sorted(ROWS) == sorted(EVENT_TYPES)


@pytest.mark.parametrize("kind", EVENT_TYPES.values(), ids=lambda kind: kind.name)
def test_a_row_names_the_version_and_the_fields_of_its_type(kind: EventType) -> None:
    row = ROWS[kind.name]
    assert int(row["version"]) == kind.version
    told = {(cell[1], bool(cell[2])) for cell in re.finditer(r"`(\w+)(\?)?[^`]*`", row["payload"])}
    fields = {
        (
            field.name,
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind.payload_class)
    }
    assert told == fields


def test_the_glossary_has_the_words_of_the_house_once_each() -> None:
    terms = GLOSSARY_ROW.findall((DOCS / "glossary.md").read_text())
    assert len(terms) == len(set(terms))
    assert {term.strip() for term in TERMS.split(",")} <= set(terms)


def test_the_glossary_names_every_status() -> None:
    text = (DOCS / "glossary.md").read_text()
    statuses = [
        *vocabulary.SessionStatus,
        *vocabulary.TurnStatus,
        *vocabulary.AttemptStatus,
    ]
    assert [status for status in statuses if f"`{status}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_tests_that_a_page_names_exist(page: Path) -> None:
    missing = []
    for path, test in re.findall(r"\b(tests/[\w./]*\w)(?:::(\w+))?", page.read_text()):
        target = ROOT / path
        is_there = target.exists() if not test else f"def {test}(" in target.read_text()
        if not is_there:
            missing.append(f"{path}::{test}")
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_index_leads_to_every_page() -> None:
    index = (DOCS / "README.md").read_text()
    pages = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    assert [page for page in pages if page != "README.md" and f"({page})" not in index] == []


def test_operations_explains_every_setting_and_no_other() -> None:
    read = set(SETTING.findall((ROOT / "config" / "settings.py").read_text()))
    told = set(SETTING_ROW.findall((DOCS / "operations.md").read_text()))
    assert told == read | SETTINGS_OF_THE_START


def test_every_dependency_has_its_licence_and_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = {re.split(r"[\[<>=]", each)[0] for each in asked}
    page = (DOCS / "adr" / "0009-dependencies.md").read_text()
    told = {
        name
        for row in re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|", page, re.MULTILINE)
        for name in row.split(", ")
    }
    assert names - told == set()
