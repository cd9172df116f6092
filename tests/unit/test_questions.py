"""Structured questions: what may be asked, what is an answer, and what hostile input gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DomainError, InvalidInput, TooLarge
from sessions_app.domain.questions import (
    EXPIRES_MAX_SECONDS,
    check_expiry,
    parse_answers,
    parse_questions,
)

TEXT = {"id": "why", "kind": "text", "text": "Why?", "max_characters": 10}
ONE = {
    "id": "one",
    "kind": "single_select",
    "text": "Which?",
    "options": [{"label": "Red", "description": "Warm"}, "Blue"],
}
MANY = {
    "id": "many",
    "kind": "multi_select",
    "text": "Which ones?",
    "options": ["A", "B", "C"],
    "allow_other": True,
    "required": False,
    "min_selected": 2,
    "max_selected": 3,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)


def asked(*questions: Any) -> list[dict[str, Any]]:
    return [question.to_json() for question in parse_questions(list(questions))]


def refused(call: Any, *arguments: Any) -> tuple[str, str | None]:
    with pytest.raises(InvalidInput) as error:
        call(*arguments)
    return error.value.code, error.value.param


def test_questions_get_ids_and_defaults() -> None:
    (question,) = asked({"kind": "text", "text": "Name?"})
    assert question == {
        "id": "q1",
        "kind": "text",
        "text": "Name?",
        "required": True,
        "max_characters": 8_192,
    }
    (one,) = asked(ONE)
    assert one["options"] == [
        {"label": "Red", "description": "Warm"},
        {"label": "Blue", "description": ""},
    ]
    assert (one["min_selected"], one["max_selected"], one["allow_other"]) == (1, 1, False)


@pytest.mark.parametrize(
    ("questions", "path"),
    [
        ("text", ""),
        ({}, ""),
        ([], ""),
        ([TEXT] * 21, ""),
        (["text"], "[0]"),
        ([{"kind": "slider", "text": "x"}], "[0].kind"),
        ([{"kind": ["text"], "text": "x"}], "[0].kind"),
        ([{"kind": "text"}], "[0].text"),
        ([{"kind": "text", "text": "  "}], "[0].text"),
        ([{"kind": "text", "text": "\u200b"}], "[0].text"),
        ([{"kind": "text", "text": "x" * 4_097}], "[0].text"),
        ([{"kind": "text", "text": "a\x00"}], "[0].text"),
        ([{"kind": "text", "text": "a\ud800"}], "[0].text"),
        ([{"kind": "text", "text": "x", "options": []}], "[0].options"),
        ([{"kind": "text", "text": "x", "id": 5}], "[0].id"),
        ([{"kind": "text", "text": "x", "id": "x" * 65}], "[0].id"),
        ([TEXT, TEXT], "[1].id"),
        ([{**TEXT, "required": 1}], "[0].required"),
        ([{**TEXT, "max_characters": 0}], "[0].max_characters"),
        ([{**TEXT, "max_characters": True}], "[0].max_characters"),
        ([{**TEXT, "max_characters": 10**30}], "[0].max_characters"),
        ([{**ONE, "options": []}], "[0].options"),
        ([{**ONE, "options": "Red"}], "[0].options"),
        ([{**ONE, "options": ["x"] * 51}], "[0].options"),
        ([{**ONE, "options": ["x", "x"]}], "[0].options[1].label"),
        ([{**ONE, "options": [{"label": ""}]}], "[0].options[0].label"),
        ([{**ONE, "options": [{"label": "x", "icon": "y"}]}], "[0].options[0]"),
        ([{**ONE, "options": [{"label": "x", "description": 3}]}], "[0].options[0].description"),
        ([{**ONE, "max_selected": 2}], "[0].max_selected"),
        ([{**MANY, "min_selected": 5}], "[0].min_selected"),
        ([{**MANY, "min_selected": 3, "max_selected": 2}], "[0].min_selected"),
        ([{**MANY, "allow_other": "yes"}], "[0].allow_other"),
    ],
)
def test_what_may_not_be_asked_is_named(questions: Any, path: str) -> None:
    assert refused(parse_questions, questions) == ("invalid_question", f"questions{path}")


@pytest.mark.parametrize("seconds", [0, -1, 1.5, "60", True, EXPIRES_MAX_SECONDS + 1])
def test_an_expiry_is_one_second_to_thirty_days(seconds: Any) -> None:
    assert check_expiry(None) is None
    assert check_expiry(EXPIRES_MAX_SECONDS) == EXPIRES_MAX_SECONDS
    assert refused(check_expiry, seconds) == ("invalid_question", "expires_in_seconds")


def test_mixed_and_partial_answers_are_kept() -> None:
    questions = asked(TEXT, ONE, MANY)
    assert parse_answers(questions, {"why": {"text": "So"}, "one": {"selected": ["Red"]}}) == {
        "why": {"text": "So"},
        "one": {"selected": ["Red"]},
    }
    everything = {
        "why": {"text": "So"},
        "one": {"selected": ["Blue"]},
        "many": {"selected": ["C", "A"], "other": "D"},
    }
    answers = parse_answers(questions, everything)
    assert answers["many"] == {"selected": ["A", "C"], "other": "D"}


def test_an_optional_question_may_be_left_empty_in_any_way() -> None:
    (question,) = asked(MANY)
    empty: list[Any] = [{}, {"many": None}, {"many": {}}, {"many": {"selected": [], "other": " "}}]
    for given_ in empty:
        assert parse_answers([question], given_) == {}


def test_choosing_none_answers_a_question_that_asks_for_none_at_least() -> None:
    questions = asked({**MANY, "required": True, "min_selected": 0})
    assert parse_answers(questions, {"many": {"selected": []}}) == {"many": {"selected": []}}
    assert refused(parse_answers, questions, {}) == ("answer_required", "answers.many")


@pytest.mark.parametrize(
    ("answers", "code", "path"),
    [
        (None, "invalid_answer", ""),
        ([], "invalid_answer", ""),
        ({}, "answer_required", ".why"),
        ({"why": {"text": " "}}, "answer_required", ".why"),
        ({"why": "So"}, "invalid_answer", ".why"),
        ({"why": {"text": 5}}, "invalid_answer", ".why.text"),
        ({"why": {"text": "x" * 11}}, "invalid_answer", ".why.text"),
        ({"why": {"text": "a\x00"}}, "invalid_text", ".why.text"),
        ({"why": {"text": "a\udc00"}}, "invalid_text", ".why.text"),
        ({"why": {"selected": []}}, "invalid_answer", ".why.selected"),
        ({"what": {"text": "x"}}, "unknown_question", ".what"),
        ({"why": {"text": "x"}, "one": {"selected": "Red"}}, "invalid_answer", ".one.selected"),
        (
            {"why": {"text": "x"}, "one": {"selected": [["Red"]]}},
            "invalid_answer",
            ".one.selected[0]",
        ),
        (
            {"why": {"text": "x"}, "one": {"selected": ["red"]}},
            "invalid_answer",
            ".one.selected[0]",
        ),
        (
            {"why": {"text": "x"}, "one": {"selected": ["Red", "Blue"]}},
            "invalid_answer",
            ".one.selected",
        ),
        (
            {"why": {"text": "x"}, "one": {"selected": ["Red", "Red"]}},
            "invalid_answer",
            ".one.selected[1]",
        ),
        ({"why": {"text": "x"}, "one": {"other": "Green"}}, "invalid_answer", ".one.other"),
        ({"why": {"text": "x"}, "one": {"selected": []}}, "answer_required", ".one"),
        (
            {"why": {"text": "x"}, "one": {"selected": ["Red"]}, "many": {"selected": ["A"]}},
            "invalid_answer",
            ".many.selected",
        ),
    ],
)
def test_what_is_no_answer_is_named(answers: Any, code: str, path: str) -> None:
    assert refused(parse_answers, asked(TEXT, ONE, MANY), answers) == (code, f"answers{path}")


def test_all_answers_together_are_bounded() -> None:
    questions = asked(*[{"id": f"q{n}", "kind": "text", "text": "?"} for n in range(20)])
    with pytest.raises(TooLarge) as error:
        parse_answers(questions, {f"q{n}": {"text": "ü" * 8_000} for n in range(20)})
    assert (error.value.code, error.value.param) == ("answer_too_large", "answers")


def path_of_the_refusal(call: Any, value: Any) -> str | None:
    try:
        call(value)
    except DomainError as error:
        return error.param
    return "none"


@pytest.mark.slow
@given(JSON)
def test_anything_else_is_refused_and_breaks_nothing(value: Any) -> None:
    questions = asked(TEXT, ONE, MANY)
    for call in (parse_questions, lambda v: parse_answers(questions, v), check_expiry):
        assert path_of_the_refusal(call, value)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["why", "one", "many"]), JSON))
def test_odd_answers_to_known_questions_break_nothing(value: Any) -> None:
    questions = asked(TEXT, ONE, MANY)
    assert path_of_the_refusal(lambda v: parse_answers(questions, v), value)
