"""What an operator changes in the admin is noticed by who is connected."""

from __future__ import annotations

import pytest
from django.test import Client

from core.errors import Unauthenticated
from orgs.models import ApiKey, Organization, User
from orgs.principals import authenticate_key
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


def run(operator: Client, model: str, action: str, *rows: object) -> None:
    form = {"action": action, "_selected_action": [str(row) for row in rows], "post": "yes"}
    answer = operator.post(f"/admin/orgs/{model}/", form)
    assert answer.status_code == 302, answer.content.decode()[:2000]


@pytest.mark.parametrize("model", ["user", "workspace"])
def test_deleting_several_moves_the_epoch(cast: Cast, operator: Client, model: str) -> None:
    row = {"user": cast.viewer, "workspace": cast.workspace}[model]
    before = epoch(cast.organization)
    run(operator, model, "delete_selected", row.pk)
    assert not type(row).objects.filter(pk=row.pk).exists()
    assert epoch(cast.organization) > before


def test_a_workspace_that_moves_moves_the_epochs_of_both_organizations(
    cast: Cast, operator: Client
) -> None:
    before = epoch(cast.organization), epoch(cast.other_organization)
    form = {
        "name": "Moved",
        "organization": cast.other_organization.pk.hex,
        "kind": "shared",
        "memberships-TOTAL_FORMS": "0",
        "memberships-INITIAL_FORMS": "0",
    }
    path = f"/admin/orgs/workspace/{cast.workspace.pk}/change/"
    answer = operator.post(path, form)
    assert answer.status_code == 302, answer.content.decode()[:2000]
    assert epoch(cast.organization) > before[0]
    assert epoch(cast.other_organization) > before[1]


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
