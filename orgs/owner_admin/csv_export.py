"""Lines of the audit log as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable

from core.clock import rfc3339
from core.ids import Prefix, encode_id
from orgs.models import AuditEntry
from orgs.models.audit import ActorKind

COLUMNS = (
    "id", "at", "actor_kind", "actor_id", "actor_name", "action", "target_kind", "target_id",
    "target_name", "changes", "workspace_id", "address", "request_id",
)  # fmt: skip
# A cell that begins with one of these is a formula to some spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")
_ACTOR_PREFIXES = {
    ActorKind.USER: Prefix.USER,
    ActorKind.OPERATOR: Prefix.USER,
    ActorKind.KEY: Prefix.KEY,
}


def to_csv(lines: Iterable[AuditEntry]) -> str:
    """RFC 4180, with a header. Times are UTC."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([safe_cell(cell) for cell in _cells(line)] for line in lines)
    return text.getvalue()


def safe_cell(text: str) -> str:
    """Names are what people wrote: one that would be a formula gets an apostrophe in front."""
    begins = text.lstrip(" \u00a0\ufeff")
    return f"'{text}" if begins.startswith(_FORMULA) or text.startswith(_FORMULA) else text


def _cells(line: AuditEntry) -> list[str]:
    prefix = _ACTOR_PREFIXES.get(ActorKind(line.actor_kind))
    actor = encode_id(prefix, line.actor_id) if prefix and line.actor_id else ""
    workspace = encode_id(Prefix.WORKSPACE, line.workspace_id) if line.workspace_id else ""
    return [
        line.public_id,
        rfc3339(line.at) or "",
        line.actor_kind,
        actor,
        line.actor_name,
        line.action,
        line.target_kind,
        line.target_id,
        line.target_name,
        json.dumps(line.changes, ensure_ascii=False, sort_keys=True),
        workspace,
        line.address,
        line.request_id,
    ]
