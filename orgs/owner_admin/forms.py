"""Forms of the owner's admin. Every choice that names a row comes from the tenant."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime, time, timedelta, tzinfo
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.conf import settings

from core.api.paths import id_in_path
from core.errors import DomainError
from core.ids import Prefix, encode_id
from orgs.models.audit import ActorKind, AuditAction
from orgs.owner_admin.words import (
    ACTION_WORDS,
    ORGANIZATION_ROLE_WORDS,
    WORKSPACE_ROLE_WORDS,
    label_of,
)
from orgs.roles import Action, OrganizationAction, OrganizationRole, Scope, WorkspaceRole
from orgs.selectors.audit import AuditActor, AuditQuery
from orgs.services.invitations import NewInvitation
from orgs.services.keys import NewKey
from orgs.services.validation import EMAIL_MAX_CHARACTERS, NAME_MAX_CHARACTERS
from orgs.tenant import Tenant

Choices = list[tuple[str, str]]
SINGLE = "single"
SERVER = f"{ActorKind.SERVER}:"


FIRST_YEAR, LAST_YEAR = 2000, 2200


class PlainForm(forms.Form):
    """`places`: the field at which an error of a service stands, by its param or its code."""

    places: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "field-%s")
        super().__init__(*args, **kwargs)
        self.once = secrets.token_hex(8)
        for field in self.fields.values():
            is_list = isinstance(field.widget, forms.RadioSelect | forms.CheckboxSelectMultiple)
            if not is_list and not isinstance(field.widget, forms.HiddenInput):
                field.widget.attrs["class"] = "input"

    def take(self, error: DomainError) -> None:
        place = self.places.get(error.param or error.code, error.param)
        self.add_error(place if place in self.fields else None, error.message)


def name_field(label: str = "Name", help_text: str = "") -> forms.CharField:
    return forms.CharField(label=label, max_length=NAME_MAX_CHARACTERS, help_text=help_text)


class NameForm(PlainForm):
    name = name_field()


class InvitationForm(PlainForm):
    places: ClassVar = {"already_member": "email", "workspace_id": "workspace"}
    email = forms.EmailField(
        label="E-mail",
        max_length=EMAIL_MAX_CHARACTERS,
        help_text="Only who signs in with this address can use the invitation.",
    )
    role = forms.ChoiceField(label="Role in the organization")
    workspace = forms.ChoiceField(label="Workspace to join as well", required=False)
    workspace_role = forms.ChoiceField(
        label="Role in that workspace", choices=list(WORKSPACE_ROLE_WORDS.items()), required=False
    )

    def __init__(self, tenant: Tenant, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose(self, "role", role_choices(tenant))
        _choose(self, "workspace", [("", "None"), *workspace_choices(tenant)])
        self.initial = {"role": "member", "workspace_role": "member", **self.initial}

    def wanted(self) -> NewInvitation:
        data = self.cleaned_data
        workspace = data["workspace"]
        role = WorkspaceRole(data["workspace_role"] or WorkspaceRole.MEMBER)
        return NewInvitation(
            email=data["email"],
            role=OrganizationRole(data["role"]),
            workspace_id=id_in_path(Prefix.WORKSPACE, workspace) if workspace else None,
            workspace_role=role if workspace else None,
        )


class RoleForm(PlainForm):
    places: ClassVar = {"last_owner": "role", "missing_role": "role", "not_a_person": "role"}
    role = forms.ChoiceField(label="Role")

    def __init__(self, tenant: Tenant, *args: Any, is_person: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose(self, "role", role_choices(tenant, is_person=is_person))


class ServiceAccountForm(PlainForm):
    name = name_field(help_text="What it works for, such as “reporting”.")
    role = forms.ChoiceField(label="Role in the organization")

    def __init__(self, tenant: Tenant, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose(self, "role", role_choices(tenant, is_person=False))


class KeyForm(PlainForm):
    places: ClassVar = {
        "workspace_id": "workspace",
        "missing_role": "owner",
        "service_account_id": "owner",
        "lifetime_days": "lifetime_days",
    }
    name = name_field(help_text="Where it will be used, such as “nightly import”.")
    owner = forms.ChoiceField(
        label="Owner",
        required=False,
        help_text="A key may do what its owner may do at that moment, and never more.",
    )
    workspace = forms.ChoiceField(label="Where", required=False)
    reach = forms.ChoiceField(
        label="May",
        widget=forms.RadioSelect,
        choices=[
            (Scope.READ, "Read"),
            (Scope.WRITE, "Read, start sessions and send"),
            (Scope.FULL, "All that its owner may do there"),
            (SINGLE, "Only the actions chosen below"),
        ],
        initial=Scope.WRITE,
    )
    actions = forms.MultipleChoiceField(
        label="Actions",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        choices=[(action.value, action.value) for action in [*Action, *OrganizationAction]],
    )
    lifetime_days = forms.IntegerField(label="Expires after, in days", min_value=1)

    def __init__(self, tenant: Tenant, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        accounts = [(each.public_id, each.name) for each in tenant.service_accounts()]
        _choose(self, "owner", [("", f"{tenant.access.principal.name} (you)"), *accounts])
        _choose(
            self,
            "workspace",
            [("", "All shared workspaces of its owner"), *workspace_choices(tenant)],
        )
        self.initial = {"lifetime_days": settings.KEY_LIFETIME_DAYS, **self.initial}

    def clean_lifetime_days(self) -> int:
        days: int = self.cleaned_data["lifetime_days"]
        if days > settings.KEY_LIFETIME_MAX_DAYS:
            raise forms.ValidationError(f"At most {settings.KEY_LIFETIME_MAX_DAYS} days.")
        return days

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if data.get("reach") == SINGLE and not data.get("actions"):
            self.add_error("actions", "Choose at least one action.")
        return data

    def wanted(self) -> NewKey:
        data = self.cleaned_data
        workspace, owner = data["workspace"], data["owner"]
        return NewKey(
            name=data["name"],
            scopes=data["actions"] if data["reach"] == SINGLE else [data["reach"]],
            workspace_id=id_in_path(Prefix.WORKSPACE, workspace) if workspace else None,
            lifetime_days=data["lifetime_days"],
            service_account_id=id_in_path(Prefix.USER, owner) if owner else None,
        )


class RotationForm(PlainForm):
    overlap = forms.TypedChoiceField(
        label="The old key goes on for",
        coerce=int,
        choices=[],
        help_text="Time enough to put the new one where the old one is.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        spans = [(0, "no time: it ends now"), (3_600, "1 hour"), (86_400, "1 day"),
                 (7 * 86_400, "7 days")]  # fmt: skip
        most = settings.KEY_OVERLAP_MAX_SECONDS
        _choose(self, "overlap", [(str(span), word) for span, word in spans if span <= most])


class AuditForm(PlainForm):
    who = forms.ChoiceField(label="Who", required=False)
    what = forms.ChoiceField(
        label="What",
        required=False,
        choices=[("", "Anything"), *((action.value, label_of(action)) for action in ACTION_WORDS)],
    )
    since = forms.DateField(
        label="From", required=False, widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d")
    )
    until = forms.DateField(
        label="To", required=False, widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d")
    )
    about = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def __init__(self, actors: Iterable[AuditActor], *args: Any, **kwargs: Any):
        super().__init__(*args, auto_id="audit-%s", **kwargs)
        known = [(actor_value(actor), actor.name) for actor in actors]
        _choose(self, "who", [("", "Anyone"), *known])

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        since, until = data.get("since"), data.get("until")
        for name, day in (("since", since), ("until", until)):
            if day and not FIRST_YEAR <= day.year <= LAST_YEAR:
                self.add_error(name, f"Choose a day from {FIRST_YEAR} to {LAST_YEAR}.")
        if since and until and until < since:
            self.add_error("until", "This is before the first day.")
        return data

    def query(self, zone: tzinfo) -> AuditQuery:
        """Days are the reader's; the last one is within."""
        data = self.cleaned_data
        actor_id = asked_actor(data["who"])
        since, until = data["since"], data["until"]
        return AuditQuery(
            actor_kind=ActorKind.SERVER if data["who"] and actor_id is None else None,
            actor_id=actor_id,
            action=AuditAction(data["what"]) if data["what"] else None,
            since=datetime.combine(since, time.min, zone) if since else None,
            until=datetime.combine(until + timedelta(days=1), time.min, zone) if until else None,
            about=data["about"] or None,
        )


def actor_value(actor: AuditActor) -> str:
    """A person is one, whether they act as a member or at /admin/."""
    if actor.id is None:
        return SERVER
    return f"{'key' if actor.kind is ActorKind.KEY else 'user'}:{actor.id.hex}"


def asked_actor(value: str) -> UUID | None:
    """None for the server, for anyone, and for what names nobody."""
    try:
        return UUID(hex=value.partition(":")[2])
    except ValueError:
        return None


def role_choices(tenant: Tenant, *, is_person: bool = True) -> Choices:
    """Only an owner makes owners, and only of people."""
    may_own = tenant.is_owned and is_person
    return [
        (role.value, word)
        for role, word in ORGANIZATION_ROLE_WORDS.items()
        if may_own or role is not OrganizationRole.OWNER
    ]


def workspace_choices(tenant: Tenant) -> Choices:
    rows = tenant.workspaces().values_list("pk", "name")
    return [(encode_id(Prefix.WORKSPACE, pk), name) for pk, name in rows]


def _choose(form: forms.Form, name: str, choices: Choices) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)
    field.choices = choices
