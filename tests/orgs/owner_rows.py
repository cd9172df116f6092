"""Two furnished organizations, and a row for every address of the owner's admin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from catalog.models import Provider
from catalog.services.connecting import NewProvider, connect_provider
from orgs.models import ApiKey, Invitation, Organization, User, Workspace
from orgs.principals import access_for_user
from orgs.roles import OrganizationRole, WorkspaceRole
from orgs.services.founding import add_organization_member, add_workspace_member
from orgs.services.invitations import NewInvitation, create_invitation
from orgs.services.keys import NewKey, create_key
from orgs.services.service_accounts import create_service_account
from orgs.services.workspaces import create_shared_workspace
from tests.factories import Cast

PEOPLE = ("owner", "admin", "bare_admin", "member", "viewer", "outsider", "nobody")
ADMINISTRATORS = ("owner", "admin", "bare_admin")


@dataclass(frozen=True)
class House:
    """One row of each kind, in one organization."""

    organization: Organization
    person: User
    account: User
    invitation: Invitation
    workspace: Workspace
    key: ApiKey
    provider: Provider

    @property
    def home(self) -> str:
        return f"/owner/{self.organization.public_id}/"

    @property
    def ids(self) -> dict[str, str]:
        return {
            "person": self.person.public_id,
            "account": self.account.public_id,
            "invitation": self.invitation.public_id,
            "workspace": self.workspace.public_id,
            "key": self.key.public_id,
            "provider": self.provider.public_id,
            "model": self.provider.models.get(model_id__endswith="-1").public_id,
        }

    def fill(self, text: str) -> str:
        return text.format(**self.ids)


def furnish(
    organization: Organization, owner: User, person: User, workspace: Workspace, word: str
) -> House:
    access = access_for_user(owner)
    account = create_service_account(
        access=access, organization_id=organization.pk, name=f"{word} robot"
    )
    invitation, _ = create_invitation(
        access=access,
        organization_id=organization.pk,
        new=NewInvitation(f"{word}-guest@example.test"),
    )
    key, _ = create_key(
        access=access,
        organization_id=organization.pk,
        new=NewKey(f"{word} key", ["read"], workspace_id=workspace.pk),
    )
    provider = connect_provider(
        access=access,
        organization_id=organization.pk,
        new=NewProvider(
            f"{word} models",
            base_url="http://127.0.0.1:9/v1",
            models=[{"model_id": f"{word}-1"}, {"model_id": f"{word}-2"}],
        ),
    )
    return House(organization, person, account, invitation, workspace, key, provider)


def two_houses(cast: Cast) -> tuple[House, House]:
    """Ours, and the outsider's. Chiara belongs to both, and works in a workspace of each."""
    other = cast.other_organization
    add_organization_member(organization=other, user=cast.member, role=OrganizationRole.MEMBER)
    add_workspace_member(
        workspace=cast.other_workspace, user=cast.member, role=WorkspaceRole.VIEWER
    )
    glaze = create_shared_workspace(
        access=cast.access("outsider"), organization_id=other.pk, name="Glaze"
    )
    ours = furnish(cast.organization, cast.owner, cast.member, cast.workspace, "atlas")
    theirs = furnish(other, cast.outsider, cast.outsider, glaze, "tiles")
    return ours, theirs


@dataclass(frozen=True)
class Row:
    """`address`, with ids of the house by name. `status`: of an owner's answer; `admins`: of an
    admin's, where it is another one.
    """

    method: str
    route: str
    address: str
    status: int
    data: dict[str, str] = field(default_factory=dict)
    admins: int | None = None
    bare: int | None = None  # of an admin without a role in the workspace that it is about

    def expected(self, who: str) -> int:
        if who == "nobody":
            return 302
        if who == "bare_admin" and self.bare is not None:
            return self.bare
        if who in {"admin", "bare_admin"} and self.admins is not None:
            return self.admins
        return self.status if who in ADMINISTRATORS else 404

    def send(self, client: Any, house: House, at: str | None = None) -> Any:
        """`at`: the organization in the address, where it is not the rows' own."""
        path = (at or house.home) + house.fill(self.address)
        if self.method == "GET":
            return client.get(path)
        return client.post(path, {k: house.fill(v) for k, v in self.data.items()})


KEY = {"name": "nightly", "reach": "read", "lifetime_days": "30"}
PLACE = {"member": "{person}", "role": "viewer"}
_USER, _WORKSPACE = "members/<user>/", "workspaces/<workspace>/"
_PROVIDER = "providers/<provider>/"
_MODEL = f"{_PROVIDER}models/<model>/"
_PLACE = "workspaces/{workspace}/members/"
ROWS = (
    Row("GET", "", "", 302),
    Row("GET", "members/", "members/", 200),
    Row("GET", _USER, "members/{person}/", 200),
    Row("GET", _USER, "members/{account}/", 200),
    Row("POST", _USER, "members/{person}/", 302, {"role": "admin"}),
    Row("POST", _USER, "members/{person}/", 302, {"role": "owner"}, admins=400),
    Row("GET", f"{_USER}remove/", "members/{person}/remove/", 200),
    Row("POST", f"{_USER}remove/", "members/{person}/remove/", 302),
    Row("GET", "invitations/", "invitations/", 200),
    Row("GET", "invitations/new/", "invitations/new/", 200),
    Row("POST", "invitations/new/", "invitations/new/", 302,
        {"email": "iris@example.test", "role": "member"}),
    Row("POST", "invitations/new/", "invitations/new/", 302,
        {"email": "iris@example.test", "role": "owner"}, admins=400),
    Row("GET", "invitations/<invitation>/revoke/", "invitations/{invitation}/revoke/", 200),
    Row("POST", "invitations/<invitation>/revoke/", "invitations/{invitation}/revoke/", 302),
    Row("GET", "service-accounts/", "service-accounts/", 200),
    Row("GET", "service-accounts/new/", "service-accounts/new/", 200),
    Row("POST", "service-accounts/new/", "service-accounts/new/", 302,
        {"name": "reporting", "role": "member"}),
    Row("GET", "service-accounts/<user>/remove/", "service-accounts/{account}/remove/", 200),
    Row("POST", "service-accounts/<user>/remove/", "service-accounts/{account}/remove/", 302),
    Row("GET", "workspaces/", "workspaces/", 200),
    Row("GET", "workspaces/new/", "workspaces/new/", 200),
    Row("POST", "workspaces/new/", "workspaces/new/", 302, {"name": "Survey"}),
    Row("GET", _WORKSPACE, "workspaces/{workspace}/", 200),
    Row("POST", f"{_WORKSPACE}members/", _PLACE, 302, PLACE),
    Row("GET", f"{_WORKSPACE}members/<user>/remove/", f"{_PLACE}{{person}}/remove/", 200),
    Row("POST", f"{_WORKSPACE}members/<user>/remove/", f"{_PLACE}{{person}}/remove/", 302),
    Row("GET", "keys/", "keys/", 200),
    Row("GET", "keys/new/", "keys/new/", 200),
    Row("POST", "keys/new/", "keys/new/", 200, {**KEY, "workspace": "{workspace}"}, bare=400),
    Row("GET", "keys/<key>/rotate/", "keys/{key}/rotate/", 200),
    Row("POST", "keys/<key>/rotate/", "keys/{key}/rotate/", 200, {"overlap": "3600"}, 400),
    Row("GET", "keys/<key>/revoke/", "keys/{key}/revoke/", 200),
    Row("POST", "keys/<key>/revoke/", "keys/{key}/revoke/", 302),
    Row("GET", "providers/", "providers/", 200),
    Row("GET", "providers/new/", "providers/new/", 200),
    Row("POST", "providers/new/", "providers/new/", 302,
        {"name": "Local", "base_url": "http://127.0.0.1:9/v1", "models": "tide-1"}),
    Row("GET", _PROVIDER, "providers/{provider}/", 200),
    Row("GET", f"{_PROVIDER}edit/", "providers/{provider}/edit/", 200),
    Row("POST", f"{_PROVIDER}edit/", "providers/{provider}/edit/", 302,
        {"name": "Renamed", "base_url": "http://127.0.0.1:9/v1"}),
    Row("POST", f"{_PROVIDER}switch/", "providers/{provider}/switch/", 302, {"enabled": "off"}),
    Row("POST", f"{_PROVIDER}test/", "providers/{provider}/test/", 302),
    Row("GET", f"{_PROVIDER}remove/", "providers/{provider}/remove/", 200),
    Row("POST", f"{_PROVIDER}remove/", "providers/{provider}/remove/", 302),
    Row("GET", f"{_PROVIDER}models/new/", "providers/{provider}/models/new/", 200),
    Row("POST", f"{_PROVIDER}models/new/", "providers/{provider}/models/new/", 302,
        {"model_id": "tide-1", "flags": "is_enabled"}),
    Row("GET", _MODEL, "providers/{provider}/models/{model}/", 200),
    Row("POST", _MODEL, "providers/{provider}/models/{model}/", 302,
        {"display_name": "Tide", "flags": "is_enabled"}),
    Row("GET", f"{_MODEL}remove/", "providers/{provider}/models/{model}/remove/", 200),
    Row("POST", f"{_MODEL}remove/", "providers/{provider}/models/{model}/remove/", 302),
    Row("GET", "settings/", "settings/", 200),
    Row("POST", "settings/", "settings/", 302, {"name": "Atlas of Lindqvist"}),
    Row("POST", "settings/only-me/", "settings/only-me/", 302, {"allow": "on"}, admins=403),
    Row("GET", "audit/", "audit/", 200),
    Row("POST", "audit/export/", "audit/export/", 200),
)  # fmt: skip
