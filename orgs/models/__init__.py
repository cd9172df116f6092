from orgs.models.api_key import ApiKey
from orgs.models.audit import AuditEntry
from orgs.models.invitation import Invitation
from orgs.models.login import Login
from orgs.models.organization import Organization, OrganizationMembership
from orgs.models.user import User
from orgs.models.workspace import Workspace, WorkspaceMembership

__all__ = [
    "ApiKey",
    "AuditEntry",
    "Invitation",
    "Login",
    "Organization",
    "OrganizationMembership",
    "User",
    "Workspace",
    "WorkspaceMembership",
]
