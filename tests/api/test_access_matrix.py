"""The access matrix: every route × everyone → the status that is right (BR-081).

A route without a row fails, and so does a row without a route.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.urls import URLPattern

from catalog.kinds import ProviderKind
from catalog.models import Provider
from catalog.services.providers import NewModel, create_provider
from core.ids import Prefix, encode_id
from orgs.roles import OrganizationRole, Scope, WorkspaceRole
from orgs.services.founding import add_organization_member, add_workspace_member, create_user
from orgs.services.invitations import NewInvitation, create_invitation
from orgs.services.service_accounts import create_service_account
from sessions_app.api.urls import urlpatterns
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Event, Folder, Session
from sessions_app.services.attempts import Failed, finish_turn
from tests.api.callers import secrets_of_keys
from tests.api.client import Caller, refusal
from tests.api.matrix_rows import BODIES, COLUMNS, KEYS, MATRIX, PEOPLE, STREAM, STREAMS
from tests.factories import PASSWORD, Cast, claim, make_key, make_session, send

# What no key may do, whatever its scopes.
PEOPLE_ALONE = {"not_a_person", "needs_a_person", "not_the_maker", "role_beyond_key"}


def routes() -> Iterator[tuple[str, str]]:
    """Method and path of everything that the URLconf answers."""
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        path = str(pattern.pattern)
        view = getattr(pattern.callback, "view_class", None)
        if view is None:
            if path:  # the last one says that there is no such route
                yield "GET", path
            continue
        for method in ("get", "post", "put", "patch", "delete"):
            if hasattr(view, method):
                yield method.upper(), path


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    assert set(routes()) == MATRIX.keys()
    for row in MATRIX.values():
        assert len(row.split()) == len(COLUMNS)


class Stage:
    """The cast, a session of the second member with a queued turn, and each caller."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.workspace_id = encode_id(Prefix.WORKSPACE, cast.workspace.pk)
        self._secrets = secrets_of_keys(cast)

    @property
    def _others(self) -> dict[str, Callable[[bool], str]]:
        return {
            "<str:user_id>": self._newcomer,
            "<str:invitation_id>": self._invitation,
            "<str:key_id>": self._key,
        }

    def _newcomer(self, is_service: bool) -> str:
        """A member of the organization and the workspace whom nobody has met yet."""
        organization = self.cast.organization
        if is_service:
            owner = self.cast.access("owner")
            made = create_service_account(access=owner, organization_id=organization.pk, name="CI")
            return made.public_id
        email = f"{uuid.uuid4().hex}@example.test"
        user = create_user(email=email, name="Greta Olsen", password=PASSWORD)
        add_organization_member(organization=organization, user=user, role=OrganizationRole.ADMIN)
        add_workspace_member(workspace=self.cast.workspace, user=user, role=WorkspaceRole.VIEWER)
        return user.public_id

    def _invitation(self, _: bool) -> str:
        made, _token = create_invitation(
            access=self.cast.access("owner"),
            organization_id=self.cast.organization.pk,
            new=NewInvitation(f"{uuid.uuid4().hex}@example.test"),
        )
        return made.public_id

    def _key(self, _: bool) -> str:
        cast = self.cast
        return make_key(cast.owner, cast.organization, None, [Scope.READ]).row.public_id

    def _provider(self) -> Provider:
        """One at which nobody answers: a test of it says so."""
        return create_provider(
            organization=self.cast.organization,
            slug=uuid.uuid4().hex,
            kind=ProviderKind.OPENAI_COMPATIBLE,
            name="Local",
            models=[NewModel("tide-1", "Tide")],
            base_url="http://127.0.0.1:9/v1",
        )

    def caller(self, column: str) -> Caller:
        if column in self._secrets:
            return Caller(self.cast, authorization=f"Bearer {self._secrets[column]}")
        return Caller(self.cast, "" if column == "nobody" else column)

    def path(self, route: tuple[str, str]) -> str:
        session = make_session(self.cast, by="second_member")
        if "turn_id" in route[1] or route[1].endswith(("queue", "retry")):
            send(self.cast, session, by="second_member")
        if route[1].endswith("retry"):
            while (lease := claim().lease).session_id != session.pk:
                pass  # what the callers before have retried
            finish_turn(lease=lease, outcome=Failed("provider_down", "It is down."))
        turn = session.turns.first()
        path = route[1].replace("<str:session_id>", session.public_id)
        path = path.replace("<str:turn_id>", turn.public_id if turn else "")
        path = path.replace("<str:workspace_id>", self.workspace_id)
        path = path.replace("<str:organization_id>", self.cast.organization.public_id)
        if "provider_id" in path:
            provider = self._provider()
            path = path.replace("<str:provider_id>", provider.public_id)
            path = path.replace("<str:model_id>", provider.models.get().public_id)
        for name, make in self._others.items():
            if name in path:
                path = path.replace(name, make("service_accounts" in path))
        path = path.replace("<str:agent_id>", encode_id(Prefix.AGENT, session.agent_id))
        if "/folders" in path:
            Folder.objects.all().delete()
            folder = Folder.objects.create(workspace=self.cast.workspace, name="Kilns", position=1)
            path = path.replace("<str:folder_id>", folder.public_id)
        if route in {("GET", "sessions"), ("GET", "models")}:
            path += f"?workspace_id={self.workspace_id}"
        return f"/v1/{path}"

    def body(self, route: tuple[str, str]) -> Any:
        if route == ("POST", "workspaces"):
            return {"organization_id": self.cast.organization.public_id, "name": "Harbour"}
        if route == ("POST", "archive/clean"):
            return {"workspace_id": self.workspace_id, "confirm": 0}
        if route == ("POST", "sessions"):
            return {"workspace_id": self.workspace_id}
        return BODIES.get(route, {} if route[0] in {"POST", "PUT"} else None)


def names_its_scope(response: Any) -> None:
    """BR-101: what a key lacks, and what it has."""
    error = response.json()["error"]
    assert error["code"] == "missing_scope"
    needed = error["details"]["required_scope"]
    assert needed in set(Scope)
    assert needed in error["message"]
    assert error["details"]["action"] not in error["details"]["granted_actions"]


def check_row(stage: Stage, route: tuple[str, str]) -> None:
    found, path = [], ""
    for column in COLUMNS:
        if not path or route[0] != "GET":  # what changes a session gets a fresh one each time
            path = stage.path(route)
        before = Session.objects.count(), Event.objects.count()
        response = stage.caller(column).request(route[0], path, stage.body(route))
        found.append(str(response.status_code))
        if response.status_code >= 400:
            _, code, _ = refusal(response)
            if response.status_code == 403 and column in KEYS and code not in PEOPLE_ALONE:
                names_its_scope(response)
            assert (Session.objects.count(), Event.objects.count()) == before
    assert dict(zip(COLUMNS, found, strict=True)) == dict(
        zip(COLUMNS, MATRIX[route].split(), strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("route", [r for r in MATRIX if r not in STREAMS], ids=" ".join)
def test_each_route_admits_whom_it_should(cast: Cast, route: tuple[str, str]) -> None:
    check_row(Stage(cast), route)


@pytest.mark.parametrize("route", sorted(STREAMS), ids=" ".join)
def test_the_stream_admits_whom_it_should(committed_cast: Cast, route: tuple[str, str]) -> None:
    check_row(Stage(committed_cast), route)


@pytest.mark.parametrize(
    "route", [r for r in MATRIX if "session_id" in r[1] and r != STREAM], ids=" ".join
)
def test_a_private_session_is_its_makers_alone(cast: Cast, route: tuple[str, str]) -> None:
    """Not the owner's, not an administrator's, not any key's: the body of what never existed."""
    cast.organization.allows_private_sessions = True
    cast.organization.save()
    session = make_session(cast, by="member", visibility=Visibility.PRIVATE)
    send(cast, session)
    turn = session.turns.get()
    stage = Stage(cast)
    for column in (*PEOPLE, *KEYS):
        path = route[1].replace("<str:session_id>", session.public_id)
        path = "/v1/" + path.replace("<str:turn_id>", turn.public_id)
        body = {"visibility": "private"} if path.endswith("visibility") else stage.body(route)
        response = stage.caller(column).request(route[0], path, body)
        if column == "member":
            assert response.status_code < 300 or response.json()["error"]["code"] in {
                "target_working",
                "turn_not_failed",
            }
        else:
            assert refusal(response) == (404, "not_found", None), column
