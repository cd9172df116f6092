"""Identifiers and text at the border."""

from __future__ import annotations

import base64
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cursors import decode_cursor, encode_cursor
from core.errors import InvalidInput
from core.ids import InvalidId, decode_id, encode_id, event_id, parse_event_id, uuid7
from core.text import (
    REDACTED,
    REPLACEMENT,
    clip,
    find_unstorable,
    has_visible,
    is_storable,
    make_storable,
    make_storable_json,
    redact,
    strip_marks,
)

any_text = st.text(st.characters(exclude_categories=[]))


def test_ids_made_in_a_burst_sort_in_the_order_in_which_they_were_made() -> None:
    made = [uuid7() for _ in range(20_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {(value.version, value.variant) for value in made} == {(7, "specified in RFC 4122")}


def test_an_id_survives_its_round_trip() -> None:
    value = uuid7()
    assert decode_id("ses", encode_id("ses", value)) == value
    assert parse_event_id(event_id(value, 57)) == (value, 57)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ses_",
        "trn_" + "0" * 32,
        "ses_" + "0" * 31,
        "ses_" + "G" * 32,
        "ses_" + "A" * 32,
        None,
        7,
    ],
)
def test_what_is_not_an_id_is_refused(text: object) -> None:
    with pytest.raises(InvalidId):
        decode_id("ses", text)


@pytest.mark.parametrize("seq", ["0", "-1", "1.5", "٣", "9" * 20, "", "1_0"])
def test_what_is_not_an_event_id_is_refused(seq: str) -> None:
    with pytest.raises(InvalidId):
        parse_event_id(f"evt_{'0' * 32}_{seq}")


@given(any_text)
def test_whatever_a_model_sends_can_be_stored_as_json(text: str) -> None:
    stored = make_storable(text)
    assert is_storable(stored)
    assert json.loads(json.dumps(stored).encode()) == stored
    if is_storable(text):
        assert stored == text


def test_bad_characters_are_replaced_one_by_one_and_pairs_are_joined() -> None:
    assert make_storable("a\x00b") == f"a{REPLACEMENT}b"
    assert make_storable("\ud800x") == f"{REPLACEMENT}x"
    assert make_storable("\x00\ud83d\udc4b") == f"{REPLACEMENT}👋"
    assert make_storable_json({"k\x00": ["\udfff", 1]}) == {f"k{REPLACEMENT}": [REPLACEMENT, 1]}


def test_the_path_of_the_first_bad_text_is_named() -> None:
    assert find_unstorable({"events": [{"content": "ok"}, {"content": "\x00"}]}) == (
        "events[1].content"
    )
    assert find_unstorable({"a": "fine", "b": [1, None, True]}) is None


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdef1234567890",
        "sed_w_1234abcd_q9Zx-longer-secret",
        "Bearer abcdefghijklmnop",
        "x-api-key: 0123456789abcdef",
        "https://ada:hunter2hunter2@db.internal/x",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig",
    ],
)
def test_secrets_do_not_survive_redaction(secret: str) -> None:
    told = redact(f"The provider said: {secret} is wrong")
    assert REDACTED in told
    core = secret.rsplit(maxsplit=1)[-1].rsplit("://", maxsplit=1)[-1]
    assert core not in told
    assert told.endswith("is wrong")


def test_a_known_key_is_redacted_whatever_it_looks_like() -> None:
    assert redact("bad key zebra-crossing", ["zebra-crossing"]) == f"bad key {REDACTED}"


@pytest.mark.parametrize("part", ["a.", "a+", "-eyJaaaaaaaa", "a://b:c", "token ", "cookie = "])
def test_redacting_ten_times_the_text_takes_about_ten_times_as_long(part: str) -> None:
    def seconds(length: int) -> float:
        text = part * (length // len(part))
        tries = []
        for _ in range(3):
            began = time.process_time()
            redact(text)
            tries.append(time.process_time() - began)
        return min(tries)

    # The square would be a hundred times.
    assert seconds(100_000) < 40 * max(seconds(10_000), 0.0005)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("Press *Send* and **wait** for `x_y`", "Press Send and wait for x_y"),
        ("## Head and ### more", "Head and more"),
        ("[docs](https://x.test/z) here", "docs here"),
        ("- > quoted", "quoted"),
        ("**cut off he", "cut off he"),
        ("~~gone~~ _it_ ***both***", "gone it both"),
        ("a * b, 2 ** 3, snake_case_name", "a * b, 2 ** 3, snake_case_name"),
    ],
)
def test_a_line_of_markdown_is_told_by_its_words(written: str, words: str) -> None:
    assert strip_marks(written) == words


def test_clipping_keeps_the_limit() -> None:
    assert clip("abcdef", 4) == "abc…"
    assert clip("abc", 3) == "abc"


@given(st.text(), st.integers(), st.text())
def test_a_cursor_survives_its_round_trip(query: str, number: int, text: str) -> None:
    number %= 2**53
    cursor = encode_cursor(query, [number, text])
    if len(cursor) <= 1_000:
        assert decode_cursor(query, cursor, [int, str]) == [number, text]


@given(st.text(max_size=200))
def test_no_text_makes_a_cursor_fail_otherwise_than_by_refusal(text: str) -> None:
    with pytest.raises(InvalidInput):
        decode_cursor("q", text, [int, str])


def test_a_cursor_is_taken_only_as_it_was_given() -> None:
    cursor = encode_cursor("q", [4, "???>>>~~~"])
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    spaced = base64.urlsafe_b64encode(raw.replace(b",", b", ")).rstrip(b"=").decode()
    standard = cursor.replace("-", "+").replace("_", "/")
    padded = [cursor + "=" * count for count in (1, 2, 3, 4)]
    assert standard != cursor
    for text in [*padded, spaced, standard, cursor + "\n"]:
        with pytest.raises(InvalidInput, match="exactly as"):
            decode_cursor("q", text, [int, str])
    assert decode_cursor("q", cursor, [int, str]) == [4, "???>>>~~~"]


@pytest.mark.parametrize(
    "text", ["", " \t\n", "\u200b", "\u2060\ufeff", "\u3164", "\u2800", "\u00a0\u202e", "\u00ad"]
)
def test_nothing_of_it_can_be_seen(text: str) -> None:
    assert not has_visible(text)
    assert has_visible(text + "x")


@pytest.mark.parametrize("text", [".", "\u0301", "\U0001f469\u200d\U0001f4bb", "\u0627", "\ue000"])
def test_something_can_be_seen(text: str) -> None:
    """A mark by itself, an emoji of several characters, other scripts, a font's own signs."""
    assert has_visible(text)
