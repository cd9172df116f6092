"""The operators' admin: which address admits whom, and no word of any conversation anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import URLPattern, URLResolver

from orgs.models import User
from orgs.roles import OrganizationRole
from orgs.services.members import set_organization_role
from sessions_app.models import Attempt, Session, Turn
from tests.api.callers import secrets_of_keys
from tests.api.hiding import Hidden, Workspace
from tests.api.matrix_rows import KEYS
from tests.factories import PASSWORD, Cast

SIGN_IN, LISTED, SHOWN, REFUSED = 302, 200, 200, 403
# What an operator gets; whoever is none is sent to sign in, or refused where signed in as staff.
READ_ONLY = {Session, Turn, Attempt}
OWN = ("", "autocomplete/", "jsi18n/")
DOORS = re.compile(r"/((admin/login|sign-in|account)/|(admin/)?$)")
ELSEWHERE = ("login/", "logout/", "password_change/", "password_change/done/")


def addresses() -> Iterator[str]:
    """Every pattern of the site, as text."""
    for pattern in admin.site.urls[0]:
        if isinstance(pattern, URLResolver):
            for each in pattern.url_patterns:
                assert isinstance(each, URLPattern)
                yield f"{pattern.pattern}{each.pattern}"
        else:
            yield str(pattern.pattern)


def filled(cast: Cast) -> list[str]:
    """A row of each model where the address names one."""
    Group.objects.get_or_create(name="Reporting")
    found = []
    for address in addresses():
        model = next(
            (
                each
                for each in admin.site._registry
                if address.startswith(f"{each._meta.app_label}/{each._meta.model_name}/")
            ),
            None,
        )
        row = model._default_manager.first() if model else None
        if model and "<path:object_id>" in address:
            assert row is not None, address
            found.append(address.replace("<path:object_id>", str(row.pk)))
        elif "<" not in address and "(?" not in address:
            found.append(address)
    assert len(found) > 30
    return found


@pytest.fixture
def operator(cast: Cast) -> Client:
    user = User.objects.create_superuser("operator@example.test", PASSWORD, name="Ines Berg")
    return browser(user)


def browser(user: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def test_whoever_is_no_operator_is_sent_to_sign_in(cast: Cast) -> None:
    Hidden.to_be().make(Workspace(cast))
    secrets = secrets_of_keys(cast)
    people = ("owner", "admin", "member", "viewer", "outsider")
    callers = {name: browser(getattr(cast, name)) for name in people}
    callers["nobody"] = Client()
    for name in KEYS:
        secret = secrets.get(name) or getattr(cast, name).secret
        callers[name] = Client(headers={"authorization": f"Bearer {secret}"})
    for address in filled(cast):
        for name, client in callers.items():
            answer = client.get(f"/admin/{address}")
            assert answer.status_code == SIGN_IN, (name, address)
            door = answer["location"]
            assert re.match(r"/((admin/login|sign-in|account)/|(admin/)?$)", door), (
                name,
                address,
                door,
            )
            assert client.post(f"/admin/{address}").status_code in {302, 403, 405}, (name, address)


def test_staff_without_a_permission_sees_no_row(cast: Cast) -> None:
    Hidden.to_be().make(Workspace(cast))
    User.objects.filter(pk=cast.member.pk).update(is_staff=True)
    client = browser(User.objects.get(pk=cast.member.pk))
    for address in filled(cast):
        status = client.get(f"/admin/{address}", follow=True).status_code
        of_a_model = "/" in address.strip("/")
        if of_a_model and address not in ELSEWHERE:
            assert status == REFUSED, address
        else:
            assert status in {200, 302, 403, 404, 405}, address


def test_an_operator_reads_no_word_of_what_was_said(cast: Cast, operator: Client) -> None:
    """BR-092. Titles, prompts, answers, calls, metadata, drafts: private and shared ones."""
    workspace, hidden = Workspace(cast), Hidden.to_be()
    hidden.make(workspace)
    words = (hidden.word, "Harbour", "Done.", "probe.append")
    for address in filled(cast):
        if address.startswith(ELSEWHERE):
            continue
        queries = ("", f"?q={hidden.word[:8]}", "?o=1.-2", "?p=1&all=")
        for query in queries:
            answer = operator.get(f"/admin/{address}{query}", follow=True)
            assert answer.status_code in {200, 400, 403, 404}, address
            text = answer.content.decode()
            assert [word for word in words if word in text] == [], (address, query)


def test_an_operator_changes_no_session(cast: Cast, operator: Client) -> None:
    Hidden.to_be().make(Workspace(cast))
    for model in READ_ONLY:
        row = model._default_manager.first()
        assert row is not None
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}"
        before = list(model._default_manager.order_by("pk").values())
        assert operator.get(f"{base}/").status_code == LISTED
        assert operator.get(f"{base}/{row.pk}/change/").status_code == SHOWN
        for tried in ("add/", f"{row.pk}/change/", f"{row.pk}/delete/"):
            assert operator.post(f"{base}/{tried}", {"title": "Mine"}).status_code == REFUSED
        form = {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"}
        operator.post(f"{base}/", form)
        assert list(model._default_manager.order_by("pk").values()) == before


def test_an_owner_of_an_organization_is_no_operator(cast: Cast) -> None:
    set_organization_role(
        access=cast.access("owner"),
        organization_id=cast.organization.pk,
        user_id=cast.member.pk,
        role=OrganizationRole.OWNER,
    )
    assert browser(cast.member).get("/admin/").status_code == SIGN_IN
    assert not User.objects.get(pk=cast.member.pk).is_staff
