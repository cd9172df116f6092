"""Who sees a session. `querysets.visible_to` says the same in SQL; a test holds them equal."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from orgs.access import Access
from orgs.roles import Action
from sessions_app.domain.vocabulary import Visibility


@dataclass(frozen=True, slots=True)
class SessionFacts:
    workspace_id: UUID
    visibility: Visibility
    maker_id: UUID | None


def admits(access: Access, facts: SessionFacts) -> bool:
    """A private session is its maker's alone, and no key's; without a maker it is nobody's."""
    if not access.may(Action.SESSION_READ, facts.workspace_id):
        return False
    if facts.visibility is Visibility.WORKSPACE:
        return True
    return access.user_id is not None and facts.maker_id == access.user_id
