"""The one filter for reading: every list and every lookup of sessions begins here."""

from __future__ import annotations

from typing import Any, Self
from uuid import UUID

from django.db import models
from django.db.models import FilteredRelation, Q
from django.db.models.expressions import RawSQL

from core.ids import Prefix
from orgs.access import Access, AgentReach
from orgs.roles import Action, WorkspaceKind
from sessions_app.domain.vocabulary import AgentAccess, Visibility

# `models.wait.ASKS_PEOPLE`, in SQL.
ASKS = "wait.status = 'open' AND wait.kind <> 'children'"
# What stands below a session is found by its root, so a session without children costs one probe.
OPEN_WAITS = f"""
(SELECT count(*) FROM sessions_app_wait AS wait
 WHERE wait.session_id = {{row}}.id AND {ASKS})
+ (SELECT count(*) FROM sessions_app_session AS below
   JOIN sessions_app_wait AS wait ON wait.session_id = below.id
   WHERE below.root_id = coalesce({{row}}.root_id, {{row}}.id) AND below.archived_at IS NULL
     AND below.ancestor_ids @> ARRAY[{{row}}.id] AND {ASKS})
"""  # noqa: S608 (constants alone)
WORKS_BELOW = """
EXISTS (SELECT 1 FROM sessions_app_session AS below
        WHERE below.root_id = coalesce({row}.root_id, {row}.id) AND below.archived_at IS NULL
          AND below.ancestor_ids @> ARRAY[{row}.id]
          AND (below.started_turn_id IS NOT NULL OR below.ready_at IS NOT NULL))
"""

# The children whose results open calls still wait for: a list of each call.
AWAITED = """
(SELECT jsonb_agg(wait.request -> 'remaining') FROM sessions_app_wait AS wait
 WHERE wait.session_id = {row}.id AND wait.status = 'open' AND wait.kind = 'children')
"""
# No EXISTS: of that the planner might make a hash of all children there are.
HAS_CHILDREN = """
coalesce((SELECT true FROM sessions_app_session AS child
          WHERE child.parent_id = {row}.id AND child.archived_at IS NULL LIMIT 1), false)
"""

# As the database folds `find_key`, so that nothing is found by the one and missed by the other.
FOLDED = "regexp_replace(normalize(lower(%s), NFKD), '[\u0300-\u036f]', '', 'g')"
HOLDS = f"strpos(sessions_app_session.find_key, {FOLDED}) > 0"
# Not pulled into the query around it: walking a list's order for a rare word, its plan would look
# at every session there is.
FOUND = f"""
sessions_app_session.id IN (
  WITH found AS MATERIALIZED (
    SELECT id FROM sessions_app_session
    WHERE workspace_id = %s AND (id BETWEEN %s AND %s OR find_key LIKE '%%' || regexp_replace(
      {FOLDED}, '([\\\\%%_])', '\\\\\\1', 'g') || '%%'))
  SELECT id FROM found)
"""  # noqa: S608 (constants alone)
# One array and no OR: of that the planner makes a look at every session there is.
WITH_PARENT = """
sessions_app_session.id = ANY (ARRAY[
  %s::uuid, (SELECT parent_id FROM sessions_app_session AS child WHERE child.id = %s)])
"""
NO_ID = UUID(int=0)
ID_DIGITS, ID_LENGTH = "0123456789abcdef", 32
ID_MIN_LENGTH = 8  # of a bare piece; fewer digits may be a word


def _ids_like(text: str) -> tuple[UUID, UUID] | None:
    """The first and last id that begin with what looks like the beginning of one."""
    text = text.strip().lower()
    head = f"{Prefix.SESSION}_"
    digits = text.removeprefix(head).replace("-", "")
    enough = 1 if text.startswith(head) else ID_MIN_LENGTH
    if not enough <= len(digits) <= ID_LENGTH or digits.strip(ID_DIGITS):
        return None
    return UUID(digits.ljust(ID_LENGTH, "0")), UUID(digits.ljust(ID_LENGTH, "f"))


def _reached_by(agent: AgentReach) -> Q:
    """`domain.visibility.reaches`, in SQL."""
    own_tree = Q(pk=agent.root_id) | Q(root_id=agent.root_id)
    allowed = Q(pk__in=[])
    if agent.end_user is not None and agent.agent_access != AgentAccess.SESSION:
        source, own_id = agent.end_user
        same = Q(end_user_source=source, end_user_id=own_id)
        allowed = same & ~Q(agent_access=AgentAccess.SESSION)
    if agent.agent_access == AgentAccess.WORKSPACE:
        allowed |= Q(agent_access=AgentAccess.WORKSPACE)
    if not agent.is_private:
        allowed &= Q(visibility=Visibility.WORKSPACE)
    return own_tree | allowed


# The manager that Django makes of this lives in a module that the name is not in.
class SessionQuerySet(models.QuerySet["Session"]):  # type: ignore[name-defined]
    def visible_to(self, access: Access) -> Self:
        """`domain.visibility.admits`, in SQL."""
        seen = Q(visibility=Visibility.WORKSPACE)
        if access.user_id is not None:
            seen |= Q(maker_id=access.user_id)
        if access.agent is not None:
            seen &= _reached_by(access.agent)
        return self.filter(seen, workspace_id__in=access.workspaces_with(Action.SESSION_READ))

    def in_inventory(self, organization_id: UUID) -> Self:
        """Roots that all of some shared workspace see, whoever asks; the caller was checked."""
        return self.filter(
            organization_id=organization_id,
            visibility=Visibility.WORKSPACE,
            parent__isnull=True,
            workspace__kind=WorkspaceKind.SHARED,
        )

    def below(self, session: models.Model) -> Self:
        """The tree under a session, itself left out."""
        root_id = getattr(session, "root_id", None) or session.pk
        return self.filter(root_id=root_id, ancestor_ids__contains=[session.pk])

    def holding(self, text: str) -> Self:
        """Those with a text in title, preview or id, each row looked at: for few rows."""
        held: Q | RawSQL = RawSQL(HOLDS, (text,), output_field=models.BooleanField())  # noqa: S611
        if ids := _ids_like(text):
            held = Q(held) | Q(pk__range=ids)
        return self.filter(held)

    def found_by(self, text: str, workspace_id: UUID) -> Self:
        """The same of a workspace, through the index of texts: for all rows there are."""
        first, last = _ids_like(text) or (NO_ID, NO_ID)
        values = (workspace_id, first, last, text)
        return self.filter(RawSQL(FOUND, values, output_field=models.BooleanField()))  # noqa: S611

    def with_parent(self, session_id: UUID) -> Self:
        """The session, and its parent if it has one."""
        values = (session_id, session_id)
        return self.filter(RawSQL(WITH_PARENT, values, output_field=models.BooleanField()))  # noqa: S611

    def with_personal_state(self, user_id: UUID | None) -> Self:
        """Joins this person's pin and read mark as `mine`."""
        mine = Q(personal_states__user_id=user_id)
        return self.annotate(
            mine=FilteredRelation("personal_states", condition=mine),
            pinned_at=models.F("mine__pinned_at"),
            read_seq=models.F("mine__read_seq"),
            follows=models.F("mine__follows"),
        )

    def with_fork_source(self, access: Access) -> Self:
        """Whether the session that one was forked from is visible now, as `sees_source`."""
        sources = self.model._default_manager.all().visible_to(access)
        source = sources.filter(pk=models.OuterRef("forked_from_id"))
        return self.annotate(sees_source=models.Exists(source))

    def with_tree_state(self) -> Self:
        """Of a session and all below it that is not archived: how many approvals and questions
        are open, as `open_waits`; of those below alone, whether one is at work: `works_below`.
        Of the session: for which children's results it waits, as `awaited_lists`; `has_children`.
        """

        def read(sql: str, kind: models.Field[Any, Any] | None = None) -> RawSQL:
            return RawSQL(  # noqa: S611 (constants)
                f"({sql.format(row='sessions_app_session')})", (), output_field=kind
            )

        return self.annotate(
            open_waits=read(OPEN_WAITS),
            works_below=read(WORKS_BELOW, models.BooleanField()),
            awaited_lists=read(AWAITED, models.JSONField()),
            has_children=read(HAS_CHILDREN, models.BooleanField()),
        )
