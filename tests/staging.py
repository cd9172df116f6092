"""The cast of every test: made once in each process by the services, then repeated row by row.

Making it takes some hundred and sixty statements, and most tests need it.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache

from django.apps import apps
from django.db import connection, transaction

from tests.factories import Cast, make_cast

APPS = ("orgs", "catalog")  # all that a cast consists of


@cache
def _rehearse() -> tuple[Cast, str]:
    """A cast and the statements that write its rows; what is written here is undone."""
    with transaction.atomic():
        cast = make_cast()
        statements = [_insert(table) for table in _tables()]
        transaction.set_rollback(True)
    return cast, ";".join(filter(None, statements))


def stage_cast() -> Cast:
    """The same people, keys and workspaces for each test, as objects of its own."""
    cast, script = _rehearse()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(script)
    return deepcopy(cast)


def _tables() -> list[str]:
    return [model._meta.db_table for app in APPS for model in apps.get_app_config(app).get_models()]


def _insert(table: str) -> str:
    """Writes the rows that the table has now; empty where it has none. Names are from code."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT quote_literal(json_agg(row)::text) FROM {table} AS row")
        (rows,) = cursor.fetchone()
    if rows is None:
        return ""
    return f"INSERT INTO {table} SELECT * FROM json_populate_recordset(NULL::{table}, {rows})"
