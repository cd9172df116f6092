"""Structured questions: what an agent may ask, and what counts as an answer.

Both sides are bounded here and nowhere else. Paths in errors are relative to the value checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core.errors import InvalidInput, TooLarge
from core.text import find_unstorable, has_visible

QUESTIONS_MAX = 20
ID_MAX_CHARACTERS = 64
TEXT_MAX_CHARACTERS = 4_096
OPTIONS_MAX = 50
LABEL_MAX_CHARACTERS = 256
DESCRIPTION_MAX_CHARACTERS = 2_048
ANSWER_MAX_CHARACTERS = 8_192  # of one text
ANSWERS_MAX_BYTES = 65_536  # of all answers together, as JSON
EXPIRES_MAX_SECONDS = 30 * 24 * 3_600


class QuestionKind(StrEnum):
    TEXT = "text"
    SINGLE_SELECT = "single_select"
    MULTI_SELECT = "multi_select"


@dataclass(frozen=True, slots=True)
class Question:
    """`max_characters` bounds a text, also the one given as “other”."""

    id: str
    kind: QuestionKind
    text: str
    options: tuple[tuple[str, str], ...] = ()  # label, description
    required: bool = True
    allow_other: bool = False
    max_characters: int = ANSWER_MAX_CHARACTERS
    min_selected: int = 0
    max_selected: int = 0

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind.value,
            "text": self.text,
            "required": self.required,
            "max_characters": self.max_characters,
        }
        if self.kind is not QuestionKind.TEXT:
            value["options"] = [
                {"label": label, "description": description} for label, description in self.options
            ]
            value["allow_other"] = self.allow_other
            value["min_selected"] = self.min_selected
            value["max_selected"] = self.max_selected
        return value


COMMON_FIELDS = frozenset({"id", "kind", "text", "required", "max_characters"})
SELECT_FIELDS = COMMON_FIELDS | {"options", "allow_other", "min_selected", "max_selected"}


# ------------------------------------------------------------------------------- what is asked


def parse_questions(value: Any) -> tuple[Question, ...]:
    """The questions that a tool asks. Raises InvalidInput `invalid_question` with the path."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise _bad_question("", "Use a list of questions.")
    if not 1 <= len(value) <= QUESTIONS_MAX:
        raise _bad_question("", f"Ask 1 to {QUESTIONS_MAX} questions.")
    if (path := find_unstorable(list(value))) is not None:
        raise _bad_question(path, "Use text without NUL and without half surrogate pairs.")
    questions = tuple(_question(item, place) for place, item in enumerate(value))
    seen: set[str] = set()
    for place, question in enumerate(questions):
        if question.id in seen:
            raise _bad_question(f"[{place}].id", "Each question needs an id of its own.")
        seen.add(question.id)
    return questions


def check_expiry(seconds: Any) -> int | None:
    """Seconds until the question expires; None: never. Raises InvalidInput."""
    if seconds is None:
        return None
    if not _is_whole(seconds) or not 1 <= seconds <= EXPIRES_MAX_SECONDS:
        raise InvalidInput(
            "invalid_question",
            f"expires_in_seconds is a whole number from 1 to {EXPIRES_MAX_SECONDS} (30 days).",
            param="expires_in_seconds",
        )
    return int(seconds)


def _question(item: Any, place: int) -> Question:
    path = f"[{place}]"
    if not isinstance(item, Mapping):
        raise _bad_question(path, "A question is an object.")
    try:
        kind = QuestionKind(item.get("kind", ""))
    except ValueError:
        words = ", ".join(QuestionKind)
        raise _bad_question(f"{path}.kind", f"Use one of: {words}.") from None
    known = COMMON_FIELDS if kind is QuestionKind.TEXT else SELECT_FIELDS
    if unknown := sorted(map(str, item.keys() - known)):
        name = unknown[0][:ID_MAX_CHARACTERS]
        raise _bad_question(f"{path}.{name}", f"A {kind} question has no such field.")
    question_id = _text(item.get("id", f"q{place + 1}"), f"{path}.id", ID_MAX_CHARACTERS)
    text = _text(item.get("text"), f"{path}.text", TEXT_MAX_CHARACTERS)
    required = _flag(item.get("required", True), f"{path}.required")
    longest = _number(
        item.get("max_characters", ANSWER_MAX_CHARACTERS),
        f"{path}.max_characters",
        1,
        ANSWER_MAX_CHARACTERS,
    )
    if kind is QuestionKind.TEXT:
        return Question(question_id, kind, text, required=required, max_characters=longest)
    options = _options(item.get("options"), f"{path}.options")
    allow_other = _flag(item.get("allow_other", False), f"{path}.allow_other")
    least, most = _selected_bounds(item, path, kind, len(options) + allow_other)
    return Question(question_id, kind, text, options, required, allow_other, longest, least, most)


def _selected_bounds(
    item: Mapping[str, Any], path: str, kind: QuestionKind, available: int
) -> tuple[int, int]:
    """How many may be chosen, “other” counted, once the question is answered at all."""
    if kind is QuestionKind.SINGLE_SELECT:
        for name in ("min_selected", "max_selected"):
            if item.get(name, 1) != 1:
                raise _bad_question(f"{path}.{name}", "One is chosen of a single_select question.")
        return 1, 1
    least = _number(item.get("min_selected", 1), f"{path}.min_selected", 0, available)
    most = _number(item.get("max_selected", available), f"{path}.max_selected", 1, available)
    if least > most:
        raise _bad_question(f"{path}.min_selected", "It is larger than max_selected.")
    return least, most


def _options(value: Any, path: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise _bad_question(path, "Use a list of options.")
    if not 1 <= len(value) <= OPTIONS_MAX:
        raise _bad_question(path, f"Give 1 to {OPTIONS_MAX} options.")
    options: list[tuple[str, str]] = []
    labels: set[str] = set()
    for place, item in enumerate(value):
        inner = f"{path}[{place}]"
        option = {"label": item} if isinstance(item, str) else item
        if not isinstance(option, Mapping) or option.keys() - {"label", "description"}:
            raise _bad_question(inner, "An option is {label, description}.")
        label = _text(option.get("label"), f"{inner}.label", LABEL_MAX_CHARACTERS)
        description = option.get("description") or ""
        if not isinstance(description, str) or len(description) > DESCRIPTION_MAX_CHARACTERS:
            raise _bad_question(
                f"{inner}.description",
                f"Use a text of at most {DESCRIPTION_MAX_CHARACTERS} characters.",
            )
        if label in labels:
            raise _bad_question(f"{inner}.label", "Each option needs a label of its own.")
        labels.add(label)
        options.append((label, description))
    return tuple(options)


def _text(value: Any, path: str, longest: int) -> str:
    if not isinstance(value, str) or not has_visible(value) or len(value) > longest:
        raise _bad_question(path, f"Use a text of 1 to {longest} characters.")
    return value


def _flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise _bad_question(path, "Use true or false.")
    return value


def _number(value: Any, path: str, least: int, most: int) -> int:
    if not _is_whole(value) or not least <= value <= most:
        raise _bad_question(path, f"Use a whole number from {least} to {most}.")
    return int(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _bad_question(path: str, message: str) -> InvalidInput:
    return InvalidInput("invalid_question", message, param=f"questions{path}")


# ---------------------------------------------------------------------------- what is answered


def parse_answers(questions: Iterable[Mapping[str, Any]], value: Any) -> dict[str, dict[str, Any]]:
    """Answers by question id, each {text} or {selected, other}: those given, in a settled form.

    `questions` as `Question.to_json` wrote them. An optional question may be left out, a required
    one not. Raises InvalidInput `invalid_answer`, `invalid_text`, `unknown_question`,
    `answer_required`; TooLarge `answer_too_large`.
    """
    if not isinstance(value, Mapping):
        raise _bad_answer("", "Use an object: question id → answer.")
    if (path := find_unstorable(dict(value))) is not None:
        raise InvalidInput(
            "invalid_text",
            "Send text without NUL and without half surrogate pairs.",
            param=f"answers.{path}",
        )
    asked = {question["id"]: question for question in questions}
    for key in value:
        if key not in asked:
            raise InvalidInput(
                "unknown_question",
                "There is no question of that id.",
                param=f"answers.{str(key)[:ID_MAX_CHARACTERS]}",
            )
    answers: dict[str, dict[str, Any]] = {}
    for key, question in asked.items():
        answer = _answer(question, value.get(key), f".{key}")
        if answer is not None:
            answers[key] = answer
        elif question["required"]:
            raise InvalidInput(
                "answer_required", "This question needs an answer.", param=f"answers.{key}"
            )
    if len(json.dumps(answers, ensure_ascii=False).encode()) > ANSWERS_MAX_BYTES:
        raise TooLarge(
            "answer_too_large",
            f"All answers together have at most {ANSWERS_MAX_BYTES} bytes of JSON.",
            param="answers",
        )
    return answers


def _answer(question: Mapping[str, Any], given: Any, path: str) -> dict[str, Any] | None:
    """None where nothing was answered."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise _bad_answer(path, "An answer is an object.")
    is_text = question["kind"] == QuestionKind.TEXT
    known = {"text"} if is_text else {"selected", "other"}
    if unknown := sorted(given.keys() - known):
        raise _bad_answer(
            f"{path}.{unknown[0][:ID_MAX_CHARACTERS]}",
            f"An answer to this question has only: {', '.join(sorted(known))}.",
        )
    if is_text:
        text = _written(given.get("text"), f"{path}.text", question["max_characters"])
        return {"text": text} if text else None
    return _selection(question, given, path)


def _selection(
    question: Mapping[str, Any], given: Mapping[str, Any], path: str
) -> dict[str, Any] | None:
    selected = given.get("selected")
    selected = [] if selected is None else selected
    if not isinstance(selected, list) or len(selected) > OPTIONS_MAX:
        raise _bad_answer(f"{path}.selected", "Use a list of labels.")
    labels = [option["label"] for option in question["options"]]
    for place, label in enumerate(selected):
        if not isinstance(label, str) or label not in labels:
            raise _bad_answer(f"{path}.selected[{place}]", "Use the label of one of the options.")
        if label in selected[:place]:
            raise _bad_answer(f"{path}.selected[{place}]", "This option is chosen already.")
    other = _written(given.get("other"), f"{path}.other", question["max_characters"])
    if other and not question["allow_other"]:
        raise _bad_answer(f"{path}.other", "Only the options can be chosen here.")
    count = len(selected) + bool(other)
    if count == 0 and (not question["required"] or question["min_selected"] > 0):
        return None
    least, most = question["min_selected"], question["max_selected"]
    if not least <= count <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise _bad_answer(f"{path}.selected", f"Choose {wanted}.")
    answer: dict[str, Any] = {"selected": [label for label in labels if label in selected]}
    return {**answer, "other": other} if other else answer


def _written(value: Any, path: str, longest: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _bad_answer(path, "Use a text.")
    if len(value) > longest:
        raise _bad_answer(path, f"Use at most {longest} characters; this has {len(value)}.")
    return value if has_visible(value) else ""


def _bad_answer(path: str, message: str) -> InvalidInput:
    return InvalidInput("invalid_answer", message, param=f"answers{path}")
