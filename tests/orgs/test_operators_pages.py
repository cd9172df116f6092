"""The operators' admin shows no word of a conversation and no secret, on any of its pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from catalog.models import Provider
from catalog.services import get_or_create_default_agent
from catalog.services.providers import set_credentials
from orgs.models import ApiKey, AuditEntry, Invitation, Login, User
from orgs.services.invitations import NewInvitation, create_invitation
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Session
from sessions_app.services.attempts import record
from sessions_app.services.composer_drafts import save_draft
from tests.factories import PASSWORD, Cast, claim, make_session, message, send

WORD = "Zanzibar"  # in every place where people or models write
AGENTS_WORDS = "Kalahari"
CONTENT = (WORD, AGENTS_WORDS)


@pytest.fixture
def operator(cast: Cast) -> Client:
    user = User.objects.get(pk=cast.owner.pk)
    user.is_staff = user.is_superuser = True
    user.save()
    client = Client()
    client.post("/sign-in/", {"email": user.email, "password": PASSWORD})
    return client


@pytest.fixture
def session(cast: Cast) -> Session:
    """With a word of everybody in it: title, prompt, answer, a draft."""
    made = make_session(cast, title=f"{WORD} title", metadata={"place": WORD})
    send(cast, made, f"{WORD} prompt")
    record(lease=claim().lease, drafts=[message(f"{AGENTS_WORDS} answer")])
    write_draft(cast, made)
    made.refresh_from_db()
    assert WORD in made.preview_text + made.title
    return made


def write_draft(cast: Cast, session: Session) -> None:
    save_draft(
        access=cast.access("member"),
        workspace_id=session.workspace_id,
        session_id=session.pk,
        text=f"{WORD} draft",
        expected_revision=0,
    )


def allow(settings: Any) -> None:
    settings.OPERATORS_READ_CONTENT = True


def pages() -> Iterator[str]:
    """Each page that the admin has of each row, and of its lists."""
    for model, model_admin in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        yield reverse(f"{name}_changelist") + f"?q={WORD[:-1]}"
        yield reverse(f"{name}_add")
        for row in model._default_manager.all():
            for page in ("change", "history", "delete"):
                yield reverse(f"{name}_{page}", args=[row.pk])
        for each in (model_admin, *model_admin.inlines):
            for field in each.autocomplete_fields:
                yield autocomplete(each.model, field)
    yield reverse("admin:index")


def autocomplete(model: type[Model], field: str) -> str:
    names = f"app_label={model._meta.app_label}&model_name={model._meta.model_name}"
    return f"/admin/autocomplete/?{names}&field_name={field}&term="


def secrets_of(cast: Cast) -> list[str]:
    provider = Provider.objects.filter(organization=cast.organization).get()
    set_credentials(provider=provider, api_key="provider-key-5521")
    _, token = create_invitation(
        access=cast.access("owner"),
        organization_id=cast.organization.pk,
        new=NewInvitation("greta@example.test"),
    )
    provider.refresh_from_db()
    return [
        token,
        "provider-key-5521",
        provider.encrypted_credentials,
        cast.workspace_key.secret,
        *ApiKey.objects.values_list("digest", flat=True),
        *Invitation.objects.values_list("digest", flat=True),
        *Login.objects.values_list("digest", flat=True),
        *User.objects.values_list("password", flat=True),
    ]


def test_no_page_shows_what_was_said_or_a_secret(
    cast: Cast, operator: Client, session: Session
) -> None:
    get_or_create_default_agent(workspace_id=cast.workspace.pk)
    Group.objects.create(name="Support")
    for model in admin.site._registry:
        assert model._default_manager.exists(), model
    hidden = [*CONTENT, *secrets_of(cast)]
    seen = 0
    for path in list(pages()):
        answer = operator.get(path)
        assert answer.status_code in {200, 403}, path
        seen += answer.status_code == 200
        assert [text for text in hidden if text in answer.text] == [], path
    assert seen > 60


def test_confirming_a_removal_of_what_has_sessions_names_no_title(
    cast: Cast, operator: Client, session: Session
) -> None:
    for model, row in (
        ("workspace", cast.workspace),
        ("organization", cast.organization),
    ):
        form = {"action": "delete_selected", "_selected_action": [str(row.pk)]}
        for answer in (
            operator.get(f"/admin/orgs/{model}/{row.pk}/delete/"),
            operator.post(f"/admin/orgs/{model}/", form),
            operator.post(f"/admin/orgs/{model}/", {**form, "post": "yes"}),
        ):
            assert "Cannot delete" in answer.text
            assert not any(word in answer.text for word in CONTENT)
        assert type(row).objects.filter(pk=row.pk).exists()


def test_histories_name_a_session_by_its_id(cast: Cast, operator: Client, session: Session) -> None:
    LogEntry.objects.create(
        user=cast.owner,
        content_type=ContentType.objects.get_for_model(Session),
        object_id=str(session.pk),
        object_repr=str(session),
        action_flag=CHANGE,
    )
    for path in ("/admin/", f"/admin/sessions_app/session/{session.pk}/history/"):
        page = operator.get(path).text
        assert session.public_id in page
        assert WORD not in page


@pytest.mark.parametrize(
    ("path", "guess"),
    [
        ("sessions_app/session", "title__startswith"),
        ("sessions_app/session", "preview_text__contains"),
        ("sessions_app/session", "turns__preview_text__contains"),
        ("sessions_app/turn", "preview_text__startswith"),
        ("sessions_app/turn", "session__title__startswith"),
        ("orgs/user", "password__startswith"),
        ("orgs/apikey", "digest__startswith"),
        ("catalog/provider", "encrypted_credentials__startswith"),
        ("catalog/agent", "workspace__sessions__title__startswith"),
        ("orgs/workspace", "sessions__title__startswith"),
    ],
)
def test_an_address_is_no_way_to_guess_letter_by_letter(
    cast: Cast, operator: Client, session: Session, path: str, guess: str
) -> None:
    assert operator.get(f"/admin/{path}/").status_code == 200
    for letter in ("Z", "a", "0"):
        assert operator.get(f"/admin/{path}/?{guess}={letter}").status_code == 400


def test_the_filters_of_lists_go_on_working(cast: Cast, operator: Client, session: Session) -> None:
    listed = "/admin/sessions_app/session/"
    assert str(session.pk) in operator.get(f"{listed}?status__exact={session.status}").text
    assert str(session.pk) not in operator.get(f"{listed}?status__exact=terminated").text
    assert operator.get("/admin/orgs/workspace/?kind__exact=personal").status_code == 200
    assert operator.get("/admin/orgs/workspace/?_to_field=id&_popup=1").status_code == 200
    assert operator.get("/admin/catalog/provider/?is_enabled__exact=1").status_code == 200


def test_an_operator_reads_where_the_setting_says_so_and_each_look_is_a_line(
    cast: Cast, operator: Client, session: Session, settings: Any
) -> None:
    path = f"/admin/sessions_app/session/{session.pk}/change/"
    operator.get(path)
    assert not AuditEntry.objects.filter(action="session.read").exists()
    allow(settings)
    for number in (1, 2):
        page = operator.get(path).text
        assert all(word in page for word in CONTENT)
        told = AuditEntry.objects.filter(action="session.read")
        assert told.count() == number
    line = told.latest("at")
    assert (line.actor_kind, line.actor_id) == ("operator", cast.owner.pk)
    assert (line.organization_id, line.workspace_id) == (cast.organization.pk, cast.workspace.pk)
    assert (line.target_kind, line.target_id) == ("session", session.public_id)
    assert WORD not in str(AuditEntry.objects.values())
    for other in ("", f"{session.pk}/history/"):
        assert WORD not in operator.get(f"/admin/sessions_app/session/{other}").text


def test_what_one_person_keeps_is_shown_to_no_operator(
    cast: Cast, operator: Client, session: Session, settings: Any
) -> None:
    allow(settings)
    personal = cast.member.personal_workspaces.get()
    alone = make_session(cast, workspace_id=personal.pk, title=f"{WORD} alone")
    Session.objects.filter(pk=session.pk).update(visibility=Visibility.PRIVATE)
    for row in (session, alone):
        page = operator.get(f"/admin/sessions_app/session/{row.pk}/change/")
        assert page.status_code == 200
        assert not any(word in page.text for word in CONTENT)
    assert not AuditEntry.objects.filter(action="session.read").exists()


def test_whoever_may_not_view_sessions_reads_none_and_writes_no_line(
    cast: Cast, session: Session, settings: Any
) -> None:
    allow(settings)
    cast.viewer.is_staff = True
    cast.viewer.save()
    client = Client()
    client.force_login(cast.viewer)
    answer = client.get(f"/admin/sessions_app/session/{session.pk}/change/")
    assert answer.status_code == 403
    assert not AuditEntry.objects.filter(action="session.read").exists()
