"""Organizations: their settings, their members, and who is invited."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.pagination import NoQuery, PageQuery, page_of, read_query, read_shape
from core.api.views import ApiView, id_in_path
from core.ids import Prefix
from orgs.access import Access
from orgs.api import objects, shapes
from orgs.api.authentication import access_of
from orgs.api.opening import open_tenant
from orgs.mail import mail_invitation
from orgs.roles import OrganizationRole, WorkspaceRole
from orgs.services.invitations import NewInvitation, create_invitation, revoke_invitation
from orgs.services.members import remove_organization_member, set_organization_role
from orgs.services.organizations import update_organization
from orgs.services.service_accounts import create_service_account, remove_service_account
from orgs.tenant import Tenant

TAG = "Organizations"


class OrganizationsView(ApiView):
    @extend_schema(
        operation_id="organizations_list",
        tags=[TAG],
        summary="List the organizations that one belongs to, and what one may do there.",
        parameters=[PageQuery],
        responses={200: objects.OrganizationPageObject},
    )
    def get(self, request: Request) -> Response:
        page = page_of(
            access_of(request).organizations.items(),
            key=lambda item: item[0].hex,
            present=lambda item: objects.organization_json(*item),
            query=read_query(request.query_params, PageQuery),
            scope=["organizations"],
        )
        return Response(page)


class OrganizationView(ApiView):
    @extend_schema(
        operation_id="organizations_retrieve",
        tags=[TAG],
        summary="Retrieve the settings of an organization that one administers.",
        responses={200: objects.OrganizationSettingsObject},
    )
    def get(self, request: Request, organization_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        return Response(_settings(open_tenant(request, organization_id)))

    @extend_schema(
        operation_id="organizations_update",
        tags=[TAG],
        summary="Change the name, or whether “Only me” sessions are allowed (owners alone).",
        request=shapes.UpdateOrganization,
        responses={200: objects.OrganizationSettingsObject},
    )
    def post(self, request: Request, organization_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, shapes.UpdateOrganization)
        access = access_of(request)
        tenant = open_tenant(request, organization_id)
        update_organization(access=access, organization_id=tenant.id, **values)
        return Response(_settings(open_tenant(request, organization_id)))


class MembersView(ApiView):
    @extend_schema(
        operation_id="members_list",
        tags=[TAG],
        summary="List the people and service accounts of an organization.",
        parameters=[PageQuery],
        responses={200: objects.MemberPageObject},
    )
    def get(self, request: Request, organization_id: str) -> Response:
        tenant = open_tenant(request, organization_id)
        page = page_of(
            tenant.memberships(),
            key=lambda each: each.user_id.hex,
            present=objects.member_json,
            query=read_query(request.query_params, PageQuery),
            scope=["members", tenant.id.hex],
        )
        return Response(page)


class MemberView(ApiView):
    @extend_schema(
        operation_id="members_set_role",
        tags=[TAG],
        summary="Set the role of a member. Owners are made and unmade by owners alone.",
        request=shapes.SetOrganizationRole,
        responses={200: objects.MemberObject},
    )
    def post(self, request: Request, organization_id: str, user_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, shapes.SetOrganizationRole)
        access = access_of(request)
        membership = set_organization_role(
            access=access,
            organization_id=open_tenant(request, organization_id).id,
            user_id=id_in_path(Prefix.USER, user_id),
            role=OrganizationRole(values["role"]),
        )
        return Response(objects.member_json(membership))

    @extend_schema(
        operation_id="members_remove",
        tags=[TAG],
        summary="Remove a member from the organization and all its workspaces, or leave it.",
        responses={204: None},
    )
    def delete(self, request: Request, organization_id: str, user_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        remove_organization_member(
            access=access_of(request),
            organization_id=id_in_path(Prefix.ORGANIZATION, organization_id),
            user_id=id_in_path(Prefix.USER, user_id),
        )
        return Response(status=204)


class InvitationsView(ApiView):
    @extend_schema(
        operation_id="invitations_list",
        tags=[TAG],
        summary="List the invitations that are open.",
        parameters=[PageQuery],
        responses={200: objects.InvitationPageObject},
    )
    def get(self, request: Request, organization_id: str) -> Response:
        tenant = open_tenant(request, organization_id)
        page = page_of(
            tenant.open_invitations(),
            key=lambda each: each.pk.hex,
            present=objects.invitation_json,
            query=read_query(request.query_params, PageQuery),
            scope=["invitations", tenant.id.hex],
        )
        return Response(page)

    @extend_schema(
        operation_id="invitations_create",
        tags=[TAG],
        summary="Invite somebody by mail. An open invitation of the same address is replaced.",
        request=shapes.CreateInvitation,
        responses={201: objects.InvitationObject},
    )
    def post(self, request: Request, organization_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, shapes.CreateInvitation)
        access = access_of(request)
        role = values.get("workspace_role")
        invitation, token = create_invitation(
            access=access,
            organization_id=open_tenant(request, organization_id).id,
            new=NewInvitation(
                email=values["email"],
                role=OrganizationRole(values["role"]),
                workspace_id=values.get("workspace_id"),
                workspace_role=WorkspaceRole(role) if role else None,
            ),
        )
        link = request.build_absolute_uri(f"/invitation/{token}/")
        mail_invitation(invitation=invitation, link=link)
        return Response(objects.invitation_json(invitation, token), status=201)


class InvitationView(ApiView):
    @extend_schema(
        operation_id="invitations_revoke",
        tags=[TAG],
        summary="Revoke an invitation: its link is dead at once.",
        responses={204: None},
    )
    def delete(self, request: Request, organization_id: str, invitation_id: str) -> Response:
        access = access_of(request)
        revoke_invitation(
            access=access,
            organization_id=open_tenant(request, organization_id).id,
            invitation_id=id_in_path(Prefix.INVITATION, invitation_id),
        )
        return Response(status=204)


class ServiceAccountsView(ApiView):
    @extend_schema(
        operation_id="service_accounts_create",
        tags=[TAG],
        summary="Create a service account, which owns keys and outlives people.",
        request=shapes.CreateServiceAccount,
        responses={201: objects.MemberObject},
    )
    def post(self, request: Request, organization_id: str) -> Response:
        read_query(request.query_params, NoQuery)
        values = read_shape(request.data, shapes.CreateServiceAccount)
        access = access_of(request)
        tenant = open_tenant(request, organization_id)
        account = create_service_account(
            access=access,
            organization_id=tenant.id,
            name=values["name"],
            role=OrganizationRole(values["role"]),
        )
        membership = tenant.get_membership(account.public_id)
        return Response(objects.member_json(membership), status=201)


class ServiceAccountView(ApiView):
    @extend_schema(
        operation_id="service_accounts_remove",
        tags=[TAG],
        summary="Remove a service account: its keys are dead at once.",
        responses={204: None},
    )
    def delete(self, request: Request, organization_id: str, user_id: str) -> Response:
        access = access_of(request)
        remove_service_account(
            access=access,
            organization_id=open_tenant(request, organization_id).id,
            account_id=id_in_path(Prefix.USER, user_id),
        )
        return Response(status=204)


def _settings(tenant: Tenant) -> dict[str, object]:
    access: Access = tenant.access
    return objects.settings_json(tenant.organization, access.organizations[tenant.id])
