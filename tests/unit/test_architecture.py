"""The house rules that a machine can hold."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from django.apps import apps

from tests.unit.doors import DOORS

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ["config", "engine", "sessions_app", "catalog", "orgs", "core"]
MODULE_LINES, FUNCTION_LINES = 400, 50
SOURCES = sorted(
    path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "migrations" not in path.parts
)
Texts = Iterator[tuple[str, str]]
SERVICES = ("orgs.services", "catalog.services", "sessions_app.services")
SELECTORS = (
    "orgs.selectors",
    "catalog.selectors",
    "sessions_app.inbox",
    "sessions_app.inventory",
    "sessions_app.listing",
    "sessions_app.selectors",
    "sessions_app.tree",
)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def sources(*, without: Collection[str] = (), under: str | tuple[str, ...] = "") -> Texts:
    """The name and text of each module below `under`, without those whose names begin so."""
    for path in SOURCES:
        name = name_of(path)
        if name.startswith(under) and not name.startswith(tuple(without)):
            yield name, path.read_text()


def test_modules_and_functions_stay_small() -> None:
    too_long = []
    for name, text in sources():
        if text.count("\n") > MODULE_LINES:
            too_long.append(name)
        for node in ast.walk(ast.parse(text)):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES:
                too_long.append(f"{name}: {node.name}")
    assert too_long == []


def test_modules_say_what_they_are_for() -> None:
    silent = [
        name
        for name, text in sources()
        if not name.endswith(("__init__.py", "apps.py")) and not ast.get_docstring(ast.parse(text))
    ]
    assert silent == []


def doors() -> Iterator[tuple[str, inspect.Signature]]:
    """Every public function of the services and selectors, by its full name."""
    for name in (*SERVICES, *SELECTORS):
        module = importlib.import_module(name)
        below = pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}.")
        for each in (module, *(importlib.import_module(found.name) for found in below)):
            for function, value in vars(each).items():
                is_own = inspect.isfunction(value) and value.__module__ == each.__name__
                if is_own and not function.startswith("_"):
                    yield f"{each.__name__}.{function}", inspect.signature(value)


HELD = {model.__name__ for model in apps.get_models()} | {"Call", "Lease"}


def is_guarded(signature: inspect.Signature) -> bool:
    """It takes the caller's access, by a keyword that must be given; or it is a building block of
    others: it is handed a row that was read with an access, or whoever acts.
    """
    for name in ("access", "by"):
        guard = signature.parameters.get(name)
        if guard is not None and guard.default is inspect.Parameter.empty:
            return guard.kind is inspect.Parameter.KEYWORD_ONLY or name == "by"
    first = next(iter(signature.parameters.values()), None)
    held = (
        re.fullmatch(r"(?:(?:Sequence|list)\[)?(\w+)\]?", str(first.annotation)) if first else None
    )
    return held is not None and held[1] in HELD


def exception_for(name: str) -> str | None:
    return next((door for door in DOORS if name == door or name.startswith(f"{door}.")), None)


def test_services_and_selectors_take_the_callers_access_by_keyword() -> None:
    open_ones = [name for name, signature in doors() if not is_guarded(signature)]
    assert [name for name in open_ones if exception_for(name) is None] == []
    assert DOORS.keys() - set(map(exception_for, open_ones)) == set()


def test_every_engine_write_takes_a_lease_or_is_a_chore() -> None:
    attempts = importlib.import_module("sessions_app.services.attempts")
    chores = {"claim_turn", "find_claim", "reap_expired"}
    for name in attempts.__all__:
        value = getattr(attempts, name)
        if inspect.isfunction(value) and name not in chores:
            parameters = inspect.signature(value).parameters
            assert {"lease", "leases", "groups"} & parameters.keys(), name


def test_only_the_event_log_touches_the_event_table() -> None:
    for name, text in sources(without=["sessions_app/eventlog", "sessions_app/models"]):
        assert "sessions_app_event" not in text, name
        assert "Event.objects" not in text, name


def test_pages_and_the_api_read_the_log_through_selectors() -> None:
    """With a session that was read with an access; the hub's shared reader is the exception."""
    for name, text in sources(under=("sessions_app/web", "sessions_app/api")):
        assert not re.search(r"\beventlog\.(read|sum|head)", text), name
        assert not re.search(r"from sessions_app import .*\beventlog\b", text), name


def test_no_signals() -> None:
    for name, text in sources():
        assert "django.db.models.signals" not in text, name
        assert "django.dispatch" not in text, name


def test_one_module_sets_structlog_and_hands_it_out() -> None:
    """As it comes, it would print the values of variables with each traceback."""
    for name, text in sources(without=["engine/logs.py"]):
        assert "structlog" not in text, name
