"""The audit log: read with filters, and exported."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.views.decorators.http import require_GET, require_POST

from core.api.reader import zone
from core.clock import now
from core.errors import Conflict, InvalidInput
from orgs.models import AuditEntry
from orgs.owner_admin.csv_export import to_csv
from orgs.owner_admin.forms import AuditForm, asked_actor
from orgs.owner_admin.pages import refuse, show
from orgs.owner_admin.words import say_action, say_changes
from orgs.selectors.audit import AuditActor, list_actors, read_audit_page
from orgs.services.audit_export import export_audit
from orgs.tenant import Tenant

LINES_A_PAGE = 50


@require_GET
def audit(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    form = AuditForm(_actors(tenant, request.GET), request.GET)
    lines: list[AuditEntry] = []
    older = ""
    if form.is_valid():
        query = form.query(zone(request))
        lines, cursor = read_audit_page(
            access=tenant.access,
            organization_id=tenant.id,
            query=query,
            limit=LINES_A_PAGE,
            page=request.GET.get("before", ""),
        )
        older = cursor or ""
    names = _workspace_names(tenant, lines)
    shown = [
        {
            "entry": each,
            "action": say_action(each),
            "changes": say_changes(each),
            "workspace": names.get(each.workspace_id),
        }
        for each in lines
    ]
    return show(
        request,
        tenant,
        "audit.html",
        status=400 if form.errors else 200,
        section="audit",
        form=form,
        lines=shown,
        older=_address(request, older) if older else "",
        is_filtered=any(request.GET.get(name) for name in form.fields),
    )


@require_POST
def export(request: HttpRequest, tenant: Tenant) -> HttpResponseBase:
    """By POST, for it writes a line into the log itself."""
    form = AuditForm(_actors(tenant, request.POST), request.POST)
    back = f"{tenant.home}audit/"
    if not form.is_valid():
        problem = "; ".join(text for texts in form.errors.values() for text in map(str, texts))
        return refuse(request, back, InvalidInput("invalid_filter", problem))
    query = form.query(zone(request))
    try:
        lines = export_audit(access=tenant.access, organization_id=tenant.id, query=query)
    except Conflict as error:
        return refuse(request, back, error)
    return HttpResponse(
        to_csv(lines),
        content_type="text/csv; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="audit-{now():%Y-%m-%d}.csv"'},
    )


def _workspace_names(tenant: Tenant, lines: list[AuditEntry]) -> dict[UUID | None, str]:
    """As they are called now."""
    named = {each.workspace_id for each in lines if each.workspace_id is not None}
    return dict(tenant.workspaces().filter(pk__in=named).values_list("pk", "name"))


def _actors(tenant: Tenant, data: QueryDict) -> list[AuditActor]:
    return list_actors(
        access=tenant.access, organization_id=tenant.id, asked=asked_actor(data.get("who", ""))
    )


def _address(request: HttpRequest, cursor: str) -> str:
    asked = request.GET.copy()
    asked["before"] = cursor
    return f"?{asked.urlencode()}"
