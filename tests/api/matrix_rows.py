"""Who gets which status, on every route under /v1, and what is sent there."""

from __future__ import annotations

from typing import Any

# The session is the second member's. Without another word a key is of the workspace and the
# owner's: `action_key` names one action, `service_key` is of a service account that is a member
# there, whoever made `demoted_key` only reads by now, and whoever made `removed_key` left.
# The bare admin has no role in the workspace; the bare key is of the organization and theirs.
PEOPLE = ("owner", "admin", "bare_admin", "second_member", "member", "viewer", "outsider")
KEYS = (
    "workspace_key",
    "organization_key",
    "bare_key",
    "read_only_key",
    "write_key",
    "action_key",
    "organization_read_key",
    "service_key",
    "demoted_key",
)
DEAD_KEYS = ("expired_key", "revoked_key", "removed_key")
COLUMNS = (*PEOPLE, *KEYS, *DEAD_KEYS, "nobody")


def row(people: str, keys: str) -> str:
    return f"{people} {keys}" + " 401" * (len(DEAD_KEYS) + 1)


READ = row("200 200 404 200 200 200 404", "200 200 404 200 200 200 200 200 200")
CONTROL = row("200 200 404 200 200 403 404", "200 200 404 403 200 403 403 200 403")
ADMINISTERED = row("200 200 404 200 403 403 404", "200 200 404 403 403 403 403 403 403")
KEPT = row("200 200 404 403 403 403 404", "200 200 404 403 403 403 403 403 403")
MANAGED = row("200 200 200 403 403 403 404", "404 200 200 404 404 404 403 404 404")
LOOKED_OVER = row("200 200 200 403 403 403 404", "404 200 200 404 404 404 200 404 404")
BY_PEOPLE = row("201 201 201 403 403 403 404", "404 403 403 404 404 404 403 404 404")
OF_A_KEY = row("200 200 200 404 404 404 404", "404 404 404 404 404 404 404 404 404")
OWN = row("200 200 404 200 200 200 404", "403 403 404 403 403 403 403 403 403")
THEIRS = row("200 200 200 200 200 200 200", "200 200 200 200 200 200 200 200 200")
OPEN = " ".join(["200"] * len(COLUMNS))
ORGANIZATION = "organizations/<str:organization_id>"
PROVIDER = f"{ORGANIZATION}/providers/<str:provider_id>"
WORKSPACE = "workspaces/<str:workspace_id>"
MATRIX: dict[tuple[str, str], str] = {
    ("GET", "openapi.json"): OPEN,
    ("GET", "workspaces"): THEIRS,
    ("POST", "workspaces"): MANAGED.replace("200", "201"),
    ("GET", f"{WORKSPACE}/members"): row(
        "200 200 200 200 200 200 404", "200 200 200 200 200 403 200 200 200"
    ),
    # Whoever manages the organization needs no role here, but a key gives no role that it lacks.
    ("POST", f"{WORKSPACE}/members/<str:user_id>"): row(
        "200 200 200 403 403 403 404", "200 200 403 403 403 403 403 403 403"
    ),
    ("DELETE", f"{WORKSPACE}/members/<str:user_id>"): row(
        "204 204 204 403 403 403 404", "204 204 204 403 403 403 403 403 403"
    ),
    ("GET", "organizations"): THEIRS,
    ("GET", ORGANIZATION): MANAGED,
    ("POST", ORGANIZATION): MANAGED,
    ("GET", f"{ORGANIZATION}/members"): MANAGED,
    ("POST", f"{ORGANIZATION}/members/<str:user_id>"): MANAGED,
    ("DELETE", f"{ORGANIZATION}/members/<str:user_id>"): MANAGED.replace("200", "204"),
    ("GET", f"{ORGANIZATION}/invitations"): MANAGED,
    ("POST", f"{ORGANIZATION}/invitations"): BY_PEOPLE,
    ("DELETE", f"{ORGANIZATION}/invitations/<str:invitation_id>"): MANAGED.replace("200", "204"),
    ("POST", f"{ORGANIZATION}/service_accounts"): MANAGED.replace("200", "201"),
    ("DELETE", f"{ORGANIZATION}/service_accounts/<str:user_id>"): MANAGED.replace("200", "204"),
    ("GET", f"{ORGANIZATION}/api_keys"): row(
        "200 200 200 200 200 200 404", "404 200 200 404 404 404 403 404 404"
    ),
    ("POST", f"{ORGANIZATION}/api_keys"): BY_PEOPLE,
    ("DELETE", f"{ORGANIZATION}/api_keys/<str:key_id>"): OF_A_KEY.replace("200", "204"),
    ("POST", f"{ORGANIZATION}/api_keys/<str:key_id>/rotate"): row(
        "201 403 403 404 404 404 404", "404 404 404 404 404 404 404 404 404"
    ),
    ("GET", f"{ORGANIZATION}/providers"): MANAGED,
    ("POST", f"{ORGANIZATION}/providers"): MANAGED.replace("200", "201"),
    ("GET", PROVIDER): MANAGED,
    ("POST", PROVIDER): MANAGED,
    ("DELETE", PROVIDER): MANAGED.replace("200", "204"),
    ("POST", f"{PROVIDER}/test"): MANAGED,
    ("POST", f"{PROVIDER}/models"): MANAGED.replace("200", "201"),
    ("POST", f"{PROVIDER}/models/<str:model_id>"): MANAGED,
    ("DELETE", f"{PROVIDER}/models/<str:model_id>"): MANAGED.replace("200", "204"),
    ("GET", f"{ORGANIZATION}/audit"): MANAGED,
    ("GET", f"{ORGANIZATION}/sessions"): LOOKED_OVER,
    ("GET", "models"): READ,
    ("GET", "inbox"): THEIRS,
    ("GET", "sessions"): READ,
    ("POST", "sessions"): CONTROL.replace("200", "201"),
    ("GET", "sessions/<str:session_id>"): READ,
    ("POST", "sessions/<str:session_id>"): CONTROL,
    ("DELETE", "sessions/<str:session_id>"): ADMINISTERED,
    ("POST", "sessions/<str:session_id>/archive"): CONTROL,
    # Each session has a result of its own; a key that may change nothing is told so at once.
    ("POST", "sessions/bulk"): row(
        "200 200 200 200 200 200 200", "200 200 200 403 200 403 403 200 403"
    ),
    ("POST", "archive/clean"): row(
        "200 200 404 200 200 403 404", "200 200 404 403 403 403 403 403 403"
    ),
    ("POST", "sessions/<str:session_id>/unarchive"): CONTROL,
    ("PUT", "sessions/<str:session_id>/pin"): OWN,
    ("PUT", "sessions/<str:session_id>/read"): OWN,
    ("PUT", "sessions/<str:session_id>/visibility"): row(
        "403 403 404 200 403 403 404", "403 403 404 403 403 403 403 403 403"
    ),
    ("GET", "sessions/<str:session_id>/draft"): OWN,
    ("PUT", "sessions/<str:session_id>/draft"): OWN,
    ("GET", "sessions/<str:session_id>/events"): READ,
    ("POST", "sessions/<str:session_id>/events"): CONTROL.replace("200", "202"),
    ("GET", "sessions/<str:session_id>/events/stream"): READ,
    ("GET", "sessions/<str:session_id>/turns"): READ,
    ("GET", "sessions/<str:session_id>/turns/<str:turn_id>"): READ,
    ("GET", "sessions/<str:session_id>/queue"): READ,
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/move"): CONTROL,
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/edit"): row(
        "200 200 404 200 200 403 404", "403 403 404 403 403 403 403 403 403"
    ),
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/delete"): CONTROL,
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/promote"): CONTROL,
    ("POST", "sessions/<str:session_id>/pause"): CONTROL,
    ("POST", "sessions/<str:session_id>/resume"): CONTROL,
    ("POST", "sessions/<str:session_id>/cancel"): ADMINISTERED,
    ("POST", "sessions/<str:session_id>/retry"): CONTROL.replace("200", "202"),
    ("POST", "sessions/<str:session_id>/fork"): CONTROL.replace("200", "201"),
    ("POST", "workspaces/<str:workspace_id>/pause"): KEPT,
    ("POST", "workspaces/<str:workspace_id>/resume"): KEPT,
    ("POST", "sessions/<str:session_id>/move"): CONTROL,
    ("GET", f"{WORKSPACE}/stream"): READ,
    ("GET", f"{WORKSPACE}/folders"): READ,
    ("POST", f"{WORKSPACE}/folders"): CONTROL.replace("200", "201"),
    ("POST", f"{WORKSPACE}/folders/<str:folder_id>"): CONTROL,
    ("DELETE", f"{WORKSPACE}/folders/<str:folder_id>"): CONTROL,
    ("GET", "agents/<str:agent_id>/session"): READ,
    ("GET", "sessions/<str:session_id>/pending"): READ,
    ("GET", "sessions/<str:session_id>/children"): READ,
    ("GET", "sessions/<str:session_id>/tree"): READ,
}
STREAM = ("GET", "sessions/<str:session_id>/events/stream")
STREAMS = frozenset({STREAM, ("GET", f"{WORKSPACE}/stream")})
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "sessions/<str:session_id>"): {"title": "New"},
    ("POST", "sessions/<str:session_id>/events"): {
        "events": [{"type": "user.message", "content": "Hello"}]
    },
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/move"): {
        "expected_version": 1,
        "position": 1,
    },
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/edit"): {"expected_version": 1},
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/delete"): {"expected_version": 1},
    ("POST", "sessions/<str:session_id>/queue/<str:turn_id>/promote"): {"expected_version": 1},
    ("PUT", "sessions/<str:session_id>/read"): {"seq": 1},
    ("POST", "sessions/<str:session_id>/move"): {"folder_id": None},
    ("POST", f"{WORKSPACE}/folders"): {"name": "Surveys"},
    ("POST", f"{WORKSPACE}/folders/<str:folder_id>"): {"name": "Tides", "position": 1},
    ("PUT", "sessions/<str:session_id>/visibility"): {"visibility": "workspace"},
    ("POST", ORGANIZATION): {"name": "Atlas"},
    ("POST", f"{ORGANIZATION}/members/<str:user_id>"): {"role": "member"},
    ("POST", f"{WORKSPACE}/members/<str:user_id>"): {"role": "member"},
    ("POST", f"{ORGANIZATION}/invitations"): {"email": "greta@example.test"},
    ("POST", f"{ORGANIZATION}/service_accounts"): {"name": "CI"},
    ("POST", f"{ORGANIZATION}/api_keys"): {"name": "Shop", "scopes": ["read"]},
    ("POST", f"{ORGANIZATION}/providers"): {"name": "Local", "base_url": "http://127.0.0.1:9/v1"},
    ("POST", PROVIDER): {"name": "Renamed"},
    ("POST", f"{PROVIDER}/models"): {"model_id": "another"},
    ("POST", f"{PROVIDER}/models/<str:model_id>"): {"display_name": "Renamed"},
    ("POST", "sessions/bulk"): {"action": "archive", "ids": ["ses_" + "0" * 32]},
    ("PUT", "sessions/<str:session_id>/draft"): {"text": "Dear", "expected_version": 0},
}
