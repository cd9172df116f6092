"""Sending and replaying events over HTTP."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from sessions_app import eventlog
from sessions_app.models import Event, Session, Turn
from tests.api.client import Caller, refusal
from tests.factories import Cast, claim, delta, make_session, message, send


def prompt(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    return {"type": "user.message", "content": text, **fields}


def say(caller: Caller, path: str, *events: dict[str, Any], **headers: str) -> Any:
    return caller.post(f"{path}/events", {"events": list(events)}, **headers)


def seqs(response: Any) -> list[int]:
    return [event["seq"] for event in response.json()["data"]]


@pytest.fixture
def spoken(cast: Cast) -> Session:
    """A session with a turn that streamed forty pieces, and one more that waits."""
    session = make_session(cast)
    send(cast, session, "Count")
    lease = claim().lease
    drafts = [delta(f"{number} ") for number in range(40)]
    eventlog.append(session_id=session.pk, drafts=drafts, turn_id=lease.turn_id, attempt=1)
    eventlog.append(session_id=session.pk, drafts=[message("done")], turn_id=lease.turn_id)
    send(cast, session, "And again")
    session.refresh_from_db()
    return session


def test_a_prompt_is_accepted_never_started(member: Caller, session_path: str) -> None:
    response = say(member, session_path, prompt("Bonjour"))
    assert response.status_code == 202
    (echo,) = response.json()["data"]
    assert echo["type"] == "user.message"
    assert echo["content"] == [{"type": "text", "text": "Bonjour"}]
    assert echo["processed_at"] is None
    assert (echo["held"], echo["delivery"]) == (False, "queue")
    assert echo["turn_id"].startswith("trn_")
    assert echo["author"]["name"] == "Chiara Novak"
    logged = member.get(f"{session_path}/events?types[]=user.message").json()["data"]
    assert logged == [{k: v for k, v in echo.items() if k != "held"}]


def test_blocks_and_model_settings_travel_with_a_prompt(member: Caller, session_path: str) -> None:
    content = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    sent = prompt(
        content,  # type: ignore[arg-type]
        model={"provider_id": "demo", "model_id": "scripted", "variant": "high"},
        speed="fast",
    )
    (echo,) = say(member, session_path, sent).json()["data"]
    assert echo["content"] == content
    assert echo["model"] == {"provider_id": "demo", "model_id": "scripted"}
    assert (echo["reasoning_effort"], echo["speed"]) == ("high", "fast")


def test_an_interrupt_ends_the_running_turn(cast: Cast, member: Caller, spoken: Session) -> None:
    path = f"/v1/sessions/{spoken.public_id}"
    (echo,) = say(member, path, {"type": "user.interrupt"}).json()["data"]
    assert echo["type"] == "user.interrupt"
    turns = member.get(f"{path}/turns").json()["data"]
    assert [turn["status"] for turn in turns] == ["cancelled", "queued"]


def test_an_interrupt_with_nothing_to_stop_says_so(member: Caller, session_path: str) -> None:
    (echo,) = say(member, session_path, {"type": "user.interrupt"}).json()["data"]
    assert (echo["id"], echo["effect"]) == (None, "nothing_to_stop")


def test_all_events_of_a_request_are_accepted_or_none(member: Caller, session_path: str) -> None:
    before = Event.objects.count()
    response = say(member, session_path, prompt("Fine"), prompt("x" * 100_001))
    assert refusal(response) == (413, "prompt_too_long", "events[1].content")
    assert Event.objects.count() == before
    assert not Turn.objects.exists()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, (400, "field_required", "events")),
        ({"events": []}, (400, "too_short", "events")),
        ({"events": "x"}, (400, "invalid_type", "events")),
        ({"events": [3]}, (400, "invalid_type", "events[0]")),
        ({"events": [{}]}, (400, "unknown_event_type", "events[0].type")),
        ({"events": [{"type": []}]}, (400, "unknown_event_type", "events[0].type")),
        ({"events": [prompt()] * 51}, (400, "too_long", "events")),
        ({"events": [{"type": "agent.message"}]}, (400, "unknown_event_type", "events[0].type")),
        (
            {"events": [{"type": "user.custom_tool_result", "tool_use_id": "evt_1"}]},
            (400, "event_type_not_supported_yet", "events[0].type"),
        ),
        ({"events": [{"type": "user.message"}]}, (400, "field_required", "events[0].content")),
        ({"events": [prompt("")]}, (400, "content_required", "events[0].content")),
        ({"events": [prompt("a\x00")]}, (400, "invalid_text", "events[0].content")),
        ({"events": [prompt(3)]}, (400, "invalid_type", "events[0].content")),  # type: ignore[arg-type]
        ({"events": [prompt([])]}, (400, "content_required", "events[0].content")),  # type: ignore[arg-type]
        (
            {"events": [prompt([{"type": "image", "source": {}}])]},  # type: ignore[arg-type]
            (400, "unknown_field", "events[0].content[0].source"),
        ),
        (
            {"events": [prompt([{"type": "text", "text": 1}])]},  # type: ignore[arg-type]
            (400, "invalid_type", "events[0].content[0].text"),
        ),
        (
            {"events": [prompt(), prompt(delivery="later")]},
            (400, "invalid_choice", "events[1].delivery"),
        ),
        ({"events": [prompt(tools=["x"])]}, (400, "not_supported_yet", "events[0].tools")),
        ({"events": [prompt(tools=[])]}, (400, "not_supported_yet", "events[0].tools")),
        ({"events": [prompt(resume="")]}, (400, "invalid_type", "events[0].resume")),
        ({"events": [prompt(colour=1)]}, (400, "unknown_field", "events[0].colour")),
        (
            {"events": [prompt(draft_revision="1")]},
            (400, "invalid_type", "events[0].draft_revision"),
        ),
        ({"events": [prompt()], "stream": True}, (400, "unknown_field", "stream")),
    ],
)
def test_sending_refuses_with_a_code_and_a_path(
    member: Caller, session_path: str, body: dict[str, Any], expected: tuple[int, str, str]
) -> None:
    before = Event.objects.count()
    assert refusal(member.post(f"{session_path}/events", body)) == expected
    assert Event.objects.count() == before


def test_replay_reads_all_events_once_page_by_page(member: Caller, spoken: Session) -> None:
    path = f"/v1/sessions/{spoken.public_id}/events"
    whole = list(range(1, spoken.head_seq + 1))
    assert seqs(member.get(path)) == whole
    for order, wanted in (("asc", whole), ("desc", whole[::-1])):
        found, page = [], ""
        while True:
            response = member.get(f"{path}?limit=7&order={order}{page}")
            found += seqs(response)
            if not response.json()["has_more"]:
                break
            page = f"&page={response.json()['next_page']}"
        assert found == wanted


def test_replay_begins_and_ends_where_it_is_told(member: Caller, spoken: Session) -> None:
    path = f"/v1/sessions/{spoken.public_id}/events"
    assert seqs(member.get(f"{path}?after=3&limit=2")) == [4, 5]
    assert seqs(member.get(f"{path}?before=4")) == [3, 2, 1]
    assert seqs(member.get(f"{path}?before=4&order=asc")) == [1, 2, 3]
    assert seqs(member.get(f"{path}?after=1&before=5")) == [2, 3, 4]
    assert seqs(member.get(f"{path}?after=1&before=5&order=desc")) == [4, 3, 2]
    assert seqs(member.get(f"{path}?after={spoken.head_seq}")) == []
    assert seqs(member.get(f"{path}?before=0")) == []


def test_a_page_of_a_growing_log_goes_on_with_what_is_new(
    cast: Cast, member: Caller, spoken: Session
) -> None:
    path = f"/v1/sessions/{spoken.public_id}/events"
    first = member.get(f"{path}?limit=40").json()
    send(cast, spoken, "Newer")
    second = member.get(f"{path}?limit=40&page={first['next_page']}").json()
    assert second["data"][0]["seq"] == 41
    assert second["data"][-1]["seq"] == spoken.head_seq + 2


def test_compact_joins_a_run_and_says_what_it_covers(member: Caller, spoken: Session) -> None:
    path = f"/v1/sessions/{spoken.public_id}/events"
    joined = [
        event
        for event in member.get(f"{path}?compact=true").json()["data"]
        if event["type"] == "agent.message_delta"
    ]
    assert len(joined) == 1
    assert joined[0]["text"] == "".join(f"{number} " for number in range(40))
    assert joined[0]["seq"] - joined[0]["first_seq"] == 39


def test_types_filter(member: Caller, spoken: Session) -> None:
    path = f"/v1/sessions/{spoken.public_id}/events"
    response = member.get(f"{path}?types[]=user.message&types[]=agent.message")
    kinds = [event["type"] for event in response.json()["data"]]
    assert kinds == ["user.message", "agent.message", "user.message"]
    assert member.get(f"{path}?types=user.message").json()["has_more"] is False


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("after=-1", ("out_of_range", "after")),
        ("after=x", ("invalid_type", "after")),
        ("after=1.5", ("invalid_type", "after")),
        ("after=%D9%A1", ("invalid_type", "after")),
        ("after=99999999999999999999", ("invalid_type", "after")),
        ("after=9223372036854775807", ("cursor_ahead", "after")),
        ("after=1&after=2", ("repeated_parameter", "after")),
        ("limit=0", ("out_of_range", "limit")),
        ("limit=1001", ("out_of_range", "limit")),
        ("limit=1e9", ("invalid_type", "limit")),
        ("order=up", ("invalid_choice", "order")),
        ("compact=1", ("invalid_type", "compact")),
        ("compact=true&order=desc", ("compact_needs_asc", "order")),
        ("types[]=agent.wink", ("unknown_event_type", "types[0]")),
        ("page=%00", ("invalid_text", "page")),
        ("page=nonsense", ("invalid_cursor", "page")),
        ("since=1", ("unknown_parameter", "since")),
    ],
)
def test_replay_refuses_positions_that_cannot_be_right(
    member: Caller, session_path: str, query: str, expected: tuple[str, str]
) -> None:
    assert refusal(member.get(f"{session_path}/events?{query}")) == (400, *expected)


def test_a_page_is_bounded_in_bytes(member: Caller, cast: Cast, settings: Any) -> None:
    settings.PAGE_MAX_BYTES = 65_536
    session = make_session(cast)
    for number in range(6):
        send(cast, session, f"{number}" * 30_000)
    path = f"/v1/sessions/{session.public_id}/events"
    found, page = [], ""
    while True:
        response = member.get(f"{path}?limit=1000{page}")
        assert len(response.content) < 65_536 + 1_000
        found += seqs(response)
        if not response.json()["has_more"]:
            break
        page = f"&page={response.json()['next_page']}"
    session.refresh_from_db()
    assert found == list(range(1, session.head_seq + 1))


def test_turns_and_queue_are_read(cast: Cast, member: Caller, spoken: Session) -> None:
    path = f"/v1/sessions/{spoken.public_id}"
    turns = member.get(f"{path}/turns").json()
    assert [turn["status"] for turn in turns["data"]] == ["running", "queued"]
    newest = member.get(f"{path}/turns?order=desc&limit=1").json()
    assert [turn["number"] for turn in newest["data"]] == [2]
    rest = member.get(f"{path}/turns?order=desc&limit=1&page={newest['next_page']}").json()
    assert [turn["number"] for turn in rest["data"]] == [1]
    assert rest["has_more"] is False
    one = member.get(f"{path}/turns/{turns['data'][0]['id']}").json()
    assert [attempt["status"] for attempt in one["attempts"]] == ["running"]
    queue = member.get(f"{path}/queue").json()
    assert [turn["position"] for turn in queue["data"]] == [1]
    assert queue["version"] >= 2


def test_a_turn_of_another_session_is_not_found(
    cast: Cast, member: Caller, spoken: Session, session_path: str
) -> None:
    turn = spoken.turns.first()
    assert turn is not None
    for public_id in (turn.public_id, "trn_1", "trn_" + "0" * 32):
        response = member.get(f"{session_path}/turns/{public_id}")
        assert refusal(response) == (404, "not_found", None)


def test_raw_bytes_that_are_no_text_write_nothing(member: Caller, session_path: str) -> None:
    before = Event.objects.count()
    body = orjson.dumps({"events": [prompt("MARK")]})
    hostile = {
        b"a\\u0000b": ("invalid_text", "events[0].content"),
        b"\\ud800": ("invalid_text", "events[0].content"),
        b"\\udfff x": ("invalid_text", "events[0].content"),
        b"\x00": ("invalid_json", None),
        b"\xff\xfe": ("invalid_json", None),
    }
    for raw, (code, param) in hostile.items():
        response = member.post(f"{session_path}/events", body.replace(b"MARK", raw))
        assert refusal(response) == (400, code, param)
    assert Event.objects.count() == before
    # A noncharacter is text like any other.
    response = member.post(f"{session_path}/events", body.replace(b"MARK", b"\\uFFFE"))
    assert response.status_code == 202
