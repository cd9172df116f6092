"""`docs/compatibility.md` says what is true: codes, fields, scopes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from core import errors
from core.api.errors import CODES
from core.api.fields import StrictSerializer
from sessions_app.api import requests
from tests.api.matrix_rows import COLUMNS, MATRIX

ROOT = Path(settings.BASE_DIR)
TEXT = (ROOT / "docs" / "compatibility.md").read_text()
RAISED = {kind.__name__ for kind in errors.DomainError.__subclasses__()}
# A page's own codes, never an answer of the API.
WEB_ONLY = frozenset({"empty_prompt", "weak_password", "wrong_password"})


def documented_codes() -> set[str]:
    rows = [line.split("|")[1] for line in TEXT.split("## Errors")[1].splitlines() if "|" in line]
    return set(re.findall(r"`(\w+)`", " ".join(rows)))


def codes_in_the_source() -> Iterator[str]:
    for folder in ("core", "orgs", "catalog", "sessions_app"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    yield from _codes(node)


def _codes(call: ast.Call) -> Iterator[str]:
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    given = call.args[:1] if name in RAISED else []
    if name in {"ValidationError", "ErrorDetail"}:
        given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    for value in given:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value


def test_every_code_is_in_the_table_of_errors() -> None:
    defaults = {kind.default_code for kind in errors.DomainError.__subclasses__()}
    used = {*codes_in_the_source(), *defaults, *CODES.values()} - {"conflict"} - WEB_ONLY
    assert used - documented_codes() == set()


def test_ignored_and_refused_fields_are_listed() -> None:
    ignored, refused = re.findall(r"\*\*(?:Accepted|Refused)[^:]*\*\*:? ?(.*)", TEXT)[:2]
    shapes = [
        shape
        for shape in vars(requests).values()
        if isinstance(shape, type) and issubclass(shape, StrictSerializer)
    ]
    for shape in shapes:
        for name in shape.ignored:
            assert f"`{name}`" in ignored, name
        for name in shape.not_yet:
            assert f"`{name}`" in refused, name


def test_every_route_is_listed_with_the_scope_it_needs() -> None:
    listed = {
        (method, path.replace("{", "<str:").replace("}", ">")): scope
        for method, path, scope in re.findall(r"\| `([A-Z]+) ([^`]+)` \| ([\w ]+) \|", TEXT)
    }
    assert listed.keys() == MATRIX.keys()
    column = COLUMNS.index("read_only_key")
    for route, scope in listed.items():
        admits_reading = MATRIX[route].split()[column] == "200"
        assert admits_reading is (scope in {"read", "none"}), route
