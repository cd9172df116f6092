"""An agent's own session: one for each agent, under its id, made on first use."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from catalog.models import Agent
from core.errors import NotFound
from core.ids import Prefix, encode_id
from orgs.access import Access
from orgs.roles import Action
from sessions_app import eventlog
from sessions_app.creation import tell_created
from sessions_app.domain.settings import PartialSettings
from sessions_app.domain.vocabulary import AGENT_ORIGIN_TYPE
from sessions_app.models import Session
from sessions_app.selectors import get_session
from sessions_app.services.model_settings import label_of
from sessions_app.services.sessions import created_draft, snapshot_of


@transaction.atomic
def open_agents_session(*, access: Access, agent_id: UUID) -> Session:
    """The agent's own session. It is nobody's: whoever reads the workspace may be the first.
    Raises NotFound.
    """
    readable = access.workspaces_with(Action.SESSION_READ)
    agents = Agent.objects.filter(workspace_id__in=readable).select_related("workspace", "model")
    if not Session.objects.filter(pk=agent_id, origin_type=AGENT_ORIGIN_TYPE).exists():
        # Held, so that of two at once the second finds what the first made.
        agent = agents.select_for_update(no_key=True, of=("self",)).filter(pk=agent_id).first()
        if agent is None:
            raise NotFound
        if not Session.objects.filter(pk=agent_id).exists():
            _create(agent)
    elif not agents.filter(pk=agent_id).exists():
        raise NotFound
    return get_session(access=access, session_id=agent_id)


def _create(agent: Agent) -> None:
    organization_id, initial = agent.workspace.organization_id, PartialSettings()
    session = Session.objects.create(
        id=agent.pk,
        organization_id=organization_id,
        workspace_id=agent.workspace_id,
        agent=agent,
        agent_snapshot=snapshot_of(agent),
        origin_type=AGENT_ORIGIN_TYPE,
        origin={"type": AGENT_ORIGIN_TYPE, "agent_id": encode_id(Prefix.AGENT, agent.pk)},
        initial_settings=initial.to_json(),
        model_label=label_of(organization_id=organization_id, settings=initial),
    )
    author = {"type": "agent", "id": agent.public_id, "name": agent.name}
    created = created_draft(session, author=author, title="", metadata={}, initial=initial)
    eventlog.append(session_id=session.pk, drafts=[created])
    tell_created(session)
