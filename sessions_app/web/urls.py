"""Addresses of the app. Ids in them are public ones."""

from __future__ import annotations

from django.urls import path

from sessions_app.web import acts, pages

urlpatterns = [
    path("", pages.home),
    path("w/<str:workspace>/", pages.workspace),
    path("w/<str:workspace>/new/", pages.workspace, {"screen": "new"}),
    path("w/<str:workspace>/begin", acts.begin),
    path("w/<str:workspace>/draft", acts.workspace_draft),
    path("w/<str:workspace>/sidebar/", pages.sidebar),
    path("w/<str:workspace>/archived/", pages.archived),
    path("w/<str:workspace>/group/<str:group>/", pages.group),
    path("s/<str:session>/", pages.session),
    path("s/<str:session>/events/<int:seq>/", pages.event_text),
    path("s/<str:session>/live", acts.live),
    path("s/<str:session>/send", acts.send),
    path("s/<str:session>/stop", acts.stop),
    path("s/<str:session>/rename", acts.rename),
    path("s/<str:session>/pin", acts.pin),
    path("s/<str:session>/read", acts.read),
    path("s/<str:session>/archive", acts.archive),
    path("s/<str:session>/restore", acts.restore),
    path("s/<str:session>/draft", acts.session_draft),
]
