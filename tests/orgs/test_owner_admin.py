"""The owner's admin: every address for every kind of person, and no tenant in another's pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orgs.models import (
    ApiKey,
    AuditEntry,
    Invitation,
    OrganizationMembership,
    User,
    WorkspaceMembership,
)
from orgs.owner_admin.site import owner_site
from orgs.roles import OrganizationRole, WorkspaceRole
from orgs.services.founding import (
    add_organization_member,
    add_workspace_member,
    create_organization,
    create_user,
)
from orgs.services.keys import NewKey, create_key
from orgs.services.members import remove_organization_member, set_organization_role
from orgs.services.workspaces import create_shared_workspace
from tests.api.callers import secrets_of_keys
from tests.api.matrix_rows import DEAD_KEYS, KEYS
from tests.factories import PASSWORD, Cast
from tests.orgs.owner_rows import ADMINISTRATORS, PEOPLE, PLACE, ROWS, House, furnish, two_houses

THEIR_WORDS = ("Haddad", "Farid", "farid", "Kiln", "Glaze", "tiles")
NAMING = [row for row in ROWS if "{" in row.address]


def browser(cast: Cast, who: str) -> Client:
    client = Client()
    if who != "nobody":
        client.force_login(getattr(cast, who))
    return client


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def state(organization_id: Any) -> dict[str, Any]:
    """Every row of an organization."""
    found: dict[str, Any] = {}
    models: list[type[Model]] = [
        *apps.get_app_config("orgs").get_models(),
        *apps.get_app_config("catalog").get_models(),
    ]
    for model in models:
        names = {field.name for field in model._meta.get_fields()}
        rows = model._default_manager.all()
        if model._meta.model_name == "organization":
            rows = rows.filter(pk=organization_id)
        elif model is WorkspaceMembership:
            rows = rows.filter(workspace__organization_id=organization_id)
        elif model is User:
            rows = rows.filter(organization_memberships__organization_id=organization_id)
        elif "provider" in names:
            rows = rows.filter(provider__organization_id=organization_id)
        elif {"organization", "organization_id"} & names:
            rows = rows.filter(organization_id=organization_id)
        else:
            continue
        # That somebody signed in is no change.
        shown = [{k: v for k, v in row.items() if k != "last_login"} for row in rows.values()]
        found[model.__name__] = sorted(map(str, shown))
    return found


def test_every_address_has_a_row_and_every_row_an_address() -> None:
    assert {row.route for row in ROWS} == set(owner_site.routes)
    patterns = {str(each.pattern) for each in owner_site.get_urls()}
    assert patterns == {"", *(f"<organization>/{route}" for route in owner_site.routes)}


def test_no_model_can_be_registered() -> None:
    with pytest.raises(ImproperlyConfigured):
        owner_site.register(ApiKey)
    assert not owner_site._registry


@pytest.mark.parametrize("who", PEOPLE)
def test_each_address_admits_whom_it_should(cast: Cast, who: str) -> None:
    ours, _ = two_houses(cast)
    client = browser(cast, who)
    before = state(ours.organization.pk)
    for row in ROWS:
        with undone():
            answer = row.send(client, ours)
            name = f"{row.method} {row.address} {row.data}"
            assert answer.status_code == row.expected(who), name
            changed = state(ours.organization.pk) != before
            succeeds = row.method == "POST" and answer.status_code in {200, 302}
            assert changed == (succeeds and who in ADMINISTRATORS), name
            assert "no-store" in answer["cache-control"], name
            if who == "nobody":
                assert answer["location"].startswith("/sign-in/?next=/owner/"), name


@pytest.mark.parametrize("who", ["member", "outsider"])
def test_what_one_does_not_administer_answers_as_what_never_was(cast: Cast, who: str) -> None:
    ours, _ = two_houses(cast)
    client = browser(cast, who)
    never = client.get(f"/owner/org_{'0' * 32}/members/").content
    for row in ROWS:
        assert row.send(client, ours).content == never, row.address


def test_an_owner_reaches_no_row_of_others_through_the_own_address(cast: Cast) -> None:
    ours, theirs = two_houses(cast)
    client = browser(cast, "owner")
    before = state(theirs.organization.pk), state(ours.organization.pk)
    for row in NAMING:
        assert row.send(client, theirs, at=ours.home).status_code == 404, row
        assert (state(theirs.organization.pk), state(ours.organization.pk)) == before, row


def test_a_form_takes_no_row_of_others(cast: Cast) -> None:
    ours, theirs = two_houses(cast)
    client = browser(cast, "owner")
    tries = [
        ("invitations/new/", {"email": "iris@example.test", "role": "member",
                              "workspace": "{workspace}", "workspace_role": "member"}),
        ("keys/new/", {"name": "n", "reach": "read", "lifetime_days": "3",
                       "workspace": "{workspace}"}),
        ("keys/new/", {"name": "n", "reach": "read", "lifetime_days": "3", "owner": "{account}"}),
        ("keys/new/", {"name": "n", "reach": "read", "lifetime_days": "3", "owner": "{person}"}),
    ]  # fmt: skip
    before = state(theirs.organization.pk), state(ours.organization.pk)
    for address, data in tries:
        sent = {name: theirs.fill(value) for name, value in data.items()}
        answer = client.post(ours.home + address, sent)
        assert answer.status_code == 400, sent
        assert not any(word in answer.content.decode() for word in THEIR_WORDS)
    assert (state(theirs.organization.pk), state(ours.organization.pk)) == before


def test_nobody_moves_between_tenants_by_a_posted_id(cast: Cast) -> None:
    ours, theirs = two_houses(cast)
    client = browser(cast, "owner")
    before = state(theirs.organization.pk)
    mixed = [
        (f"workspaces/{ours.ids['workspace']}/members/", {**PLACE, "member": theirs.ids["person"]}),
        (f"workspaces/{theirs.ids['workspace']}/members/", {**PLACE, "member": ours.ids["person"]}),
        (f"workspaces/{theirs.ids['workspace']}/members/{ours.ids['person']}/remove/", {}),
        (f"workspaces/{ours.ids['workspace']}/members/{theirs.ids['person']}/remove/", {}),
    ]
    for address, data in mixed:
        assert client.post(ours.home + address, data).status_code == 404, address
    assert state(theirs.organization.pk) == before
    # An id in the body is no way round the one in the address either.
    client.post(f"{ours.home}settings/", {
        "name": "Ours", "organization": theirs.organization.public_id,
        "id": theirs.organization.public_id,
    })  # fmt: skip
    assert state(theirs.organization.pk) == before


def test_no_page_has_a_name_of_another_tenant(cast: Cast) -> None:
    ours, theirs = two_houses(cast)
    client = browser(cast, "owner")
    pages = {row.address for row in ROWS if row.method == "GET" and row.status == 200}
    pages |= {
        "members/?q=a",
        "members/?q=Haddad",
        "audit/?what=api_key.created",
        "audit/?who=user:",
        f"audit/?who=user:{cast.outsider.pk.hex}",
        f"audit/?about={theirs.key.public_id}",
        f"audit/?about={theirs.workspace.public_id}",
        "keys/?organization=1&page=2&created_by__email__startswith=farid",
    }
    for page in pages:
        text = client.get(ours.home + ours.fill(page)).content.decode()
        found = [word for word in THEIR_WORDS if word in text.replace("?q=Haddad", "")]
        assert page == "members/?q=Haddad" or found == [], page
        assert cast.outsider.email not in text
        assert all(each not in text.replace(page, "") for each in theirs.ids.values()) or (
            "about=" in page
        )
    export = client.post(f"{ours.home}audit/export/").content.decode()
    assert not any(word in export for word in THEIR_WORDS)


def test_who_administers_two_sees_one_at_a_time(cast: Cast) -> None:
    ours, theirs = two_houses(cast)
    add_organization_member(
        organization=theirs.organization, user=cast.owner, role=OrganizationRole.ADMIN
    )
    client = browser(cast, "owner")
    for row in NAMING:
        assert row.send(client, theirs, at=ours.home).status_code == 404, row.address
        if not row.address.startswith("members/{person}/"):  # Chiara belongs to both
            assert row.send(client, ours, at=theirs.home).status_code == 404, row.address
    chosen = client.get("/owner/").content.decode()
    assert ours.home in chosen
    assert theirs.home in chosen


def test_the_front_door_leads_to_the_only_organization_or_nowhere(cast: Cast) -> None:
    home = f"/owner/{cast.organization.public_id}/"
    for who in ("owner", "admin"):
        assert browser(cast, who).get("/owner/")["location"] == home
    for who in ("member", "viewer"):
        assert browser(cast, who).get("/owner/").status_code == 404
    assert browser(cast, "nobody").get("/owner/")["location"].startswith("/sign-in/")
    assert home in browser(cast, "owner").get("/", follow=True).content.decode()
    for who in ("member", "viewer"):
        assert "/owner/" not in browser(cast, who).get("/", follow=True).content.decode()


def test_an_admin_touches_no_owner(cast: Cast) -> None:
    ours, _ = two_houses(cast)
    client = browser(cast, "admin")
    address = f"{ours.home}members/{cast.owner.public_id}/"
    assert "Only an owner can change that" in client.get(address).content.decode()
    before = state(ours.organization.pk)
    assert client.post(address, {"role": "member"}).status_code == 400
    assert client.post(f"{address}remove/").status_code == 302
    assert state(ours.organization.pk) == before


def test_the_last_owner_stays_and_is_told_why(cast: Cast) -> None:
    ours, _ = two_houses(cast)
    client = browser(cast, "owner")
    address = f"{ours.home}members/{cast.owner.public_id}/"
    answer = client.post(address, {"role": "member"})
    assert answer.status_code == 400
    assert "this is the last one" in answer.content.decode()
    answer = client.post(f"{address}remove/", follow=True)
    assert "this is the last one" in answer.content.decode()
    assert OrganizationMembership.objects.filter(user=cast.owner, role="owner").count() == 1


def test_who_gives_up_the_role_is_led_out(cast: Cast) -> None:
    ours, _ = two_houses(cast)
    client = browser(cast, "admin")
    address = f"{ours.home}members/{cast.admin.public_id}/"
    assert client.post(address, {"role": "member"})["location"] == "/"
    assert client.get(address).status_code == 404


def test_a_personal_workspace_is_no_matter_of_the_organization(cast: Cast) -> None:
    ours, _ = two_houses(cast)
    personal = cast.member.personal_workspaces.get(organization=ours.organization)
    client = browser(cast, "owner")
    assert client.get(f"{ours.home}workspaces/{personal.public_id}/").status_code == 404
    pages = ("workspaces/", "keys/new/", "invitations/new/", f"members/{cast.member.public_id}/")
    for page in pages:
        assert personal.public_id not in client.get(ours.home + page).content.decode()


@pytest.mark.parametrize("name", [*KEYS, *DEAD_KEYS])
def test_a_key_opens_no_page(cast: Cast, name: str) -> None:
    ours, _ = two_houses(cast)
    secret = secrets_of_keys(cast).get(name) or getattr(cast, name).secret
    client = Client(headers={"authorization": f"Bearer {secret}"})
    before = state(ours.organization.pk)
    for row in ROWS:
        assert row.send(client, ours)["location"].startswith("/sign-in/"), row.address
    assert state(ours.organization.pk) == before


@pytest.mark.parametrize("how", ["demoted", "removed"])
def test_who_administered_once_is_a_stranger_now(cast: Cast, how: str) -> None:
    """With the login and the pages from before."""
    ours, _ = two_houses(cast)
    client, owner = browser(cast, "admin"), cast.access("owner")
    organization_id = ours.organization.pk
    home = f"{ours.home}members/"
    assert client.get(home).status_code == 200
    if how == "removed":
        remove_organization_member(
            access=owner, organization_id=organization_id, user_id=cast.admin.pk
        )
    else:
        set_organization_role(
            access=owner,
            organization_id=organization_id,
            user_id=cast.admin.pk,
            role=OrganizationRole.MEMBER,
        )
    before = state(organization_id)
    never = client.get(f"/owner/org_{'0' * 32}/members/").content
    for row in ROWS:
        answer = row.send(client, ours)
        assert (answer.status_code, answer.content) == (404, never), row.address
    assert state(organization_id) == before


def test_requests_need_their_csrf_token(cast: Cast) -> None:
    ours, _ = two_houses(cast)
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.owner)
    before = state(ours.organization.pk)
    for row in ROWS:
        if row.method == "POST":
            assert row.send(client, ours).status_code == 403, row.address
    assert state(ours.organization.pk) == before


def _crowd(cast: Cast, house: House) -> None:
    """Six more of everything."""
    access, organization = cast.access("owner"), house.organization
    for number in range(6):
        person = create_user(email=f"crowd{number}@example.test", name="Crowd", password=PASSWORD)
        add_organization_member(
            organization=organization, user=person, role=OrganizationRole.MEMBER
        )
        add_workspace_member(workspace=house.workspace, user=person, role=WorkspaceRole.MEMBER)
        room = create_shared_workspace(
            access=access, organization_id=organization.pk, name=f"Room {number}"
        )
        add_workspace_member(workspace=room, user=cast.member, role=WorkspaceRole.MEMBER)
        furnish(organization, cast.owner, person, house.workspace, f"more{number}")
        create_key(
            access=access, organization_id=organization.pk, new=NewKey(f"k{number}", ["read"])
        )


def test_a_page_costs_the_same_statements_however_many_rows(cast: Cast) -> None:
    ours, _ = two_houses(cast)
    client = browser(cast, "owner")
    pages = sorted({row.address for row in ROWS if row.method == "GET" and row.status == 200})

    def costs() -> dict[str, int]:
        counted = {}
        for page in pages:
            with CaptureQueriesContext(connection) as queries:
                assert client.get(ours.home + ours.fill(page)).status_code == 200
            counted[page] = len(queries)
        return counted

    few = costs()
    _crowd(cast, ours)
    assert costs() == few
    assert max(few.values()) <= 16


def test_long_lists_have_pages(cast: Cast) -> None:
    ours, _ = two_houses(cast)
    access = cast.access("owner")
    for number in range(51):
        create_shared_workspace(
            access=access, organization_id=ours.organization.pk, name=f"Room {number:02}"
        )
    client = browser(cast, "owner")
    first = client.get(f"{ours.home}workspaces/").content.decode()
    second = client.get(f"{ours.home}workspaces/?page=2").content.decode()
    assert "Room 48" in first
    assert "Room 50" not in first
    assert "Room 50" in second
    for nonsense in ("0", "-1", "x", "999999999999999999", "%00"):
        assert client.get(f"{ours.home}workspaces/?page={nonsense}").status_code == 200


def test_a_new_organization_of_somebody_is_reached_by_its_owner_alone(cast: Cast) -> None:
    fresh = create_organization(name="Novak Prints", owner=cast.member)
    assert browser(cast, "member").get(f"/owner/{fresh.public_id}/members/").status_code == 200
    assert browser(cast, "owner").get(f"/owner/{fresh.public_id}/members/").status_code == 404
    (line,) = AuditEntry.objects.filter(organization_id=fresh.pk)
    assert line.action == "organization.created"  # to look writes nothing
    assert Invitation.objects.filter(organization=fresh).count() == 0
