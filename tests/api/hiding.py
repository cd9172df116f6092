"""A workspace with shared sessions of each kind, and what one person keeps there for oneself."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from core.clock import now, rfc3339
from core.ids import Prefix, encode_id, uuid7
from orgs.access import Access
from sessions_app.domain.end_user import EndUser
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Session
from sessions_app.services.archiving import archive_session, delete_session
from sessions_app.services.composer_drafts import save_draft
from sessions_app.services.forking import ForkRequest, fork_session
from sessions_app.services.personal import set_pinned
from sessions_app.services.sessions import NewSession, create_session
from sessions_app.services.visibility import set_visibility
from tests.api.surfaces import Place
from tests.factories import Cast, claim, make_session, send
from tests.services.test_children import allow_private, make_child, work
from tests.services.test_waits import Asking

PRIVATE = Visibility.PRIVATE
SHOPPER = EndUser("shop", "7")


def age(session: Session, **ago: float) -> Session:
    """As if it had been made that long ago, so that all groups of a list are in use."""
    moment = now() - timedelta(**ago)
    rows = Session.objects.filter(pk=session.pk)
    rows.update(created_at=moment, activity_at=moment)
    rows.filter(archived_at__isnull=False).update(archived_at=moment)
    return session


class Workspace:
    """The shared part: what strangers see, whatever else there is."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.moment = rfc3339(now() - timedelta(hours=5)) or ""
        allow_private(cast)
        self.session = make_session(cast, title="Harbour", end_user=SHOPPER)
        work(cast, self.session)
        self.child = make_child(cast, self.session, title="Cranes")
        asking = Asking(cast, self.session)
        asking.approval()
        asking.suspend()
        self.fork = self._fork()
        coast = make_session(cast, by="second_member", title="Coast")
        tides = make_session(cast, title="Tides", origin={"type": "chat"}, end_user=SHOPPER)
        dunes, kelp = (make_session(cast, title=title) for title in ("Dunes", "Kelp"))
        archive_session(access=self.maker, session_id=dunes.pk)
        archive_session(access=self.maker, session_id=kelp.pk)
        for name in ("second_member", "owner"):
            set_pinned(access=cast.access(name), session_id=coast.pk, pinned=True)
        for session, hours in zip(
            (self.session, self.fork, coast, tides, dunes, kelp),
            (1, 3, 30, 80, 90, 400),
            strict=True,
        ):
            age(session, hours=hours)

    @property
    def maker(self) -> Access:
        return self.cast.access("member")

    def _fork(self) -> Session:
        return fork_session(access=self.maker, session_id=self.session.pk, fork=ForkRequest())

    def place(self, hidden: Hidden) -> Place:
        cast, session = self.cast, self.session
        named = {
            "session": session,
            "child": self.child,
            "fork": self.fork,
            "turn": session.turns.earliest("number"),
            "workspace": cast.workspace,
            "their_workspace": cast.other_workspace,
            "personal": cast.member.personal_workspaces.get(organization=cast.organization),
            "organization": cast.organization,
            "their_organization": cast.other_organization,
            "provider_id": cast.organization.providers.earliest("pk"),
            "person": cast.member,
        }
        values = {name: each.public_id for name, each in named.items()}
        values["agent"] = encode_id(Prefix.AGENT, session.agent_id)
        values["folder"] = encode_id(Prefix.FOLDER, self.session.folder_id or session.pk)
        values["moment"] = self.moment
        return Place(values | hidden.values)


@dataclass
class Hidden:
    """What one person keeps: by its id alone, until it is made."""

    word: str
    session_id: str
    child_id: str
    turn_id: str

    @property
    def values(self) -> dict[str, str]:
        word = self.word
        return {
            "hidden": self.session_id,
            "hidden_child": self.child_id,
            "hidden_turn": self.turn_id,
            "marker": word,
            "prefix": word[:6],
            "typo": word[:3] + word[4:],
        }

    @classmethod
    def to_be(cls) -> Hidden:
        """Ids of nothing."""
        ids = [encode_id(each, uuid7()) for each in (Prefix.SESSION, Prefix.SESSION, Prefix.TURN)]
        return cls(f"m{uuid.uuid4().hex}", *ids)

    def make(self, workspace: Workspace) -> list[Session]:
        """The word is in titles, messages, metadata, drafts, calls; one asks, one runs, one waits
        in the queue; below, in the archive, in another partition, forked, pinned.
        """
        cast, maker, word = workspace.cast, workspace.maker, self.word

        def keep(**fields: Any) -> Session:
            fields = {"title": word, "metadata": {"of": word}, **fields}
            return make_session(cast, visibility=PRIVATE, **fields)

        asking = Asking(cast, keep(end_user=SHOPPER))
        child = make_child(cast, asking.session, title=word)
        asking.approval(f"probe.{word}")
        asking.question()
        asking.suspend()
        running = keep()
        send(cast, running, word)
        claim()
        send(cast, child, word)
        forked = workspace._fork()
        set_visibility(access=maker, session_id=forked.pk, visibility=PRIVATE)
        other, archived = keep(origin={"type": "chat"}), keep()
        archive_session(access=maker, session_id=archived.pk)
        personal = cast.member.personal_workspaces.get(organization=cast.organization)
        own = create_session(access=maker, new=NewSession(workspace_id=personal.pk, title=word))
        send(cast, own, word)
        roots = [asking.session, running, forked, other, archived, own]
        for hours, session in enumerate(roots[:-1]):
            age(session, hours=2 + hours * 29)
        set_pinned(access=maker, session_id=running.pk, pinned=True)
        for session_id in (asking.session.pk, None):
            save_draft(
                access=maker,
                workspace_id=cast.workspace.pk,
                session_id=session_id,
                text=word,
                expected_revision=0,
            )
        self.session_id, self.child_id = asking.session.public_id, child.public_id
        self.turn_id = asking.session.turns.get().public_id
        return roots


def erase(workspace: Workspace, sessions: list[Session]) -> None:
    for session in sessions:
        delete_session(access=workspace.maker, session_id=session.pk, stop=True)


# Each of these is a request's own by its nature, and tells of nothing that is stored: its id, a
# fresh mask over the CSRF token, the word with which a form is sent once, the limit that this
# very request counted against, when the answer was made, how long ago something was by then, and
# when the key was used last, which these requests do. What a body's length tells, the body does.
_ONES_OWN = re.compile(
    r"(?P<kept>name=\"(?:csrfmiddlewaretoken|key|once)\" value=\"|data-as=\\?\"age\\?\">"
    r"|csrf(?:-token)?\\?\"? (?:content|value)=\\?\"|data-csrf=\\?\")"
    r"(?:\w{64}|[0-9a-f]{16,32}|now|\d+[smhdw])"
    r"|req_\w+|(?<=\"last_used_at\":\")[^\"]+"
)
_OWN_HEADERS = frozenset(
    {
        "request-id",
        "x-request-id",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "content-length",
        "expires",
        "last-modified",
    }
)


def bytes_of(answer: Any, hidden: Hidden) -> str:
    """An answer as one text. Ids that the address named are the same in every run."""
    body = b"".join(answer) if answer.streaming else answer.content
    headers = sorted((k, v) for k, v in answer.headers.items() if k.lower() not in _OWN_HEADERS)
    text = f"{answer.status_code}\n{headers}\n{body.decode()}"
    for number, public_id in enumerate((hidden.session_id, hidden.child_id, hidden.turn_id)):
        text = text.replace(public_id, f"({number})")
    return _ONES_OWN.sub(lambda found: f"{found['kept'] or ''}·", text)
