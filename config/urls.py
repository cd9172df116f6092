"""The front door: which room answers which path."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from catalog.owner_admin.routes import ROUTES as PAGES_OF_THE_CATALOGUE
from config import health
from orgs.owner_admin.site import owner_site
from sessions_app.api.openapi import docs_view

owner_site.add(PAGES_OF_THE_CATALOGUE)

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.metrics),
    # Before the administration: its own sign-in is not used.
    path("", include("orgs.web.urls")),
    path("admin/", admin.site.urls),
    path("owner/", owner_site.urls),
    path("docs", docs_view),
    path("v1/", include("sessions_app.api.urls")),
    path("", include("sessions_app.web.urls")),
]

# JSON under the API, pages elsewhere.
handler400 = "core.api.errors.bad_request"
handler403 = "core.api.errors.permission_denied"
handler404 = "core.api.errors.page_not_found"
handler500 = "core.api.errors.server_error"
