"""Addresses of signing in and out."""

from __future__ import annotations

from django.urls import path

from orgs.web import invitations, resetting, views

urlpatterns = [
    path("sign-in/", views.sign_in),
    path("sign-out/", views.sign_out),
    path("invitation/<token>/", invitations.invitation),
    path("password-reset/", resetting.ask),
    path("password-reset/<str:person>/<str:token>/", resetting.choose),
    # Before the administration's own, which would count no wrong passwords.
    path("admin/login/", views.operators_sign_in),
    path("admin/password_change/", views.own_password),
]
