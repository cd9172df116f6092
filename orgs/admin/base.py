"""What every page of the operators' admin keeps to: it is no oracle, and its changes are told.

A change holds the organizations that it concerns before anything is read, and is in its
transaction a line in the log of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, cast
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model, QuerySet
from django.forms import BaseModelForm, BaseModelFormSet
from django.http import HttpRequest, HttpResponse

from orgs.models import User
from orgs.models.audit import AuditAction
from orgs.services import audit, operators
from orgs.services.holding import lock_organizations


class OperatorsAdmin(admin.ModelAdmin):
    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Django allows any column of the model in an address, and so guessing at hidden ones,
        letter by letter.
        """
        shown = {name for name in self.list_filter if isinstance(name, str)}
        name, _, kind = lookup.partition("__")
        return name in shown and kind in {"", "exact", "in", "isnull"}


class AuditedAdmin(OperatorsAdmin):
    """`told`: the actions for a row that is made, changed and removed."""

    told: ClassVar[tuple[AuditAction | None, AuditAction, AuditAction]]
    moves_epoch = True

    def organizations_of(self, row: Any) -> set[UUID]:
        raise NotImplementedError

    def target_of(self, row: Any) -> audit.Target:
        return audit.target_of(row)

    def workspace_of(self, row: Any) -> UUID | None:
        return None

    def changes_beside(self, row: Any, form: BaseModelForm) -> dict[str, tuple[Any, Any]]:
        """What the form changes that is no column of its row."""
        return {}

    def lost_with(self, row: Any, organization_id: UUID) -> dict[str, tuple[Any, Any]]:
        """What goes with a row that is removed."""
        return {}

    def end_with(self, request: HttpRequest, row: Any) -> None:
        """Ends what must not end unsaid when the row is removed."""

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method != "POST" or object_id is None:
            return super().changeform_view(request, object_id, form_url, extra_context)
        with transaction.atomic():
            self._hold(self._named(object_id))
            return super().changeform_view(request, object_id, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: Any, form: BaseModelForm, change: bool) -> None:
        fields = operators.fields_among(obj, form.fields)
        old = self.model._default_manager.filter(pk=obj.pk).first() if change else None
        before = operators.facts(old, fields) if old else {}
        beside = self.changes_beside(obj, form)
        super().save_model(request, obj, form, change)
        changes = operators.differences(before, operators.facts(obj, fields)) | beside
        created, updated, _ = self.told
        action = updated if change else created
        if action is not None and (changes or not change):
            self.tell(request, obj, action, changes)

    def save_related(
        self, request: HttpRequest, form: BaseModelForm, formsets: Any, change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        if self.moves_epoch:
            operators.move_epochs(self.organizations_of(form.instance))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with transaction.atomic():
            organizations = self._hold([obj])
            target, workspace_id = self.target_of(obj), self.workspace_of(obj)
            lost = {pk: self.lost_with(obj, pk) for pk in organizations}
            self.end_with(request, obj)
            super().delete_model(request, obj)
            for pk in organizations:
                self._write(request, pk, self.told[2], target, lost[pk], workspace_id)
            if self.moves_epoch:
                operators.move_epochs(organizations)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        with transaction.atomic():
            self._hold(queryset)
            for row in queryset:
                self.delete_model(request, row)

    def tell(
        self, request: HttpRequest, row: Any, action: AuditAction, changes: audit.Changes
    ) -> None:
        for pk in sorted(self.organizations_of(row)):
            self._write(request, pk, action, self.target_of(row), changes, self.workspace_of(row))

    def _write(
        self,
        request: HttpRequest,
        organization_id: UUID,
        action: AuditAction,
        target: audit.Target,
        changes: audit.Changes,
        workspace_id: UUID | None,
    ) -> None:
        audit.record(
            access=operator_of(request),
            organization_id=organization_id,
            action=action,
            target=target,
            changes=changes,
            workspace_id=workspace_id,
        )

    def _named(self, object_id: str) -> Iterable[Any]:
        try:
            return list(self.model._default_manager.filter(pk=unquote(object_id)))
        except (ValidationError, ValueError):
            return []

    def _hold(self, rows: Iterable[Any]) -> list[UUID]:
        found = {pk for row in rows for pk in self.organizations_of(row)}
        return lock_organizations(organization_ids=found)


def operator_of(request: HttpRequest) -> audit.Operator:
    user = cast(User, request.user)
    return audit.Operator(user.pk, user.name)


def facts_of_rows(formset: BaseModelFormSet) -> Mapping[Any, Mapping[str, Any]]:
    """The rows of a formset as the database has them, before it is saved."""
    known = [form.instance.pk for form in formset.initial_forms]
    assert formset.model is not None
    rows: Iterable[Model] = formset.model._default_manager.filter(pk__in=known)
    fields = formset.empty_form.fields
    return {row.pk: operators.facts(row, operators.fields_among(row, fields)) for row in rows}
