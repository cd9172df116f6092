"""What changes organizations, members and keys. Each change of a grant moves the access epoch."""

from orgs.services.keys import create_api_key, revoke_api_key
from orgs.services.members import (
    add_organization_member,
    add_workspace_member,
    create_user,
    remove_workspace_member,
)
from orgs.services.organizations import create_organization, create_workspace

__all__ = [
    "add_organization_member",
    "add_workspace_member",
    "create_api_key",
    "create_organization",
    "create_user",
    "create_workspace",
    "remove_workspace_member",
    "revoke_api_key",
]
