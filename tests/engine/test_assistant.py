"""The demo assistant: the same question, the same answer, and no pretence."""

from __future__ import annotations

import time

import pytest

from engine.ports import (
    AgentReply,
    Finish,
    ModelChoice,
    ModelRequest,
    TextDelta,
    TurnPosition,
    UserText,
)
from engine.providers.arithmetic import calculate
from engine.providers.assistant import AssistantProvider, answer


def ask(prompt: str, *before: str) -> str:
    history = [item for text in before for item in (UserText(text), AgentReply("Yes."))]
    return answer([*history, UserText(prompt)])


@pytest.mark.parametrize("prompt", ["Hello", "who are you?", "frobnicate the marmalade"])
def test_it_says_that_it_is_a_demo(prompt: str) -> None:
    assert "demo assistant" in ask(prompt)


@pytest.mark.parametrize(
    "prompt", ["How do I connect a real model?", "add an OpenAI provider", "use another model"]
)
def test_it_says_how_to_connect_a_real_model(prompt: str) -> None:
    assert "Providers and models" in ask(prompt)


def test_it_explains_sederunt() -> None:
    assert "durable AI-agent sessions" in ask("What is Sederunt?")
    assert "lease" in ask("What happens when a worker dies?")


@pytest.mark.parametrize(
    ("prompt", "result"),
    [
        ("What is 17 × 23?", "391"),
        ("2^10", "1024"),
        ("(1 + 2) * 3.5", "10.5"),
        ("1,000 / 8", "125"),
        ("-3 + 1", "-2"),
        ("what's 10 / 4 please", "2.5"),
    ],
)
def test_it_calculates(prompt: str, result: str) -> None:
    assert ask(prompt).endswith(f"= **{result}**")


@pytest.mark.parametrize("text", ["1/0", "9**9**9", "2**9999", "__import__('os')", "1+", "9" * 500])
def test_what_is_no_sum_has_no_value(text: str) -> None:
    assert calculate(text) is None


def test_a_date_is_no_sum() -> None:
    assert "=" not in ask("remember 2026-05-01")


def test_it_looks_back_over_the_conversation() -> None:
    told = ask("What did I say?", "The train leaves at nine", "From platform two")
    assert "1. The train leaves at nine" in told
    assert "2. From platform two" in told
    assert "2 messages of yours and 2 answers" in ask("summarise", "one", "two")
    assert "first message" in ask("Summarize this conversation")


def test_it_shows_how_answers_look() -> None:
    both = ask("show me a table and some code")
    assert "|---|" in both
    assert "```python" in both


def test_it_repeats_and_counts() -> None:
    assert ask("repeat: one\n\ntwo") == "one\n\ntwo"
    assert ask("count to 4") == "1, 2, 3, 4."


@pytest.mark.slow
def test_a_huge_prompt_is_answered_quickly() -> None:
    began = time.monotonic()
    for prompt in ("(" * 100_000, "1 " * 50_000, "say " * 25_000):
        assert ask(prompt)
    assert time.monotonic() - began < 2


@pytest.mark.slow
async def test_it_streams_word_by_word_and_adds_nothing() -> None:
    request = ModelRequest(
        ModelChoice("demo", "assistant"), "", (UserText("Hello"),), (), TurnPosition()
    )
    parts = [part async for part in AssistantProvider().stream(request)]
    texts = [part.text for part in parts if isinstance(part, TextDelta)]
    assert len(texts) > 20
    assert "".join(texts) == ask("Hello")
    assert isinstance(parts[-1], Finish)
