"""From the organization in a path to what one may administer there."""

from __future__ import annotations

from rest_framework.request import Request

from core.api.pagination import NoQuery, read_query
from core.api.paths import id_in_path
from core.ids import Prefix
from orgs.api.authentication import access_of
from orgs.roles import OrganizationAction
from orgs.tenant import Tenant


def open_tenant(request: Request, organization_id: str) -> Tenant:
    """NotFound where one does not belong, Forbidden where one belongs and does not administer.
    What changes something takes no query.
    """
    if request.method != "GET":
        read_query(request.query_params, NoQuery)
    access = access_of(request)
    pk = id_in_path(Prefix.ORGANIZATION, organization_id)
    access.require_in(OrganizationAction.MANAGE, pk)
    return Tenant.open(access, organization_id)
