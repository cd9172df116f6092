"""What one keeps for oneself: found by nobody, shown when shared, and nobody's when one is gone."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from core.ids import Prefix, encode_id, uuid7
from orgs.models import User
from sessions_app.domain.vocabulary import Visibility
from sessions_app.models import Session
from sessions_app.services.visibility import set_visibility
from tests.api.callers import secrets_of_keys
from tests.api.client import Caller, refusal
from tests.api.matrix_rows import KEYS, PEOPLE
from tests.factories import Cast, make_session
from tests.services.test_children import allow_private, make_child, work
from tests.statements import statements

WORD = "quincunx"
SEARCHES = (WORD, WORD[:5], WORD.upper(), WORD[:3] + WORD[4:], f"{WORD} in a prompt")
STRANGERS = ("second_member", "admin", "owner", "viewer", "workspace_key", "organization_key")


@pytest.fixture
def kept(cast: Cast) -> Session:
    """The word stands in its title, its metadata, its prompt and its answer, and in its child."""
    allow_private(cast)
    private = Visibility.PRIVATE
    session = make_session(cast, title=WORD, metadata={"of": WORD}, visibility=private)
    work(cast, session, f"{WORD} in an answer")
    make_child(cast, session, title=WORD)
    return session


def found(caller: Caller, cast: Cast, query: str, **more: str) -> list[str]:
    parameters = "".join(f"&{name}={value}" for name, value in more.items())
    path = f"/v1/sessions?workspace_id={cast.workspace.public_id}&query={quote(query)}{parameters}"
    body = caller.get(path).json()
    assert body.keys() == {"data", "next_page", "has_more"}  # no total, no facet
    assert (body["next_page"], body["has_more"]) == (None, False)
    return [row["id"] for row in body["data"]]


def nothing_like(query: str) -> str:
    """Of the same kind, and it stands nowhere."""
    is_id = query.startswith("ses_")
    return encode_id(Prefix.SESSION, uuid7()) if is_id else f"zzz{query[3:]}"


@pytest.mark.parametrize("name", STRANGERS)
def test_no_search_finds_it_until_it_is_shared_and_none_after(
    cast: Cast, kept: Session, name: str
) -> None:
    """BR-089."""
    caller, maker = Caller(cast, name), Caller(cast, "member")
    caller.get("/v1/workspaces")
    for query in (*SEARCHES, kept.public_id):
        with statements() as hit:
            assert found(caller, cast, query) == []
        with statements() as miss:
            assert found(caller, cast, nothing_like(query)) == []
        assert hit == miss
        assert found(caller, cast, query, archived="include", origin_type="work") == []
    assert found(maker, cast, WORD) == [kept.public_id]
    access = cast.access("member")
    set_visibility(access=access, session_id=kept.pk, visibility=Visibility.WORKSPACE)
    for query in (WORD, WORD[:5], WORD.upper(), kept.public_id):
        assert found(caller, cast, query) == [kept.public_id]
    set_visibility(access=access, session_id=kept.pk, visibility=Visibility.PRIVATE)
    for query in (*SEARCHES, kept.public_id):
        assert found(caller, cast, query) == []


def reads(session: Session) -> tuple[str, ...]:
    base = f"/v1/sessions/{session.public_id}"
    parts = ("", "/events", "/turns", "/queue", "/pending", "/children", "/tree", "/draft")
    return tuple(base + part for part in parts)


def others(cast: Cast) -> dict[str, Caller]:
    secrets = secrets_of_keys(cast)
    keys = {name: secrets.get(name) or getattr(cast, name).secret for name in KEYS}
    callers = {name: Caller(cast, name) for name in PEOPLE if name != "member"}
    bearers = {name: f"Bearer {secret}" for name, secret in keys.items()}
    return callers | {name: Caller(cast, authorization=b) for name, b in bearers.items()}


def test_without_its_maker_it_is_nobodys(cast: Cast, kept: Session) -> None:
    """BR-083: neither an admin's nor a key's, though both have no person in that column."""
    child = kept.children.get()
    User.objects.get(pk=cast.member.pk).delete()
    for session in (kept, child):
        session.refresh_from_db()
        assert (session.maker_id, session.visibility) == (None, Visibility.PRIVATE)
    callers = others(cast)
    for name, caller in callers.items():
        for path in (*reads(kept), *reads(child)):
            answer: Any = caller.get(path)
            assert refusal(answer) == (404, "not_found", None), (name, path)
        if name not in {"outsider", "bare_admin", "bare_key"}:  # they see no such workspace
            assert found(caller, cast, WORD, archived="include") == [], name
        assert WORD not in caller.get("/v1/inbox").content.decode()
    inventory = callers["owner"].get(
        f"/v1/organizations/{cast.organization.public_id}/sessions?include_archived=true"
    )
    assert kept.public_id not in inventory.content.decode()


def test_a_row_without_an_owner_is_nobodys_however_it_came_to_be(cast: Cast) -> None:
    """BR-083: as of rows that a fault or a restored table left so."""
    session = make_session(cast)
    Session.objects.filter(pk=session.pk).update(
        maker=None, maker_key=None, visibility=Visibility.PRIVATE
    )
    for name, caller in others(cast).items():
        for path in reads(session):
            assert refusal(caller.get(path)) == (404, "not_found", None), (name, path)
