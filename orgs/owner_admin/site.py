"""The site at /owner/.

It is an AdminSite with pages of its own and no registered models. Django's generic admin asks a
model's unscoped manager in many places beside the list: relation fields, autocomplete, list
filters, lookups in addresses, histories, bulk actions. Here no such place exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from django.contrib.admin import AdminSite
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, path

from orgs.owner_admin.guard import View, for_administrators
from orgs.owner_admin.pages import administered
from orgs.owner_admin.views import (
    audit,
    invitations,
    keys,
    members,
    organization,
    service_accounts,
    workspaces,
)
from orgs.principals import access_for_user

ROUTES: dict[str, View] = {
    "": organization.home,
    "members/": members.members,
    "members/<user>/": members.member,
    "members/<user>/remove/": members.remove,
    "invitations/": invitations.invitations,
    "invitations/new/": invitations.new,
    "invitations/<invitation>/revoke/": invitations.revoke,
    "service-accounts/": service_accounts.service_accounts,
    "service-accounts/new/": service_accounts.new,
    "service-accounts/<user>/remove/": service_accounts.remove,
    "workspaces/": workspaces.workspaces,
    "workspaces/new/": workspaces.new,
    "workspaces/<workspace>/": workspaces.workspace,
    "workspaces/<workspace>/members/": workspaces.set_member,
    "workspaces/<workspace>/members/<user>/remove/": workspaces.remove_member,
    "keys/": keys.keys,
    "keys/new/": keys.new,
    "keys/<key>/rotate/": keys.rotate,
    "keys/<key>/revoke/": keys.revoke,
    "settings/": organization.settings_,
    "settings/only-me/": organization.switch_only_me,
    "audit/": audit.audit,
    "audit/export/": audit.export,
}


class OwnerSite(AdminSite):
    """`routes`: pages of higher rooms join ours by `add`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.routes = dict(ROUTES)

    def add(self, routes: Mapping[str, View]) -> None:
        self.routes |= routes

    def register(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ImproperlyConfigured(
            "The owner's admin takes no models: write a page that begins at the tenant."
        )

    def has_permission(self, request: HttpRequest) -> bool:
        if not request.user.is_authenticated:
            return False
        return bool(administered(access_for_user(request.user)))

    def get_urls(self) -> list[URLResolver | URLPattern]:
        pages = [
            path(f"<organization>/{route}", for_administrators(view))
            for route, view in self.routes.items()
        ]
        return [path("", organization.choose), *pages]

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        return self.get_urls(), "owner", self.name


owner_site = OwnerSite(name="owner")
