"""Sessions over HTTP: what each route does for those who may, and what it refuses."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Session
from tests.api.client import Caller, refusal
from tests.factories import Cast, claim, make_session, send

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def test_a_key_creates_in_its_own_workspace(key: Caller, workspace_id: str) -> None:
    response = key.post("/v1/sessions", {"title": "Tide tables", "metadata": {"case": "12"}})
    assert response.status_code == 201
    made = response.json()
    assert made["type"] == "session"
    assert made["workspace_id"] == workspace_id
    assert (made["title"], made["metadata"], made["status"]) == (
        "Tide tables",
        {"case": "12"},
        "idle",
    )
    assert re.fullmatch(r"ses_[0-9a-f]{32}", made["id"])
    assert RFC3339.fullmatch(made["created_at"])
    assert made["archived_at"] is None
    assert key.get(f"/v1/sessions/{made['id']}").json() == made


def test_an_empty_body_creates_a_session(key: Caller) -> None:
    assert key.post("/v1/sessions").status_code == 201


def test_a_person_creates_in_their_personal_workspace(member: Caller, workspace_id: str) -> None:
    made = member.post("/v1/sessions", {}).json()
    assert made["workspace_id"] != workspace_id


def test_the_header_of_the_official_client_selects_the_workspace(
    member: Caller, workspace_id: str
) -> None:
    made = member.post("/v1/sessions", {}, anthropic_workspace_id=workspace_id).json()
    assert made["workspace_id"] == workspace_id
    listed = member.get("/v1/sessions", anthropic_workspace_id=workspace_id).json()
    assert [row["id"] for row in listed["data"]] == [made["id"]]


def test_a_session_may_begin_with_prompts(key: Caller) -> None:
    events = [
        {"type": "user.message", "content": "One"},
        {"type": "user.message", "content": "Two"},
    ]
    made = key.post("/v1/sessions", {"initial_events": events}).json()
    queue = key.get(f"/v1/sessions/{made['id']}/queue").json()
    assert [turn["preview_text"] for turn in queue["data"]] == ["One", "Two"]
    assert made["working"] is True


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"colour": "red"}, (400, "unknown_field", "colour")),
        ({"title": 7}, (400, "invalid_type", "title")),
        ({"title": "x" * 121}, (400, "title_too_long", "title")),
        ({"title": "a\x00b"}, (400, "invalid_text", "title")),
        ({"metadata": {"a": 1}}, (400, "invalid_metadata", "metadata.a")),
        ({"metadata": {"a\x00": "b"}}, (400, "invalid_text", "metadata.a�")),
        ({"metadata": []}, (400, "invalid_type", "metadata")),
        ({"origin": {"type": ""}}, (400, "invalid_origin", "origin.type")),
        ({"origin": {"type": "agent"}}, (400, "reserved_origin", "origin.type")),
        ({"origin": {"type": "chat", "x": "y" * 5000}}, (413, "origin_too_large", "origin")),
        ({"origin": "chat"}, (400, "invalid_type", "origin")),
        ({"visibility": "everyone"}, (400, "invalid_choice", "visibility")),
        ({"visibility": "private"}, (403, "private_needs_a_person", "visibility")),
        ({"agent": "Nobody"}, (404, "agent_not_found", "agent")),
        ({"agent": 3}, (400, "invalid_type", "agent")),
        ({"environment_id": "env_1"}, (404, "directory_not_found", "environment_id")),
        ({"workspace_id": "wrk_1"}, (400, "invalid_id", "workspace_id")),
        (
            {"workspace_id": "wrk_" + "0" * 32},
            (404, "workspace_not_found", "workspace_id"),
        ),
        ({"model": "nonesuch"}, (422, "model_unavailable", "model")),
        ({"model": {"provider_id": "demo"}}, (400, "field_required", "model.model_id")),
        ({"model": 5}, (400, "invalid_type", "model")),
        ({"reasoning_effort": "huge"}, (400, "invalid_choice", "reasoning_effort")),
        ({"end_user": {"source": "shop"}}, (400, "field_required", "end_user.id")),
        ({"budget": {"max_list_cost": "1"}}, (400, "not_supported_yet", "budget")),
        ({"tools": ["probe.lookup"]}, (400, "not_supported_yet", "tools")),
        ({"tools": []}, (400, "not_supported_yet", "tools")),
        ({"skills": {}}, (400, "not_supported_yet", "skills")),
        ({"directory_id": {}}, (400, "not_supported_yet", "directory_id")),
        (
            {"initial_events": [{"type": "user.interrupt"}]},
            (400, "unknown_event_type", "initial_events[0].type"),
        ),
        (
            {"initial_events": [{"type": "user.message", "content": " "}]},
            (400, "content_required", "initial_events[0].content"),
        ),
        (
            {"initial_events": [{"type": "user.message", "content": "x"}] * 51},
            (400, "too_long", "initial_events"),
        ),
    ],
)
def test_creation_refuses_with_a_code_and_a_path(
    key: Caller, body: dict[str, object], expected: tuple[int, str, str]
) -> None:
    assert refusal(key.post("/v1/sessions", body)) == expected
    assert not Session.objects.exists()


def test_a_failed_first_prompt_leaves_nothing(key: Caller) -> None:
    good, bad = ({"type": "user.message", "content": text} for text in ("Fine", "x" * 100_001))
    response = key.post("/v1/sessions", {"initial_events": [good, bad]})
    assert refusal(response) == (413, "prompt_too_long", "initial_events[1].content")
    assert not Session.objects.exists()


def test_an_organization_key_must_name_a_workspace(caller, workspace_id: str) -> None:
    organization = caller("organization_key")
    for response in (organization.post("/v1/sessions", {}), organization.get("/v1/sessions")):
        assert refusal(response) == (400, "workspace_required", "workspace_id")
    assert organization.post("/v1/sessions", {"workspace_id": workspace_id}).status_code == 201
    assert len(organization.get(f"/v1/sessions?workspace_id={workspace_id}").json()["data"]) == 1


def test_not_visible_is_the_same_404_as_never_existed(caller, session_path: str) -> None:
    outsider = caller("outsider")
    never = "/v1/sessions/ses_" + "0" * 32
    bodies = []
    for path in (session_path, never, "/v1/sessions/nonsense", "/v1/sessions/evt_1"):
        response = outsider.get(path)
        assert refusal(response) == (404, "not_found", None)
        bodies.append({**response.json(), "request_id": ""})
    assert all(body == bodies[0] for body in bodies)


def test_another_partition_is_not_found(key: Caller) -> None:
    made = key.post("/v1/sessions", {"origin": {"type": "chat", "shop": 3}}).json()
    path = f"/v1/sessions/{made['id']}"
    assert key.get(path).json()["origin"] == {"type": "chat", "shop": 3}
    assert key.get(f"{path}?origin_type=chat").status_code == 200
    assert refusal(key.get(f"{path}?origin_type=work")) == (404, "not_found", None)
    assert key.get("/v1/sessions").json()["data"] == []
    assert len(key.get("/v1/sessions?origin_type=chat").json()["data"]) == 1


def test_an_update_is_a_merge_patch(member: Caller, session_path: str) -> None:
    first = member.post(session_path, {"metadata": {"a": "1", "b": "2"}}).json()
    assert (first["title"], first["metadata"]) == ("Survey", {"a": "1", "b": "2"})
    second = member.post(session_path, {"title": "Coast", "metadata": {"a": None, "c": "3"}}).json()
    assert (second["title"], second["metadata"]) == ("Coast", {"b": "2", "c": "3"})
    third = member.post(session_path, {"title": None, "metadata": None}).json()
    assert (third["title"], third["metadata"]) == ("", {})


def test_an_update_that_changes_nothing_writes_nothing(member: Caller, session_path: str) -> None:
    before = member.post(session_path, {"title": "Coast"}).json()
    after = member.post(session_path, {"title": "Coast"}).json()
    assert after["last_event_seq"] == before["last_event_seq"]
    assert member.post(session_path).json()["last_event_seq"] == before["last_event_seq"]


@pytest.mark.parametrize("name", ["origin", "agent_access", "memory_scope", "end_user"])
def test_what_is_frozen_stays(member: Caller, caller, session_path: str, name: str) -> None:
    response = member.post(session_path, {name: None, "title": "Lost"})
    assert refusal(response) == (409, "frozen", name)
    assert response["x-should-retry"] == "false"
    assert member.get(session_path).json()["title"] == "Survey"
    assert refusal(caller("outsider").post(session_path, {name: None})) == (404, "not_found", None)


def test_archive_and_restore_are_idempotent(member: Caller, session_path: str) -> None:
    archived = member.post(f"{session_path}/archive").json()
    assert archived["archived_at"]
    assert member.post(f"{session_path}/archive", {}).json() == archived
    restored = member.post(f"{session_path}/unarchive").json()
    assert restored["archived_at"] is None
    again = member.post(f"{session_path}/unarchive").json()
    assert again["last_event_seq"] == restored["last_event_seq"]


def test_archived_sessions_refuse_prompts_and_clients_do_not_retry(
    member: Caller, session_path: str
) -> None:
    member.post(f"{session_path}/archive")
    body = {"events": [{"type": "user.message", "content": "Hello"}]}
    response = member.post(f"{session_path}/events", body)
    assert refusal(response) == (409, "session_archived", None)
    assert response["x-should-retry"] == "false"


def test_a_working_session_is_archived_only_when_a_person_says_stop(
    cast: Cast, member: Caller, key: Caller
) -> None:
    session = make_session(cast)
    send(cast, session)
    claim()
    path = f"/v1/sessions/{session.public_id}"
    assert refusal(key.post(f"{path}/archive")) == (409, "target_working", None)
    assert refusal(key.post(f"{path}/archive", {"stop": True})) == (409, "target_working", None)
    assert refusal(member.post(f"{path}/archive")) == (409, "target_working", None)
    stopped = member.post(f"{path}/archive", {"stop": True})
    assert stopped.status_code == 200
    assert stopped.json()["archived_at"]


def test_delete_erases(cast: Cast, member: Caller, session_path: str) -> None:
    response = member.delete(session_path)
    public_id = session_path.rpartition("/")[2]
    assert response.json() == {"id": public_id, "type": "session_deleted"}
    assert refusal(member.get(session_path)) == (404, "not_found", None)
    assert refusal(member.delete(session_path)) == (404, "not_found", None)


def test_a_working_session_is_deleted_with_stop_alone(cast: Cast, caller) -> None:
    session = make_session(cast)
    send(cast, session)
    path = f"/v1/sessions/{session.public_id}"
    make_session(cast, parent_id=session.pk)
    owner = caller("owner")
    refused = owner.delete(path)
    assert refusal(refused) == (409, "target_working", None)
    details = refused.json()["error"]["details"]
    assert (details["queued_prompts"], details["sessions_below"]) == (1, 1)
    assert owner.post(f"{path}/archive").json()["error"]["details"] == details
    assert refusal(owner.delete(f"{path}?stop=yes")) == (400, "invalid_type", "stop")
    assert owner.delete(f"{path}?stop=true").status_code == 200


def test_reading_a_session_costs_the_same_few_statements(member: Caller, session_path: str) -> None:
    member.get(session_path)
    with CaptureQueriesContext(connection) as captured:
        assert member.get(session_path).status_code == 200
    assert len(captured) == RETRIEVE_STATEMENTS, [q["sql"] for q in captured]


# Login and user, three for the access, the session itself.
RETRIEVE_STATEMENTS = 6
