"""Every address at which the product tells of sessions, for the differential test.

Reads of the API come from its description: one row for each route, and one for each value of each
parameter. What is no route of the API is listed below. `{session}` is a shared one with children,
`{hidden}` the id of one that is another person's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

from drf_spectacular.generators import SchemaGenerator

STREAM = "/v1/sessions/{session_id}/events/stream"  # tests/streaming/test_strangers.py reads it
WORKSPACE_STREAM = "/v1/workspaces/{workspace_id}/stream"  # tests/streaming/test_workspace_sse.py
LIST = "/v1/sessions?workspace_id={workspace}"
PATHS = {
    "session_id": ("{session}", "{child}", "{hidden}"),
    "turn_id": ("{turn}", "{hidden_turn}"),
    "workspace_id": ("{workspace}", "{their_workspace}"),
    "agent_id": ("{agent}",),
    "organization_id": ("{organization}", "{their_organization}"),
}
# What each parameter is asked with, where the description does not list its values.
VALUES = {
    "workspace_id": ("{workspace}", "{their_workspace}", "{personal}"),
    "limit": ("1", "100"),
    "page": ("AAAA",),
    "agent_id": ("{agent}",),
    "folder_id": ("{folder}",),
    "created_at[gt]": ("{moment}",),
    "created_at[gte]": ("{moment}",),
    "created_at[lt]": ("{moment}",),
    "created_at[lte]": ("{moment}",),
    "end_user[id]": ("7&end_user[source]=shop",),
    "end_user[source]": ("shop&end_user[id]=8",),
    "forked_from": ("{session}", "{hidden}"),
    "parent_id": ("{session}", "{hidden}"),
    "include_archived": ("true",),
    "origin_type": ("work", "chat", "agent"),
    "pinned": ("true", "false"),
    "query": ("{marker}", "{prefix}", "{typo}", "{hidden}", "{marker}{marker}", "Harbour"),
    "statuses[]": ("idle", "running", "rescheduling", "terminated"),
    "after": ("0", "2"),
    "before": ("3",),
    "compact": ("true",),
    "types[]": ("user.message",),
    "actor_id": ("{person}", "{hidden}"),
    "target_id": ("{hidden}", "{workspace}"),
}
LISTED_MAX = 8
LISTS = (
    f"{LIST}&sort=archived&archived=only",
    f"{LIST}&sort=archived&archived=only&limit=1",
    f"{LIST}&sort=sidebar&limit=1",
    f"{LIST}&sort=name&limit=1&order=desc",
    f"{LIST}&sort=updated&limit=1&order=asc",
    f"{LIST}&sort=updated&limit=1&origin_type=chat",
    f"{LIST}&pinned=true&sort=sidebar",
    f"{LIST}&include_archived=true&limit=1",
    f"{LIST}&query={{prefix}}&archived=include&sort=updated",
    "/v1/sessions",
    "/v1/organizations/{organization}/sessions?include_archived=true&limit=1",
)
# Lists, searches and counts at which the maker of what is hidden is told of it.
TELLING = (
    LIST,
    *(f"{LIST}&sort={order}" for order in ("created", "updated", "sidebar", "name")),
    *(f"{LIST}&order={order}" for order in ("asc", "desc")),
    *(f"{LIST}&archived={which}" for which in ("exclude", "only", "include")),
    *(f"{LIST}&created_at[{bound}]={{moment}}" for bound in ("gt", "gte", "lt", "lte")),
    *(f"{LIST}&query={{{word}}}" for word in ("marker", "prefix", "hidden")),
    *(f"{LIST}&origin_type={kind}" for kind in ("work", "chat")),
    *(f"{LIST}&statuses[]={status}" for status in ("idle", "running")),
    *(f"{LIST}&pinned={flag}" for flag in ("true", "false")),
    f"{LIST}&agent_id={{agent}}",
    f"{LIST}&end_user[id]=7&end_user[source]=shop",
    f"{LIST}&forked_from={{session}}",
    f"{LIST}&parent_id={{hidden}}",
    f"{LIST}&include_archived=true",
    f"{LIST}&limit=1",
    *LISTS[:8],
    "/v1/inbox",
    "/v1/inbox?order=desc",
    "/v1/inbox?limit=1",
    "/v1/inbox?workspace_id={workspace}",
    *(
        f"/v1/sessions/{{hidden}}/{part}"
        for part in ("events", "turns", "queue", "pending", "children", "tree", "draft")
    ),
    *(f"/w/{{workspace}}/{part}" for part in ("", "new/", "sidebar/", "archived/")),
    *(
        f"/w/{{workspace}}/group/{group}/"
        for group in ("pinned", "active", "today", "yesterday", "week", "older")
    ),
    "/inbox/",
    "/inbox/count",
    "/kin/?id={session}&id={child}&id={hidden}&id={hidden_child}",
    "/s/{session}/",
    "/s/{hidden}/tree/",
    "/s/{hidden}/queue/",
)
PAGES = (
    "/",
    "/w/{workspace}/",
    "/w/{their_workspace}/",
    "/w/{personal}/",
    "/w/{workspace}/new/",
    "/w/{workspace}/sidebar/",
    "/w/{workspace}/archived/",
    "/w/{workspace}/archived/clean",
    "/w/{workspace}/group/pinned/",
    "/w/{workspace}/group/active/",
    "/w/{workspace}/group/today/",
    "/w/{workspace}/group/yesterday/",
    "/w/{workspace}/group/week/",
    "/w/{workspace}/group/older/",
    "/inbox/",
    "/inbox/count",
    "/account/organizations/{organization}/leave",
    "/account/workspaces/{workspace}/leave",
    "/kin/?id={session}&id={child}&id={hidden}&id={hidden_child}",
    "/owner/",
    *(
        f"/s/{{{session}}}/{page}"
        for session in ("session", "child", "fork", "hidden")
        for page in (
            "",
            "?before=3",
            "live?after=0",
            "events/1/",
            "children/",
            "tree/",
            "around/",
            "queue/",
            "cancel",
        )
    ),
)


@dataclass(frozen=True)
class Place:
    """Values for the braces."""

    values: dict[str, str]

    def fill(self, address: str) -> str:
        """Square brackets are as good as their escapes; a moment has a plus."""
        return re.sub(r"\{(\w+)\}", lambda found: quote(self.values[found[1]], safe=""), address)


@cache
def described() -> dict[str, list[dict[str, Any]]]:
    """The reads of the API's description, with their parameters."""
    schema = SchemaGenerator().get_schema(request=None, public=True)
    return {
        path: methods["get"].get("parameters", [])
        for path, methods in schema["paths"].items()
        if "get" in methods
    }


@cache
def reads() -> tuple[str, ...]:
    """Every address of the API, with each value of each of its parameters."""
    return (*_reads(), *LISTS)


def _reads() -> Iterator[str]:
    for path, parameters in described().items():
        if path in {STREAM, WORKSPACE_STREAM}:
            continue
        for place in _places(path):
            yield place
            for parameter in parameters:
                if parameter["in"] == "query":
                    sign = "&" if "?" in place else "?"
                    for value in _values(parameter):
                        yield f"{place}{sign}{parameter['name']}={value}"


def _places(path: str) -> list[str]:
    places = [path]
    for name, values in PATHS.items():
        places = [
            place.replace(f"{{{name}}}", value)
            for place in places
            for value in (values if f"{{{name}}}" in place else ("",))
        ]
    return [f"{LIST}" if place == "/v1/sessions" else place for place in places]


def _values(parameter: dict[str, Any]) -> tuple[str, ...]:
    """A parameter that is not known here fails: name what it is to be asked with in VALUES."""
    listed = parameter["schema"].get("enum")
    if listed and len(listed) > LISTED_MAX:  # the actions of the audit log
        return listed[0], listed[-1]
    return tuple(listed) if listed else VALUES[parameter["name"]]
