"""The access matrix: every route × everyone → the status that is right (BR-081).

A route without a row fails, and so does a row without a route.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.urls import URLPattern

from catalog.kinds import ProviderKind
from catalog.models import Provider
from catalog.services.providers import NewModel, create_provider
from core.clock import now
from core.ids import Prefix, encode_id
from orgs.roles import OrganizationRole, Scope, WorkspaceRole
from orgs.services.founding import add_organization_member, add_workspace_member, create_user
from orgs.services.invitations import NewInvitation, create_invitation
from orgs.services.keys import revoke_api_key
from orgs.services.service_accounts import create_service_account
from sessions_app.api.urls import urlpatterns
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Event, Session
from sessions_app.services.attempts import Failed, finish_turn
from tests.api.client import Caller, refusal
from tests.factories import PASSWORD, Cast, claim, make_key, make_session, send

# The session is the second member's; both keys are the owner's and may do all, if not read-only.
COLUMNS = (
    "owner",
    "admin",
    "second_member",
    "member",
    "viewer",
    "outsider",
    "workspace_key",
    "organization_key",
    "read_only_key",
    "expired_key",
    "revoked_key",
    "nobody",
)
NO_KEY = " 401 401 401"
READ = "200 200 200 200 200 404 200 200 200" + NO_KEY
CONTROL = "200 200 200 200 403 404 200 200 403" + NO_KEY
MANAGED = "200 200 403 403 403 404 404 200 404" + NO_KEY
BY_PEOPLE = "201 201 403 403 403 404 404 403 404" + NO_KEY
OF_A_KEY = "200 200 404 404 404 404 404 404 404" + NO_KEY
ORGANIZATION = "organizations/<str:organization_id>"
PROVIDER = f"{ORGANIZATION}/providers/<str:provider_id>"
WORKSPACE = "workspaces/<str:workspace_id>"
OWN = "200 200 200 200 200 404 403 403 403" + NO_KEY
MATRIX: dict[tuple[str, str], str] = {
    ("GET", "openapi.json"): "200 " * len(COLUMNS),
    ("GET", "workspaces"): "200 " * 9 + NO_KEY,
    ("POST", "workspaces"): MANAGED.replace("200", "201"),
    ("GET", f"{WORKSPACE}/members"): READ,
    ("POST", f"{WORKSPACE}/members/<str:user_id>"): "200 200 403 403 403 404 200 200 403" + NO_KEY,
    ("DELETE", f"{WORKSPACE}/members/<str:user_id>"): (
        "204 204 403 403 403 404 204 204 403" + NO_KEY
    ),
    ("GET", "organizations"): "200 " * 9 + NO_KEY,
    ("GET", ORGANIZATION): MANAGED,
    ("POST", ORGANIZATION): MANAGED,
    ("GET", f"{ORGANIZATION}/members"): MANAGED,
    ("POST", f"{ORGANIZATION}/members/<str:user_id>"): MANAGED,
    ("DELETE", f"{ORGANIZATION}/members/<str:user_id>"): MANAGED.replace("200", "204"),
    ("GET", f"{ORGANIZATION}/invitations"): MANAGED,
    ("POST", f"{ORGANIZATION}/invitations"): BY_PEOPLE,
    ("DELETE", f"{ORGANIZATION}/invitations/<str:invitation_id>"): MANAGED.replace("200", "204"),
    ("POST", f"{ORGANIZATION}/service_accounts"): MANAGED.replace("200", "201"),
    ("DELETE", f"{ORGANIZATION}/service_accounts/<str:user_id>"): MANAGED.replace("200", "204"),
    ("GET", f"{ORGANIZATION}/api_keys"): MANAGED,
    ("POST", f"{ORGANIZATION}/api_keys"): BY_PEOPLE,
    ("DELETE", f"{ORGANIZATION}/api_keys/<str:key_id>"): OF_A_KEY.replace("200", "204"),
    ("POST", f"{ORGANIZATION}/api_keys/<str:key_id>/rotate"): (
        "201 403 404 404 404 404 404 404 404" + NO_KEY
    ),
    ("GET", f"{ORGANIZATION}/providers"): MANAGED,
    ("POST", f"{ORGANIZATION}/providers"): MANAGED.replace("200", "201"),
    ("GET", PROVIDER): MANAGED,
    ("POST", PROVIDER): MANAGED,
    ("DELETE", PROVIDER): MANAGED.replace("200", "204"),
    ("POST", f"{PROVIDER}/test"): MANAGED,
    ("POST", f"{PROVIDER}/models"): MANAGED.replace("200", "201"),
    ("POST", f"{PROVIDER}/models/<str:model_id>"): MANAGED,
    ("DELETE", f"{PROVIDER}/models/<str:model_id>"): MANAGED.replace("200", "204"),
    ("GET", f"{ORGANIZATION}/audit"): MANAGED,
    ("GET", f"{ORGANIZATION}/sessions"): MANAGED,
    ("GET", "models"): READ,
    ("GET", "inbox"): "200 " * 9 + NO_KEY,
    ("GET", "sessions"): READ,
    ("POST", "sessions"): "201 201 201 201 403 404 201 201 403" + NO_KEY,
    ("GET", "sessions/<str:session_id>"): READ,
    ("POST", "sessions/<str:session_id>"): CONTROL,
    ("DELETE", "sessions/<str:session_id>"): "200 200 200 403 403 404 200 200 403" + NO_KEY,
    ("POST", "sessions/<str:session_id>/archive"): CONTROL,
    ("POST", "sessions/<str:session_id>/unarchive"): CONTROL,
    ("PUT", "sessions/<str:session_id>/pin"): OWN,
    ("PUT", "sessions/<str:session_id>/read"): OWN,
    ("PUT", "sessions/<str:session_id>/visibility"): (
        "403 403 200 403 403 404 403 403 403" + NO_KEY
    ),
    ("GET", "sessions/<str:session_id>/draft"): OWN,
    ("PUT", "sessions/<str:session_id>/draft"): OWN,
    ("GET", "sessions/<str:session_id>/events"): READ,
    ("POST", "sessions/<str:session_id>/events"): CONTROL.replace("200", "202"),
    ("GET", "sessions/<str:session_id>/events/stream"): READ,
    ("GET", "sessions/<str:session_id>/turns"): READ,
    ("GET", "sessions/<str:session_id>/turns/<str:turn_id>"): READ,
    ("GET", "sessions/<str:session_id>/queue"): READ,
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/move"): CONTROL,
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/edit"): (
        "200 200 200 200 403 404 403 403 403" + NO_KEY
    ),
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/delete"): CONTROL,
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/promote"): CONTROL,
    ("POST", "sessions/<str:session_id>/pause"): CONTROL,
    ("POST", "sessions/<str:session_id>/resume"): CONTROL,
    ("POST", "sessions/<str:session_id>/cancel"): "200 200 200 403 403 404 200 200 403" + NO_KEY,
    ("POST", "sessions/<str:session_id>/retry"): CONTROL.replace("200", "202"),
    ("POST", "sessions/<str:session_id>/fork"): CONTROL.replace("200", "201"),
    ("POST", "workspaces/<str:workspace_id>/pause"): "200 200 403 403 403 404 200 200 403" + NO_KEY,
    ("POST", "workspaces/<str:workspace_id>/resume"): (
        "200 200 403 403 403 404 200 200 403" + NO_KEY
    ),
    ("GET", "sessions/<str:session_id>/pending"): READ,
    ("GET", "sessions/<str:session_id>/children"): READ,
    ("GET", "sessions/<str:session_id>/tree"): READ,
}
STREAM = ("GET", "sessions/<str:session_id>/events/stream")
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "sessions/<str:session_id>"): {"title": "New"},
    ("POST", "sessions/<str:session_id>/events"): {
        "events": [{"type": "user.message", "content": "Hello"}]
    },
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/move"): {
        "expected_version": 1,
        "position": 1,
    },
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/edit"): {"expected_version": 1},
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/delete"): {"expected_version": 1},
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/promote"): {"expected_version": 1},
    ("PUT", "sessions/<str:session_id>/read"): {"seq": 1},
    ("PUT", "sessions/<str:session_id>/visibility"): {"visibility": "workspace"},
    ("POST", ORGANIZATION): {"name": "Atlas"},
    ("POST", f"{ORGANIZATION}/members/<str:user_id>"): {"role": "member"},
    ("POST", f"{WORKSPACE}/members/<str:user_id>"): {"role": "member"},
    ("POST", f"{ORGANIZATION}/invitations"): {"email": "greta@example.test"},
    ("POST", f"{ORGANIZATION}/service_accounts"): {"name": "CI"},
    ("POST", f"{ORGANIZATION}/api_keys"): {"name": "Shop", "scopes": ["read"]},
    ("POST", f"{ORGANIZATION}/providers"): {"name": "Local", "base_url": "http://127.0.0.1:9/v1"},
    ("POST", PROVIDER): {"name": "Renamed"},
    ("POST", f"{PROVIDER}/models"): {"model_id": "another"},
    ("POST", f"{PROVIDER}/models/<str:model_id>"): {"display_name": "Renamed"},
    ("PUT", "sessions/<str:session_id>/draft"): {"text": "Dear", "expected_version": 0},
}


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
        expired, revoked = (
            make_key(cast.owner, cast.organization, cast.workspace, [Scope.FULL]) for _ in "ab"
        )
        expired.row.expires_at = now() - timedelta(seconds=1)
        expired.row.save()
        revoke_api_key(key=revoked.row)
        self._secrets = {"expired_key": expired.secret, "revoked_key": revoked.secret}

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
        if route in {("GET", "sessions"), ("GET", "models")}:
            path += f"?workspace_id={self.workspace_id}"
        return f"/v1/{path}"

    def body(self, route: tuple[str, str]) -> Any:
        if route == ("POST", "workspaces"):
            return {"organization_id": self.cast.organization.public_id, "name": "Harbour"}
        if route == ("POST", "sessions"):
            return {"workspace_id": self.workspace_id}
        return BODIES.get(route, {} if route[0] in {"POST", "PUT"} else None)


def check_row(stage: Stage, route: tuple[str, str]) -> None:
    found, path = [], ""
    for column in COLUMNS:
        if not path or route[0] != "GET":  # what changes a session gets a fresh one each time
            path = stage.path(route)
        before = Session.objects.count(), Event.objects.count()
        response = stage.caller(column).request(route[0], path, stage.body(route))
        found.append(str(response.status_code))
        if response.status_code >= 400:
            refusal(response)
            assert (Session.objects.count(), Event.objects.count()) == before
    assert dict(zip(COLUMNS, found, strict=True)) == dict(
        zip(COLUMNS, MATRIX[route].split(), strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("route", [r for r in MATRIX if r != STREAM], ids=" ".join)
def test_each_route_admits_whom_it_should(cast: Cast, route: tuple[str, str]) -> None:
    check_row(Stage(cast), route)


def test_the_stream_admits_whom_it_should(committed_cast: Cast) -> None:
    check_row(Stage(committed_cast), STREAM)


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
    for column in COLUMNS[:9]:
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
