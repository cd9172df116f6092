"""The cast and the things tests need, made through services as the product makes them."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from catalog.services import create_demo_provider
from orgs.access import Access
from orgs.models import ApiKey, Organization, User, Workspace
from orgs.principals import access_for_user, authenticate_key
from orgs.roles import OrganizationRole, Scope, WorkspaceRole
from orgs.services.founding import (
    add_organization_member,
    add_workspace_member,
    create_organization,
    create_user,
    create_workspace,
)
from orgs.services.keys import issue_key
from sessions_app.domain.events import Draft
from sessions_app.models import Attempt, Session
from sessions_app.services.attempts import Claim, claim_turn
from sessions_app.services.sessions import NewSession, create_session
from sessions_app.services.turns import Prompt, Receipt, submit_prompt

PASSWORD = "correct horse battery"
WORKER_TOKEN = uuid.UUID(int=1)
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Key:
    row: ApiKey
    secret: str

    @property
    def access(self) -> Access:
        return authenticate_key(self.secret)


@dataclass(frozen=True)
class Cast:
    """One organization with a shared workspace, everyone who may touch it, and an outsider.
    The bare admin has no role in the workspace, and the bare key is theirs.
    """

    organization: Organization
    workspace: Workspace
    other_organization: Organization
    other_workspace: Workspace
    owner: User
    admin: User
    bare_admin: User
    member: User
    second_member: User
    viewer: User
    outsider: User
    workspace_key: Key
    organization_key: Key
    bare_key: Key
    read_only_key: Key

    def access(self, name: str) -> Access:
        actor = getattr(self, name)
        return actor.access if isinstance(actor, Key) else access_for_user(actor)


PEOPLE = {
    "owner": "Ada Moreau",
    "admin": "Bruno Keller",
    "bare_admin": "Noor Aziz",
    "member": "Chiara Novak",
    "second_member": "Dev Patel",
    "viewer": "Elif Aydin",
    "outsider": "Farid Haddad",
}


def make_cast() -> Cast:
    number = next(_numbers)
    people = {
        role: create_user(
            email=f"{name.split()[0].lower()}-{number}@example.test", name=name, password=PASSWORD
        )
        for role, name in PEOPLE.items()
    }
    owner, outsider = people["owner"], people["outsider"]
    organization = create_organization(name="Lindqvist Atlas", owner=owner)
    workspace = create_workspace(organization=organization, name="Field notes", administrator=owner)
    create_demo_provider(organization=organization)
    memberships = {
        "admin": (OrganizationRole.ADMIN, WorkspaceRole.ADMINISTRATOR),
        "bare_admin": (OrganizationRole.ADMIN, None),
        "member": (OrganizationRole.MEMBER, WorkspaceRole.MEMBER),
        "second_member": (OrganizationRole.MEMBER, WorkspaceRole.MEMBER),
        "viewer": (OrganizationRole.MEMBER, WorkspaceRole.VIEWER),
    }
    for role, (organization_role, workspace_role) in memberships.items():
        add_organization_member(
            organization=organization, user=people[role], role=organization_role
        )
        if workspace_role is not None:
            add_workspace_member(workspace=workspace, user=people[role], role=workspace_role)
    other = create_organization(name="Haddad Tiles", owner=outsider)
    other_workspace = create_workspace(organization=other, name="Kiln", administrator=outsider)
    create_demo_provider(organization=other)
    return Cast(
        organization=organization,
        workspace=workspace,
        other_organization=other,
        other_workspace=other_workspace,
        workspace_key=make_key(owner, organization, workspace, [Scope.FULL]),
        organization_key=make_key(owner, organization, None, [Scope.FULL]),
        bare_key=make_key(people["bare_admin"], organization, None, [Scope.FULL]),
        read_only_key=make_key(owner, organization, workspace, [Scope.READ]),
        **people,
    )


def make_key(
    maker: User, organization: Organization, workspace: Workspace | None, scopes: list[Scope]
) -> Key:
    row, secret = issue_key(
        maker=maker, name="Key", scopes=scopes, organization=organization, workspace=workspace
    )
    return Key(row, secret)


def make_session(cast: Cast, *, by: str = "member", **fields: Any) -> Session:
    fields.setdefault("workspace_id", cast.workspace.pk)
    return create_session(access=cast.access(by), new=NewSession(**fields))


def send(cast: Cast, session: Session, text: str = "Hello", *, by: str = "member") -> Receipt:
    return submit_prompt(access=cast.access(by), session_id=session.pk, prompt=Prompt(content=text))


def claim(*, worker: str = "test", token: uuid.UUID = WORKER_TOKEN) -> Claim:
    claimed = claim_turn(worker=worker, token=token)
    assert claimed is not None
    return claimed


def expire(attempt_id: uuid.UUID) -> None:
    """Its lease ran out a second ago."""
    Attempt.objects.filter(pk=attempt_id).update(lease_expires_at=Now() - timedelta(seconds=1))


def delta(text: str, message_id: str = "msg_" + "0" * 32) -> Draft:
    return Draft("agent.message_delta", {"message_id": message_id, "text": text})


def message(text: str, message_id: str = "msg_" + "0" * 32) -> Draft:
    return Draft(
        "agent.message",
        {
            "message_id": message_id,
            "content": [{"type": "text", "text": text}],
            "model": {"provider_id": "demo", "model_id": "scripted"},
        },
    )
