"""Of a long audit log a page and its filters read a handful of blocks, never the log."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from core.clock import now
from orgs.models.audit import ActorKind, AuditAction
from orgs.selectors.audit import AuditQuery, list_actors, read_audit_page
from tests.factories import Cast

COUNT = 100_000
BLOCKS_MAX = 150  # a full pass reads thousands
RARE = UUID(int=7)
# One in a thousand, and the oldest: a filter that walks back through time would pass over all.
WRITE = """
INSERT INTO orgs_auditentry (id, organization_id, at, action, actor_kind, actor_id, actor_name,
    target_kind, target_id, target_name, changes, address, request_id)
SELECT gen_random_uuid(), %(organization)s, now() - n * interval '1 minute',
    CASE WHEN rare THEN 'api_key.rotated' ELSE 'member.role_changed' END,
    CASE WHEN rare AND n %% 2 = 0 THEN 'server' WHEN rare THEN 'key' ELSE 'user' END,
    CASE WHEN rare AND n %% 2 = 0 THEN NULL WHEN rare THEN %(rare)s
         ELSE lpad(to_hex(n %% 40 + 16), 32, '0')::uuid END,
    CASE WHEN rare THEN 'nightly' ELSE 'Ada ' || n %% 40 END,
    'user', CASE WHEN rare THEN 'usr_rare' ELSE 'usr_' || n %% 1000 END, 'Somebody', '{}', '', ''
FROM generate_series(1, %(count)s) AS n, LATERAL (SELECT n > %(count)s * 0.999 AS rare) AS kind
"""


class Blocks:
    """How many blocks of the database each statement touched."""

    def __init__(self) -> None:
        self.touched: list[int] = []

    def __call__(self, execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        if "orgs_auditentry" in sql and not sql.startswith("EXPLAIN"):
            with context["connection"].connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", params)
                (((plan,),),) = (cursor.fetchall(),)
            root = plan[0]["Plan"]
            self.touched.append(root["Shared Hit Blocks"] + root["Shared Read Blocks"])
        return execute(sql, params, many, context)


def write_long_log(cast: Cast) -> None:
    with connection.cursor() as cursor:
        fields = {"organization": cast.organization.pk, "rare": RARE, "count": COUNT}
        cursor.execute(WRITE, fields)
        cursor.execute("ANALYZE orgs_auditentry")


QUERIES: dict[str, dict[str, Any]] = {
    "all": {},
    "who": {"actor_id": UUID(int=20)},
    "who seldom acts": {"actor_id": RARE},
    "a rare key": {"actor_kind": ActorKind.KEY, "actor_id": RARE},
    "the server": {"actor_kind": ActorKind.SERVER},
    "what": {"action": AuditAction.MEMBER_ROLE_CHANGED},
    "what is rare": {"action": AuditAction.KEY_ROTATED},
    "what never was": {"action": AuditAction.ORGANIZATION_REMOVED},
    "whom": {"about": "usr_7"},
    "who what": {"actor_id": RARE, "action": AuditAction.KEY_ROTATED},
    "when": {"until": now().replace(year=2020)},
}


@pytest.mark.slow
def test_filters_and_names_of_a_long_log_cost_a_handful_of_blocks(cast: Cast) -> None:
    write_long_log(cast)
    owner = {"access": cast.access("owner"), "organization_id": cast.organization.pk}
    for name, fields in QUERIES.items():
        query = AuditQuery(**fields)
        with connection.execute_wrapper(blocks := Blocks()):
            lines, older = read_audit_page(**owner, query=query, limit=50)
            if older:
                read_audit_page(**owner, query=query, limit=50, page=older)
        assert len(blocks.touched) == (2 if older else 1), name
        assert max(blocks.touched) <= BLOCKS_MAX, (name, blocks.touched)
        assert bool(lines) == (name not in {"what never was", "when"}), name
    with connection.execute_wrapper(blocks := Blocks()):
        actors = list_actors(**owner)
    assert len(actors) == 42
    assert {actor.name for actor in actors} >= {"Ada 39", "nightly"}
    assert sum(blocks.touched) <= 3 * BLOCKS_MAX, blocks.touched


@pytest.mark.slow
def test_the_blocks_are_really_counted(cast: Cast) -> None:
    write_long_log(cast)
    with connection.execute_wrapper(blocks := Blocks()), connection.cursor() as cursor:
        cursor.execute("SELECT count(actor_name) FROM orgs_auditentry WHERE actor_name <> 'x'")
    assert blocks.touched[0] > 10 * BLOCKS_MAX
