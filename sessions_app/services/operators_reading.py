"""An operator reads what was said in a session of others: never without a line that says so."""

from __future__ import annotations

from django.conf import settings

from orgs.models.audit import AuditAction
from orgs.roles import WorkspaceKind
from orgs.services import audit
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Session


def may_be_read_by_operators(session: Session) -> bool:
    """Where the setting allows it, what a shared workspace shares. What one person keeps for
    themselves is never read: its very existence would stand in a log that others read.
    """
    return (
        settings.OPERATORS_READ_CONTENT
        and session.visibility == Visibility.WORKSPACE
        and session.workspace.kind == WorkspaceKind.SHARED
    )


def note_reading(session: Session, *, operator: audit.Operator) -> None:
    audit.record(
        access=operator,
        organization_id=session.organization_id,
        workspace_id=session.workspace_id,
        action=AuditAction.SESSION_READ,
        target=audit.Target("session", session.public_id, session.public_id),
    )
