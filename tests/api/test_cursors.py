"""Cursors are positions and nothing else: bent in any way they show no row of others (BR-123)."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from django.test import Client

from core.ids import Prefix, encode_id
from orgs.services.invitations import NewInvitation, create_invitation
from orgs.services.members import remove_organization_member
from orgs.services.workspaces import create_shared_workspace
from sessions_app.models import Session
from sessions_app.services.personal import set_pinned
from tests.api.client import Caller, refusal
from tests.api.hiding import Hidden, Workspace
from tests.api.surfaces import Place, described
from tests.factories import Cast, make_session, send
from tests.orgs.owner_rows import two_houses
from tests.services.test_children import make_child
from tests.services.test_waits import Asking

LIST = "/v1/sessions?workspace_id={workspace}"
# Every list that has pages, asked by the admin of the organization.
PAGED = (
    LIST,
    *(f"{LIST}&sort={sort}" for sort in ("updated", "sidebar", "name")),
    f"{LIST}&sort=archived&archived=only",
    f"{LIST}&pinned=true&sort=sidebar",
    "/v1/sessions/{session}/children",
    "/v1/sessions/{session}/events",
    "/v1/sessions/{session}/events?order=desc",
    "/v1/sessions/{session}/turns",
    "/v1/sessions/{session}/pending",
    "/v1/inbox",
    "/v1/inbox?order=desc",
    "/v1/models",
    "/v1/workspaces",
    "/v1/workspaces/{workspace}/members",
    "/v1/organizations",
    "/v1/organizations/{organization}/members",
    "/v1/organizations/{organization}/invitations",
    "/v1/organizations/{organization}/api_keys",
    "/v1/organizations/{organization}/providers",
    "/v1/organizations/{organization}/audit",
    "/v1/organizations/{organization}/sessions",
)
# Of these the admin has one row.
SHORT = ("/v1/organizations", "/v1/sessions/{session}/pending")
EXTREMES = (
    "9999-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00Z",
    "f" * 32,
    "0" * 32,
    "",
    2**63,
    -1,
    0,
    None,
    [],
)


@pytest.fixture
def stage(cast: Cast) -> tuple[Place, list[str]]:
    """Two of everything here, and ids and words of what is not for the admin to see."""
    two_houses(cast)
    workspace, hidden = Workspace(cast), Hidden.to_be()
    furnish(cast, workspace.session)
    made = hidden.make(workspace)
    theirs = make_session(cast, by="outsider", workspace_id=cast.other_workspace.pk, title="theirs")
    send(cast, theirs, by="outsider")
    foreign = [hidden.word, "theirs", *(each.public_id for each in (*made, theirs))]
    foreign += [cast.other_workspace.public_id, cast.other_organization.public_id]
    return workspace.place(hidden), foreign


def furnish(cast: Cast, session: Session) -> None:
    owner, organization_id = cast.access("owner"), cast.organization.pk
    make_child(cast, session)
    asking = Asking(cast)
    for _ in "ab":
        asking.approval()
    asking.suspend()
    for session_id in (session.pk, asking.session.pk):
        set_pinned(access=cast.access("admin"), session_id=session_id, pinned=True)
    new = NewInvitation("greta@example.test")
    create_invitation(access=owner, organization_id=organization_id, new=new)
    for name in ("Survey", "Tides"):
        create_shared_workspace(access=owner, organization_id=organization_id, name=name)


def page_of(address: str, cursor: str = "", limit: int = 1) -> str:
    sign = "&" if "?" in address else "?"
    return f"{address}{sign}limit={limit}" + (f"&page={cursor}" if cursor else "")


def decoded(cursor: str) -> list[Any]:
    return list(orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))))


def encoded(parts: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(parts)).rstrip(b"=").decode()


def bent(parts: list[Any], foreign: list[str]) -> Iterator[list[Any]]:
    """Each part but the digest replaced by what is foreign or extreme, and the shape changed."""
    ids = [each.partition("_")[2] for each in foreign if "_" in each]
    for place in range(1, len(parts)):
        for value in (*ids, *EXTREMES):
            yield [*parts[:place], value, *parts[place + 1 :]]
    yield parts[:-1]
    yield [*parts, 1]
    yield ["0" * len(str(parts[0])), *parts[1:]]


def test_every_list_of_the_api_with_pages_has_a_row() -> None:
    paged = {path for path, of in described().items() if any(p["name"] == "page" for p in of)}
    rows = {re.sub(r"\{\w+\}", "·", address.partition("?")[0]) for address in PAGED}
    assert {re.sub(r"\{\w+\}", "·", path) for path in paged} == rows


@pytest.mark.parametrize("address", PAGED)
def test_a_bent_cursor_shows_no_row_of_others(cast: Cast, stage: Any, address: str) -> None:
    place, foreign = stage
    caller, at = Caller(cast, "admin"), place.fill(address)
    first = caller.get(page_of(at))
    whole = caller.get(page_of(at, limit=100)).json()["data"]
    cursor = first.json()["next_page"]
    if address in SHORT:
        return
    assert cursor, address
    taken = 0
    for parts in bent(decoded(cursor), foreign):
        answer = caller.get(page_of(at, encoded(parts), limit=100))
        if answer.status_code != 200:
            assert refusal(answer)[0] == 400, parts
            continue
        taken += 1
        text = answer.content.decode()
        assert [word for word in foreign if word in text] == [], parts
        assert all(row in whole for row in answer.json()["data"]), parts
    assert taken or "models" in address


@pytest.mark.parametrize("address", PAGED)
def test_a_cursor_is_good_in_its_own_list_alone(cast: Cast, stage: Any, address: str) -> None:
    """Not in another tenant's, another workspace's, another session's, nor under other filters."""
    place, _ = stage
    cursor = Caller(cast, "admin").get(page_of(place.fill(address))).json()["next_page"]
    if cursor is None:
        return
    theirs = {
        "workspace": cast.other_workspace.public_id,
        "organization": cast.other_organization.public_id,
        "session": encode_id(Prefix.SESSION, Session.objects.get(title="theirs").pk),
    }
    outsider = Caller(cast, "outsider")
    answer = outsider.get(page_of(Place(place.values | theirs).fill(address), cursor))
    if "{" in address:
        assert refusal(answer) == (400, "cursor_of_another_query", "page")
    else:  # a list of one's own, wherever one is: the position alone counts
        assert answer.status_code in {200, 400}
        assert cast.workspace.public_id not in answer.content.decode()


@pytest.mark.parametrize("address", PAGED)
def test_who_loses_access_between_two_pages_sees_no_more(
    cast: Cast, stage: Any, address: str
) -> None:
    place, _ = stage
    caller = Caller(cast, "admin")
    cursor = caller.get(page_of(place.fill(address))).json()["next_page"] or ""
    remove_organization_member(
        access=cast.access("owner"), organization_id=cast.organization.pk, user_id=cast.admin.pk
    )
    answer = caller.get(page_of(place.fill(address), cursor))
    if answer.status_code == 200:
        assert answer.json()["data"] == []
    else:
        assert refusal(answer)[0] in {400, 404}


@pytest.mark.parametrize(
    "address",
    ["/w/{workspace}/group/today/?cursor=", "/w/{workspace}/archived/?page=", "/inbox/?page="],
)
def test_a_bent_cursor_of_a_page_shows_no_row_of_others(
    cast: Cast, stage: Any, address: str
) -> None:
    place, foreign = stage
    for number in range(60):
        session = make_session(cast, title=f"Row {number}")
        if "archived" in address:
            Session.objects.filter(pk=session.pk).update(archived_at=session.created_at)
        if "inbox" in address and number < 25:
            asking = Asking(cast, session)
            asking.approval()
            asking.suspend()
    browser = Client(raise_request_exception=False)
    browser.force_login(cast.admin)
    base = place.fill(address.partition("?")[0])
    name = address.partition("?")[2].rstrip("=")
    cursors = re.findall(rf"{name}=([\w-]+)", browser.get(base).content.decode())
    assert cursors
    for parts in bent(decoded(cursors[0]), foreign):
        answer = browser.get(f"{base}?{name}={encoded(parts)}", headers={"x-fragment": "1"})
        assert answer.status_code in {200, 400}, parts
        text = answer.content.decode()
        assert [word for word in foreign if word in text] == [], parts
    other = place.fill(address.replace("{workspace}", "{their_workspace}"))
    if other != place.fill(address):
        outsider = Client()
        outsider.force_login(cast.outsider)
        assert outsider.get(f"{other}{cursors[0]}").status_code == 400
