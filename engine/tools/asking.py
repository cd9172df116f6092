"""Tools whose result is what people answer. The rules are `sessions_app.domain.questions`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from core.errors import InvalidInput
from engine.ports import Asked, Tool, ToolContext
from engine.tools.base import Arguments, function_tool
from sessions_app.domain.questions import (
    ANSWER_MAX_CHARACTERS,
    EXPIRES_MAX_SECONDS,
    OPTIONS_MAX,
    QUESTIONS_MAX,
    check_expiry,
    parse_questions,
)


class Option(Arguments):
    label: str
    description: str = ""


class AskedQuestion(Arguments):
    """`options` and what follows are for the two selects."""

    id: str | None = Field(default=None, description="Names the answer; q1, q2, … by default.")
    kind: Literal["text", "single_select", "multi_select"]
    text: str = Field(description="What the person is asked.")
    required: bool = True
    max_characters: int = Field(default=ANSWER_MAX_CHARACTERS, description="Of a text.")
    options: list[Option | str] | None = Field(default=None, max_length=OPTIONS_MAX)
    allow_other: bool | None = Field(default=None, description="A text of their own, too.")
    min_selected: int | None = None
    max_selected: int | None = None


class Ask(Arguments):
    questions: list[AskedQuestion] = Field(min_length=1, max_length=QUESTIONS_MAX)
    allow_skip: bool = False
    expires_in_seconds: int | None = Field(default=None, ge=1, le=EXPIRES_MAX_SECONDS)


def question_tool(name: str, description: str) -> Tool:
    """A tool that asks what it is given. Asking twice before the log has it asks once."""

    async def ask(arguments: Ask, context: ToolContext) -> Asked:
        questions = tuple(question.to_json() for question in parse_questions(_plain(arguments)))
        return Asked(questions, arguments.allow_skip, check_expiry(arguments.expires_in_seconds))

    ask.__doc__ = description
    return function_tool(name, Ask, ask, repeatable=True, check=_find_problem)


def _plain(arguments: Ask) -> list[dict[str, Any]]:
    return [question.model_dump(exclude_none=True) for question in arguments.questions]


def _find_problem(arguments: Ask) -> str | None:
    try:
        parse_questions(_plain(arguments))
    except InvalidInput as error:
        return f"The arguments do not fit this tool. {error.param}: {error.message}"
    return None
