"""What an operator changes is noticed by who is connected, and told in the organization's log."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.test import Client

from catalog.models import Provider
from catalog.services import get_or_create_default_agent
from core.errors import Unauthenticated
from orgs.models import ApiKey, AuditEntry, Organization, User
from orgs.principals import authenticate_key
from orgs.roles import OrganizationRole
from orgs.services.founding import add_organization_member
from orgs.services.keys import issue_key
from orgs.services.service_accounts import create_service_account
from tests.factories import Cast


@pytest.fixture
def operator(cast: Cast, client: Client) -> Client:
    user = User.objects.get(pk=cast.owner.pk)
    user.is_staff = user.is_superuser = True
    user.save()
    client.force_login(user)
    return client


def epoch(organization: Organization) -> int:
    return Organization.objects.values_list("access_epoch", flat=True).get(pk=organization.pk)


def run(operator: Client, model: str, action: str, *rows: object, app: str = "orgs") -> None:
    form = {"action": action, "_selected_action": [str(row) for row in rows], "post": "yes"}
    answer = operator.post(f"/admin/{app}/{model}/", form)
    assert answer.status_code == 302, answer.content.decode()[:2000]


def no_rows(prefix: str) -> dict[str, str]:
    return {f"{prefix}-TOTAL_FORMS": "0", f"{prefix}-INITIAL_FORMS": "0"}


def rows(row: dict[str, Any], *, initial: int = 0) -> dict[str, Any]:
    fields = {f"memberships-0-{name}": value for name, value in row.items()}
    return {"memberships-TOTAL_FORMS": "1", "memberships-INITIAL_FORMS": str(initial), **fields}


NO_PLACES = no_rows("memberships")


def save(operator: Client, model: str, row: Model, form: dict[str, Any]) -> None:
    answer = operator.post(f"/admin/{model}/{row.pk}/change/", form)
    assert answer.status_code == 302, answer.content.decode()[:4000]


def lines(cast: Cast, count: int) -> list[AuditEntry]:
    """The newest first."""
    return list(AuditEntry.objects.filter(organization_id=cast.organization.pk)[:count])


@pytest.mark.parametrize("model", ["user", "workspace"])
def test_deleting_several_moves_the_epoch(cast: Cast, operator: Client, model: str) -> None:
    row = {"user": cast.viewer, "workspace": cast.workspace}[model]
    before = epoch(cast.organization)
    run(operator, model, "delete_selected", row.pk)
    assert not type(row).objects.filter(pk=row.pk).exists()
    assert epoch(cast.organization) > before


def test_a_row_stays_in_its_organization(cast: Cast, operator: Client) -> None:
    before = epoch(cast.organization)
    elsewhere = {
        "organization": cast.other_organization.pk.hex,
        "workspace": cast.other_workspace.pk.hex,
        "kind": "personal",
        "person": cast.member.pk.hex,
    }
    save(operator, "orgs/workspace", cast.workspace, {**elsewhere, "name": "Renamed", **NO_PLACES})
    cast.workspace.refresh_from_db()
    assert (cast.workspace.name, cast.workspace.kind) == ("Renamed", "shared")
    assert cast.workspace.organization_id == cast.organization.pk
    assert epoch(cast.organization) > before
    agent = get_or_create_default_agent(workspace_id=cast.workspace.pk)
    save(operator, "catalog/agent", agent, {**elsewhere, "name": "Moved", "speed": "standard"})
    agent.refresh_from_db()
    assert (agent.name, agent.workspace_id) == ("Moved", cast.workspace.pk)
    provider = Provider.objects.get(organization=cast.organization)
    form = {**elsewhere, "slug": "demo", "name": "Demo", "kind": "demo", **no_rows("models")}
    save(operator, "catalog/provider", provider, form)
    provider.refresh_from_db()
    assert provider.organization_id == cast.organization.pk


def test_a_settings_change_says_who_from_where_old_and_new(cast: Cast, operator: Client) -> None:
    form = {"name": "Atlas", "allows_private_sessions": "on", **NO_PLACES}
    save(operator, "orgs/organization", cast.organization, form)
    (line,) = lines(cast, 1)
    assert (line.actor_kind, line.actor_id, line.actor_name) == (
        "operator",
        cast.owner.pk,
        "Ada Moreau",
    )
    assert line.action == "organization.updated"
    assert line.target_id == cast.organization.public_id
    assert line.changes == {
        "name": ["Lindqvist Atlas", "Atlas"],
        "allows_private_sessions": [False, True],
    }
    assert line.address == "127.0.0.1"
    assert line.request_id
    page = operator.get(f"/owner/{cast.organization.public_id}/audit/").content.decode()
    assert "operator, 127.0.0.1" in page


def test_a_save_that_changes_nothing_writes_nothing(cast: Cast, operator: Client) -> None:
    before = AuditEntry.objects.count()
    save(operator, "orgs/organization", cast.organization, {"name": "Lindqvist Atlas", **NO_PLACES})
    assert AuditEntry.objects.count() == before


def test_members_come_change_and_go_as_by_an_owner(cast: Cast, operator: Client) -> None:
    organization = {"name": "Lindqvist Atlas"}
    save(operator, "orgs/organization", cast.organization,
         organization | rows({"user": cast.outsider.pk, "role": "member"}))  # fmt: skip
    assert cast.outsider.personal_workspaces.filter(organization=cast.organization).exists()
    place = cast.organization.memberships.get(user=cast.outsider)
    known = {"id": place.pk, "organization": cast.organization.pk, "user": cast.viewer.pk}
    save(operator, "orgs/organization", cast.organization,
         organization | rows({**known, "role": "admin"}, initial=1))  # fmt: skip
    place.refresh_from_db()
    assert (place.user, place.role) == (cast.outsider, "admin")
    key, secret = issue_key(
        maker=cast.outsider, name="K", scopes=["read"], organization=cast.organization
    )
    save(operator, "orgs/organization", cast.organization,
         organization | rows({**known, "role": "admin", "DELETE": "on"}, initial=1))  # fmt: skip
    with pytest.raises(Unauthenticated):
        authenticate_key(secret)
    told = [(line.action, line.changes) for line in lines(cast, 4)]
    assert told == [
        ("member.removed", {"role": ["admin", None]}),
        ("api_key.revoked", {"prefix": [key.prefix, None]}),
        ("member.role_changed", {"role": ["member", "admin"]}),
        ("member.added", {"role": [None, "member"]}),
    ]
    assert {line.actor_kind for line in lines(cast, 4)} == {"operator"}


def test_a_service_account_ends_with_its_membership(cast: Cast, operator: Client) -> None:
    account = create_service_account(
        access=cast.access("owner"), organization_id=cast.organization.pk, name="CI"
    )
    place = cast.organization.memberships.get(user=account)
    known = {"id": place.pk, "organization": cast.organization.pk, "user": account.pk}
    save(operator, "orgs/organization", cast.organization, {"name": "Lindqvist Atlas"}
         | rows({**known, "role": "member", "DELETE": "on"}, initial=1))  # fmt: skip
    account.refresh_from_db()
    assert not account.is_active
    (line,) = lines(cast, 1)
    assert (line.action, line.target_name) == ("service_account.removed", "CI")


def test_workspace_members_come_from_the_organization_alone(cast: Cast, operator: Client) -> None:
    path = f"/admin/orgs/workspace/{cast.workspace.pk}/change/"
    outsider = {"name": "Field notes"} | rows({"user": cast.outsider.pk, "role": "viewer"})
    assert "Add this person to the organization first" in operator.post(path, outsider).text
    personal = cast.member.personal_workspaces.get()
    mine = {"name": "Personal"} | rows({"user": cast.viewer.pk, "role": "viewer"})
    answer = operator.post(f"/admin/orgs/workspace/{personal.pk}/change/", mine)
    assert "its person’s alone" in answer.text or "person&#x27;s alone" in answer.text
    assert not personal.memberships.exists()
    assert not cast.workspace.memberships.filter(user=cast.outsider).exists()
    place = cast.workspace.memberships.get(user=cast.viewer)
    known = {"id": place.pk, "workspace": cast.workspace.pk, "user": cast.viewer.pk}
    for fields in ({"role": "member"}, {"role": "member", "DELETE": "on"}):
        form = {"name": "Field notes"} | rows({**known, **fields}, initial=1)
        save(operator, "orgs/workspace", cast.workspace, form)
    assert [(line.action, line.changes, line.workspace_id) for line in lines(cast, 2)] == [
        ("workspace_member.removed", {"role": ["member", None]}, cast.workspace.pk),
        ("workspace_member.role_changed", {"role": ["viewer", "member"]}, cast.workspace.pk),
    ]


def test_a_login_is_told_wherever_its_person_belongs(cast: Cast, operator: Client) -> None:
    add_organization_member(
        organization=cast.other_organization, user=cast.member, role=OrganizationRole.ADMIN
    )
    form = {"email": cast.member.email, "name": "Chiara N."}
    save(operator, "orgs/user", cast.member, form)
    for organization in (cast.organization, cast.other_organization):
        line = AuditEntry.objects.filter(organization_id=organization.pk).latest("at")
        assert line.action == "user.updated"
        assert line.changes == {"name": ["Chiara Novak", "Chiara N."], "is_active": [True, False]}
    issue_key(maker=cast.member, name="K", scopes=["read"], organization=cast.other_organization)
    answer = operator.post(f"/admin/orgs/user/{cast.member.pk}/delete/", {"post": "yes"})
    assert answer.status_code == 302
    line = AuditEntry.objects.filter(organization_id=cast.organization.pk).latest("at")
    assert (line.action, line.changes) == ("user.removed", {"role": ["member", None]})
    assert line.target_name.startswith("Chiara N.")
    there = AuditEntry.objects.filter(organization_id=cast.other_organization.pk)
    assert [each.action for each in there.order_by("-at")[:2]] == [
        "user.removed",
        "api_key.revoked",
    ]


def test_what_is_removed_leaves_a_line_and_its_keys_too(cast: Cast, operator: Client) -> None:
    for model in ("workspace", "organization"):
        row = {"workspace": cast.workspace, "organization": cast.organization}[model]
        run(operator, model, "delete_selected", row.pk)
        assert AuditEntry.objects.latest("at").action == f"{model}.removed"
    revoked = AuditEntry.objects.filter(action="api_key.revoked")
    assert {line.changes["prefix"][0] for line in revoked} == {
        cast.workspace_key.row.prefix,
        cast.read_only_key.row.prefix,
    }


def test_providers_and_models_are_told_and_no_credential_is(cast: Cast, operator: Client) -> None:
    form = {
        "organization": cast.organization.pk.hex, "slug": "local", "kind": "openai_compatible",
        "name": "Local", "base_url": "http://127.0.0.1:9/v1",
        "is_enabled": "on", "api_key": "local-key-7731", **no_rows("models"),
        "models-TOTAL_FORMS": "1", "models-0-model_id": "small", "models-0-display_name": "Small",
        "models-0-aliases": "", "models-0-efforts": "", "models-0-is_enabled": "on",
    }  # fmt: skip
    answer = operator.post("/admin/catalog/provider/add/", form)
    assert answer.status_code == 302, answer.text[:3000]
    model, provider = lines(cast, 2)
    assert (model.action, model.target_name) == ("model.added", "local/small")
    assert model.changes["display_name"] == [None, "Small"]
    assert provider.action == "provider.connected"
    assert provider.changes["api_key"] == [None, "set"]
    row = Provider.objects.get(slug="local")
    (small,) = row.models.all()
    known = {"models-INITIAL_FORMS": "1", "models-0-id": small.pk, "models-0-provider": row.pk}
    save(operator, "catalog/provider", row,
         form | known | {"api_key": "other-key-1193", "models-0-input_price": "1.5"})  # fmt: skip
    model, provider = lines(cast, 2)
    assert model.changes == {"input_price": [None, "1.5"]}
    assert provider.changes == {"api_key": ["set", "replaced"]}
    save(operator, "catalog/provider", row, form | known | {"api_key": "", "models-0-DELETE": "on"})
    (model,) = lines(cast, 1)
    assert (model.action, model.target_id[:4]) == ("model.removed", "mdl_")
    operator.post(f"/admin/catalog/provider/{row.pk}/delete/", {"post": "yes"})
    assert lines(cast, 1)[0].action == "provider.removed"
    text = str(list(AuditEntry.objects.values()))
    for secret in ("local-key-7731", "other-key-1193"):
        assert secret not in text


def test_agents_are_told_with_what_they_are_instructed(cast: Cast, operator: Client) -> None:
    agent = get_or_create_default_agent(workspace_id=cast.workspace.pk)
    form = {"name": agent.name, "speed": "standard", "is_default": "on", "instructions": "x" * 900}
    save(operator, "catalog/agent", agent, form)
    (line,) = lines(cast, 1)
    assert (line.action, line.target_id) == ("agent.updated", agent.public_id)
    assert line.workspace_id == cast.workspace.pk
    old, new = line.changes["instructions"]
    assert old.startswith("You are a careful assistant")
    assert new.startswith("xxx")
    assert len(new) <= 200
    run(operator, "agent", "delete_selected", agent.pk, app="catalog")
    assert lines(cast, 1)[0].action == "agent.removed"


def test_two_changes_of_one_organization_wait_for_each_other(committed_cast: Cast) -> None:
    """The row is held before the old values are read: none of two lines tells a stale one."""
    cast = committed_cast
    User.objects.filter(pk=cast.owner.pk).update(is_staff=True, is_superuser=True)
    barrier = threading.Barrier(2)

    def rename(name: str) -> int:
        try:
            client = Client()
            client.force_login(cast.owner)
            barrier.wait()
            path = f"/admin/orgs/organization/{cast.organization.pk}/change/"
            return client.post(path, {"name": name, **NO_PLACES}).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(rename, ("One", "Two"))) == [302, 302]
    second, first = lines(cast, 2)
    assert first.changes["name"][0] == "Lindqvist Atlas"
    assert second.changes["name"][0] == first.changes["name"][1]


def test_keys_are_revoked_and_never_deleted(cast: Cast, operator: Client) -> None:
    key, other = cast.workspace_key, cast.read_only_key
    before = epoch(cast.organization)
    operator.post("/admin/orgs/apikey/", {
        "action": "delete_selected", "_selected_action": [str(key.row.pk)], "post": "yes",
    })  # fmt: skip
    assert operator.post(f"/admin/orgs/apikey/{key.row.pk}/delete/").status_code == 403
    assert ApiKey.objects.filter(pk=key.row.pk, revoked_at=None).exists()
    run(operator, "apikey", "revoke", key.row.pk)
    with pytest.raises(Unauthenticated):
        authenticate_key(key.secret)
    assert authenticate_key(other.secret)
    assert epoch(cast.organization) > before
    (line,) = lines(cast, 1)
    assert (line.actor_kind, line.target_id) == ("operator", key.row.public_id)
    run(operator, "apikey", "revoke", key.row.pk)
    assert lines(cast, 1) == [line]
