from orgs.models.api_key import ApiKey
from orgs.models.organization import Organization, OrganizationMembership
from orgs.models.user import User
from orgs.models.workspace import Workspace, WorkspaceMembership

__all__ = [
    "ApiKey",
    "Organization",
    "OrganizationMembership",
    "User",
    "Workspace",
    "WorkspaceMembership",
]
