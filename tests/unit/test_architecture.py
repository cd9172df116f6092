"""The house rules that a machine can hold."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sessions_app.services
from orgs.selectors import audit, logins, workspaces
from sessions_app import inbox, listing, selectors

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ["config", "engine", "sessions_app", "catalog", "orgs", "core"]
MODULE_LINES, FUNCTION_LINES = 400, 50
SOURCES = sorted(
    path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "migrations" not in path.parts
)
# Who acts is in the lease, or nobody acts: chores and set-up.
WITHOUT_ACCESS = {
    "sessions_app.services.attempts",
    "sessions_app.services.model_settings",
    "sessions_app.services.open_waits",
    "sessions_app.services.settling",
    "sessions_app.services.validation",
    "sessions_app.services.verification",
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_modules_and_functions_stay_small(path: Path) -> None:
    source = path.read_text()
    assert source.count("\n") <= MODULE_LINES
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]
    assert long == []


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_modules_say_what_they_are_for(path: Path) -> None:
    if path.name in {"__init__.py", "apps.py"}:
        return
    assert ast.get_docstring(ast.parse(path.read_text()))


def public_functions(module: object) -> Iterator[tuple[str, inspect.Signature]]:
    for name, value in vars(module).items():
        is_own = inspect.isfunction(value) and value.__module__ == module.__name__  # type: ignore[attr-defined]
        if is_own and not name.startswith("_"):
            yield name, inspect.signature(value)


def works_on_a_held_row(signature: inspect.Signature) -> bool:
    """A building block of other services: its caller got the row with an access, and holds it."""
    first = next(iter(signature.parameters.values()), None)
    return first is not None and first.annotation in {"Session", "Turn", "Attempt", "Wait", "Call"}


def guarded_modules() -> list[str]:
    found = pkgutil.walk_packages(sessions_app.services.__path__, "sessions_app.services.")
    names = [m.name for m in found if not any(m.name.startswith(w) for w in WITHOUT_ACCESS)]
    readers = [selectors, listing, inbox, audit, logins, workspaces]
    return [*names, *(reader.__name__ for reader in readers)]


@pytest.mark.parametrize("name", guarded_modules())
def test_services_and_selectors_take_the_callers_access_by_keyword(name: str) -> None:
    exempt = {"consume_draft"}
    for function, signature in public_functions(importlib.import_module(name)):
        if function in exempt or works_on_a_held_row(signature):
            continue
        parameter = signature.parameters.get("access")
        assert parameter is not None, f"{name}.{function} takes no access"
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY, f"{name}.{function}"
        assert parameter.default is inspect.Parameter.empty, f"{name}.{function}"


def test_every_engine_write_takes_a_lease_or_is_a_chore() -> None:
    attempts = importlib.import_module("sessions_app.services.attempts")
    chores = {"claim_turn", "find_claim", "reap_expired"}
    for name in attempts.__all__:
        value = getattr(attempts, name)
        if inspect.isfunction(value) and name not in chores:
            parameters = inspect.signature(value).parameters
            assert {"lease", "leases", "groups"} & parameters.keys(), name


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_only_the_event_log_touches_the_event_table(path: Path) -> None:
    allowed = {"sessions_app/eventlog", "sessions_app/models"}
    if any(name_of(path).startswith(prefix) for prefix in allowed):
        return
    source = path.read_text()
    assert "sessions_app_event" not in source
    assert "Event.objects" not in source


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_pages_and_the_api_read_the_log_through_selectors(path: Path) -> None:
    """With a session that was read with an access; the hub's shared reader is the exception."""
    if name_of(path).startswith(("sessions_app/web", "sessions_app/api")):
        source = path.read_text()
        assert not re.search(r"\beventlog\.(read|sum|head)", source)
        assert not re.search(r"from sessions_app import .*\beventlog\b", source)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_signals(path: Path) -> None:
    assert "django.db.models.signals" not in path.read_text()
    assert "django.dispatch" not in path.read_text()


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_one_module_sets_structlog_and_hands_it_out(path: Path) -> None:
    """As it comes, it would print the values of variables with each traceback."""
    if name_of(path) != "engine/logs.py":
        assert "structlog" not in path.read_text()
