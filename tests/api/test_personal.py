"""Pins, read marks and drafts over HTTP."""

from __future__ import annotations

import pytest

from tests.api.client import Caller, refusal


def test_pins_are_set_for_oneself_alone(member: Caller, caller, session_path: str) -> None:
    assert member.put(f"{session_path}/pin").json()["pinned"] is True
    assert member.put(f"{session_path}/pin", {"pinned": True}).json()["pinned"] is True
    assert caller("owner").get(session_path).json()["pinned"] is False
    assert member.put(f"{session_path}/pin", {"pinned": False}).json()["pinned"] is False


def test_a_read_mark_stays_within_the_log(member: Caller, session_path: str) -> None:
    head = member.get(session_path).json()["last_event_seq"]
    assert member.put(f"{session_path}/read", {"seq": head}).status_code == 200
    ahead = member.put(f"{session_path}/read", {"seq": head + 1})
    assert refusal(ahead) == (400, "seq_ahead", "seq")


def test_a_draft_is_kept_with_a_revision(member: Caller, caller, session_path: str) -> None:
    path = f"{session_path}/draft"
    assert member.get(path).json() == {"type": "draft", "text": "", "revision": 0}
    saved = member.put(path, {"text": "Dear", "expected_version": 0}).json()
    assert saved == {"type": "draft", "text": "Dear", "revision": 1}
    stale = member.put(path, {"text": "Oh", "expected_version": 0})
    assert refusal(stale) == (409, "stale_version", "expected_version")
    assert stale.json()["error"]["details"]["current"] == {"text": "Dear", "revision": 1}
    assert caller("owner").get(path).json()["text"] == ""


def test_sending_consumes_the_draft_it_was_made_from(member: Caller, session_path: str) -> None:
    path = f"{session_path}/draft"
    member.put(path, {"text": "Dear", "expected_version": 0})
    event = {"type": "user.message", "content": "Dear", "draft_revision": 1}
    assert member.post(f"{session_path}/events", {"events": [event]}).status_code == 202
    assert member.get(path).json() == {"type": "draft", "text": "", "revision": 2}


@pytest.mark.parametrize(
    ("route", "body", "expected"),
    [
        ("pin", {"pinned": "yes"}, (400, "invalid_type", "pinned")),
        ("read", {}, (400, "field_required", "seq")),
        ("read", {"seq": "1"}, (400, "invalid_type", "seq")),
        ("read", {"seq": True}, (400, "invalid_type", "seq")),
        ("read", {"seq": -1}, (400, "out_of_range", "seq")),
        ("draft", {"text": "x"}, (400, "field_required", "expected_version")),
        ("draft", {"text": None, "expected_version": 0}, (400, "field_null", "text")),
        ("draft", {"text": "a\x00", "expected_version": 0}, (400, "invalid_text", "text")),
        ("draft", {"text": "x" * 100_001, "expected_version": 0}, (413, "prompt_too_long", "text")),
    ],
)
def test_personal_state_refuses_nonsense(
    member: Caller, session_path: str, route: str, body: object, expected: tuple[int, str, str]
) -> None:
    assert refusal(member.put(f"{session_path}/{route}", body)) == expected


@pytest.mark.parametrize("route", ["pin", "read", "draft"])
def test_keys_have_nothing_of_their_own(key: Caller, session_path: str, route: str) -> None:
    bodies = {
        "pin": {"pinned": True},
        "read": {"seq": 1},
        "draft": {"text": "x", "expected_version": 0},
    }
    response = key.put(f"{session_path}/{route}", bodies[route])
    assert refusal(response) == (403, "needs_a_person", None)
