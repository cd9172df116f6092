"""Forking on pages: from a message's menu, and what a page says of its session's kin."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_POST

from core.api.paths import id_in_path
from core.ids import Prefix
from orgs.access import Access
from orgs.roles import Action
from sessions_app.models import Session
from sessions_app.selectors import find_fork_source, list_forks
from sessions_app.services.forking import ForkRequest, fork_session
from sessions_app.web.naming import display_title, note_first_words
from sessions_app.web.regions import may
from sessions_app.web.shell import done, for_people, posted_number

FORKS_SHOWN = 5


@require_POST
@for_people
def fork(request: HttpRequest, session: str, *, access: Access) -> HttpResponseBase:
    """From a message on; or, with `before_seq`, without that prompt, whose text is the draft."""
    before = posted_number(request, "before_seq")
    wanted = ForkRequest(
        posted_number(request, "from_seq") if before is None else before,
        include=before is None,
        keep_draft=before is not None,
    )
    session_id = id_in_path(Prefix.SESSION, session)
    made = fork_session(access=access, session_id=session_id, fork=wanted)
    return done(request, f"/s/{made.public_id}/#end", session=made.public_id)


def kinship(access: Access, session: Session) -> dict[str, Any]:
    """Where it was forked from and what was forked from it, as far as the reader may see it."""
    source = find_fork_source(access=access, session=session)
    forks = list(list_forks(access=access, session=session)[:FORKS_SHOWN])
    note_first_words(forks)
    return {
        "may_fork": may(access, Action.SESSION_CREATE, session),
        "source": source,
        "source_title": display_title(source) if source else "",
        "forks": [{"id": made.public_id, "title": display_title(made)} for made in forks],
    }
