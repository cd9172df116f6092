"""Makes the demo organization once, and writes `demo.json`: who may sign in, and the keys."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from catalog.services import create_demo_provider
from core.embedded_postgres import write_private
from orgs.models import ApiKey, Organization, User, Workspace
from orgs.principals import access_for_user
from orgs.services.founding import (
    add_organization_member,
    add_workspace_member,
    create_organization,
    create_user,
    create_workspace,
)
from orgs.services.keys import issue_key, revoke_api_key
from sessions_app.management import demo_content
from sessions_app.services.sessions import NewSession, create_session
from sessions_app.services.turns import Prompt

KEY_DAYS = 365
# No letters or digits that look alike: people type these.
TYPEABLE = "abcdefghjkmnpqrstuvwxyz23456789"
DEFAULT_URL = "http://127.0.0.1:8000"


class Command(BaseCommand):
    help = (
        "Creates the demo organization where there is none and writes $SEDERUNT_HOME/demo.json. "
        "Repeating it renews the address; a lost demo.json gets new passwords and keys."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--base-url", default=DEFAULT_URL, help="Where the server answers.")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.IS_DEVELOPMENT:
            raise CommandError("The demo is for development: set SEDERUNT_ENV=development.")
        path = Path(settings.SEDERUNT_HOME) / "demo.json"
        with transaction.atomic():
            organization = find_demo() or make_demo()
            logins = _read(path)
            if logins is None or logins["organization_id"] != organization.public_id:
                logins = issue_logins(organization)
        # After the commit: a file that names what was rolled back would be worse than none.
        write_private(path, json.dumps({**logins, "base_url": options["base_url"]}, indent=2))
        self.stdout.write(f"The demo's logins and keys are in {path}")


def find_demo() -> Organization | None:
    owner = User.objects.filter(email__iexact=demo_content.OWNER.email).first()
    if owner is None:
        return None
    return Organization.objects.filter(
        name=demo_content.ORGANIZATION, memberships__user=owner
    ).first()


def make_demo() -> Organization:
    """Both organizations with their people, and example sessions whose turns a worker will run."""
    people = {person: _person(person) for person in demo_content.PEOPLE}
    owner, outsider = people[demo_content.OWNER], people[demo_content.OUTSIDER]
    organization = create_organization(name=demo_content.ORGANIZATION, owner=owner)
    organization.allows_private_sessions = True
    organization.save(update_fields=["allows_private_sessions"])
    create_demo_provider(organization=organization)
    workspace = create_workspace(
        organization=organization, name=demo_content.WORKSPACE, administrator=owner
    )
    for person in demo_content.MEMBERS:
        user = people[person]
        assert person.organization_role is not None
        assert person.workspace_role is not None
        add_organization_member(organization=organization, user=user, role=person.organization_role)
        add_workspace_member(workspace=workspace, user=user, role=person.workspace_role)
    other = create_organization(name=demo_content.OTHER_ORGANIZATION, owner=outsider)
    create_demo_provider(organization=other)
    create_workspace(organization=other, name=demo_content.OTHER_WORKSPACE, administrator=outsider)
    for example in demo_content.EXAMPLES:
        create_session(
            access=access_for_user(people[example.maker]),
            new=NewSession(
                workspace_id=workspace.pk,
                title=example.title,
                prompts=[Prompt(content=text) for text in example.prompts],
            ),
        )
    return organization


def issue_logins(organization: Organization) -> dict[str, Any]:
    """New passwords and keys for the demo. The keys issued before are revoked."""
    workspace = Workspace.objects.get(organization=organization, name=demo_content.WORKSPACE)
    owner = User.objects.get(email__iexact=demo_content.OWNER.email)
    names = [key.name for key in demo_content.KEYS]
    for stale in ApiKey.objects.filter(
        organization=organization, name__in=names, revoked_at__isnull=True
    ):
        revoke_api_key(key=stale)
    return {
        "base_url": "",
        "organization_id": organization.public_id,
        "workspace_id": workspace.public_id,
        "users": [_login(person) for person in demo_content.PEOPLE],
        "keys": [_key(key, owner, workspace) for key in demo_content.KEYS],
    }


def _person(person: demo_content.Person) -> User:
    known = User.objects.filter(email__iexact=person.email).first()
    return known or create_user(email=person.email, name=person.name, password=_password())


def _login(person: demo_content.Person) -> dict[str, str]:
    user = User.objects.get(email__iexact=person.email)
    password = _password()
    user.set_password(password)
    user.save(update_fields=["password"])
    return {"name": user.name, "email": user.email, "password": password, "role": person.role}


def _key(key: demo_content.DemoKey, owner: User, workspace: Workspace) -> dict[str, str]:
    _, secret = issue_key(
        maker=owner,
        name=key.name,
        scopes=key.scopes,
        organization=workspace.organization,
        workspace=workspace if key.in_workspace else None,
        lifetime_days=KEY_DAYS,
    )
    return {"name": key.name, "scope": key.scope, "key": secret}


def _password() -> str:
    groups = ("".join(secrets.choice(TYPEABLE) for _ in range(4)) for _ in range(3))
    return "-".join(groups)


def _read(path: Path) -> dict[str, Any] | None:
    """What was written before; None where it is missing or broken."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    expected = {"organization_id", "workspace_id", "users", "keys"}
    return found if isinstance(found, dict) and expected <= found.keys() else None
