"""Addresses of signing in and out."""

from __future__ import annotations

from django.urls import path

from orgs.web import invitations, views

urlpatterns = [
    path("sign-in/", views.sign_in),
    path("sign-out/", views.sign_out),
    path("invitation/<token>/", invitations.invitation),
]
