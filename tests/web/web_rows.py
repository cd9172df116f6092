"""Who gets which status at every address of the web app, and what is posted there.

The session is the second member's: `session` rests, `busy` has a turn that runs and a queued one,
`asking` waits for an approval and `asked` for an answer, `failed` ended so. A page is asked as a
browser does, an act as our scripts do, so that a refusal has its own status.
"""

from __future__ import annotations

from dataclasses import dataclass, field

COLUMNS = (
    "owner",
    "admin",
    "bare_admin",
    "second_member",
    "member",
    "viewer",
    "outsider",
    "nobody",
)


def page(people: str) -> str:
    return f"{people} 302"


def act(people: str) -> str:
    return f"{people} 401"


READ = page("200 200 404 200 200 200 404")
HOME = page("302 302 302 302 302 302 302")
OF_MEMBERS = page("200 200 200 200 200 200 404")
LEAVE = act("409 302 302 302 302 302 404")
THEIRS = page("200 200 200 200 200 200 200")
CONTROL = act("200 200 404 200 200 403 404")
ADMINISTERED = act("200 200 404 200 403 403 404")
MAKERS = act("403 403 404 200 403 403 404")
OWN = act("200 200 404 200 200 200 404")
WRONG = act("400 400 400 400 400 400 400")
FORM = act("302 302 302 302 302 302 302")


@dataclass(frozen=True)
class Row:
    method: str
    route: str
    expected: str
    data: dict[str, str] = field(default_factory=dict)
    at: str = "session"  # whose id stands for <str:session>
    is_part: bool = False  # of a page: asked as a page, it leads to one


_WORKSPACE, _SESSION = "w/<str:workspace>/", "s/<str:session>/"
_TURN = f"{_SESSION}queue/<str:turn>/"
_VERSION = {"expected_version": "{version}"}

ROWS = (
    Row("GET", "", HOME),
    Row("GET", _WORKSPACE, READ),
    Row("GET", f"{_WORKSPACE}new/", READ),
    Row("POST", f"{_WORKSPACE}begin", CONTROL, {"text": "Hello", "key": "k1"}),
    Row("POST", f"{_WORKSPACE}draft", CONTROL, {"text": "Dear", "revision": "0"}),
    Row("GET", f"{_WORKSPACE}sidebar/", READ),
    Row("GET", f"{_WORKSPACE}archived/", READ),
    Row("GET", f"{_WORKSPACE}archived/clean", page("200 200 404 200 200 403 404")),
    Row("POST", f"{_WORKSPACE}archived/clean", CONTROL, {"confirm": "0"}),
    Row("GET", f"{_WORKSPACE}group/<str:group>/", READ),
    Row("POST", f"{_WORKSPACE}folders", CONTROL, {"name": "Tides"}),
    Row("POST", f"{_WORKSPACE}folders/<str:folder>", CONTROL, {"name": "Moon"}),
    Row("POST", f"{_WORKSPACE}folders/<str:folder>/delete", CONTROL),
    Row("POST", f"{_WORKSPACE}fold", OWN, {"group": "today", "folded": "1"}),
    Row("POST", f"{_SESSION}move", CONTROL, {"folder": "{folder}"}),
    Row("GET", "account/", THEIRS),
    Row(
        "POST", "account/password", act("400 400 400 400 400 400 400"), {"current": "x", "new": "y"}
    ),
    Row("POST", "account/logins/others/end", FORM),
    Row("POST", "account/logins/all/end", FORM),
    Row("POST", "account/logins/<str:login>/end", act("404 404 404 404 404 404 404")),
    Row("GET", "account/organizations/<str:organization>/leave", OF_MEMBERS),
    Row("POST", "account/organizations/<str:organization>/leave", LEAVE),
    Row("GET", "account/workspaces/<str:workspace>/leave", READ),
    Row("POST", "account/workspaces/<str:workspace>/leave", act("302 302 404 302 302 302 404")),
    Row("GET", "inbox/", THEIRS),
    Row("GET", "inbox/count", THEIRS),
    Row("POST", f"{_SESSION}waits/<str:event>/confirm", CONTROL, {"decision": "allow"}, "asking"),
    Row("POST", f"{_SESSION}waits/<str:event>/answer", CONTROL, {"do": "skip"}, "asked"),
    Row("GET", "kin/", THEIRS),
    Row("GET", _SESSION, READ),
    Row("GET", f"{_SESSION}events/<int:seq>/", READ),
    Row("GET", f"{_SESSION}live", READ),
    Row("POST", f"{_SESSION}send", CONTROL, {"text": "Hello", "key": "k2"}),
    Row("POST", f"{_SESSION}stop", CONTROL, {}, "busy"),
    Row("POST", f"{_SESSION}pause", CONTROL),
    Row("POST", f"{_SESSION}resume", CONTROL),
    Row("POST", f"{_SESSION}retry", CONTROL, {"turn": "{turn}"}, "failed"),
    Row("GET", f"{_SESSION}cancel", page("200 200 404 200 403 403 404")),
    Row("POST", f"{_SESSION}cancel", ADMINISTERED),
    Row("POST", f"{_SESSION}fork", CONTROL, {"seq": "3"}),
    Row("GET", f"{_SESSION}children/", READ, is_part=True),
    Row("GET", f"{_SESSION}tree/", READ),
    Row("GET", f"{_SESSION}around/", READ),
    Row("GET", f"{_SESSION}queue/", READ),
    Row("POST", f"{_TURN}edit", CONTROL, _VERSION, "busy"),
    Row("POST", f"{_TURN}move", CONTROL, {**_VERSION, "position": "1"}, "busy"),
    Row("POST", f"{_TURN}delete", CONTROL, _VERSION, "busy"),
    Row("POST", f"{_TURN}promote", CONTROL, _VERSION, "busy"),
    Row("POST", f"{_SESSION}rename", CONTROL, {"title": "Tides"}),
    Row("POST", f"{_SESSION}pin", OWN, {"pinned": "1"}),
    Row(
        "POST",
        f"{_SESSION}visibility",
        act("403 403 404 200 403 403 404"),
        {"visibility": "workspace"},
    ),
    Row("POST", f"{_SESSION}read", OWN, {"seq": "1"}),
    Row("POST", f"{_SESSION}archive", CONTROL),
    Row("POST", f"{_SESSION}restore", CONTROL),
    Row("POST", f"{_SESSION}draft", OWN, {"text": "Dear", "revision": "0"}),
)
