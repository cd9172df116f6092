"""Cleaning the archive: a question that names the number, and its answer."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from core.api.paths import id_in_path
from core.errors import Conflict
from core.ids import Prefix
from orgs.access import Access
from sessions_app.services.cleaning import clean_archive, count_cleanable
from sessions_app.web.shell import done, for_people, posted_number, theme


@require_http_methods(["GET", "POST"])
@for_people
def clean(request: HttpRequest, workspace: str, *, access: Access) -> HttpResponseBase:
    """GET asks; POST erases, or asks anew where the number has changed since."""
    workspace_id = id_in_path(Prefix.WORKSPACE, workspace)
    problem = ""
    if request.method == "POST":
        try:
            number = posted_number(request, "confirm")
            removed = clean_archive(
                access=access, workspace_id=workspace_id, confirm=-1 if number is None else number
            )
            return done(request, f"/w/{workspace}/archived/", removed=len(removed))
        except Conflict:
            problem = "The archive has changed meanwhile. Look at the number again."
    context = {
        "theme": theme(request),
        "workspace_id": workspace,
        "workspace_name": access.grants[workspace_id].name if workspace_id in access.grants else "",
        "count": count_cleanable(access=access, workspace_id=workspace_id),
        "problem": problem,
    }
    return render(request, "clean.html", context, status=409 if problem else 200)
