"""The front door: which room answers which path."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from config import health

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.metrics),
    path("admin/", admin.site.urls),
    path("v1/", include("sessions_app.api.urls")),
    path("", include("orgs.web.urls")),
    path("", include("sessions_app.web.urls")),
]
