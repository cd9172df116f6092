"""`demo/assistant`: a deterministic model without a network, for the first minutes with Sederunt.

It greets, explains Sederunt, calculates, repeats, looks back over this conversation and shows
what a rendered answer looks like. It never pretends to be more: it says that it is a demo and how
to connect a real model.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from core.text import clip, one_line
from engine.ports import (
    AgentReply,
    Finish,
    HistoryItem,
    ModelRequest,
    StreamPart,
    TextDelta,
    Usage,
    UserText,
)
from engine.providers.arithmetic import calculate
from engine.providers.assistant_texts import (
    CONNECT,
    FALLBACK,
    GREETING,
    HELP,
    LONG,
    SAMPLES,
    THANKS,
    TOPICS,
)

# About sixty words a second, but no answer takes longer than some seconds. Only the long answer
# takes a quarter of a minute: time to reload the page, and to kill its worker.
WORD_SECONDS = 0.018
LONG_WORD_SECONDS = 0.055
ANSWER_MAX_SECONDS = 8.0
QUOTE_MAX_CHARACTERS = 160
SUM_MAX_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Asked:
    """The prompt, the same in small letters, and the conversation before it."""

    text: str
    small: str
    before: Sequence[HistoryItem]

    def has(self, *words: str) -> bool:
        return any(re.search(rf"(?<!\w){word}(?!\w)", self.small) for word in words)


class AssistantProvider:
    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        text = answer(request.history)
        words = re.findall(r"\s*\S+\s*", text) or [text]
        quick = min(WORD_SECONDS, ANSWER_MAX_SECONDS / len(words))
        pause = LONG_WORD_SECONDS if text == LONG else quick
        for word in words:
            await asyncio.sleep(pause)
            yield TextDelta(word)
        sent = sum(len(item.text) for item in request.history)
        yield Usage(sent // 4 + 1, len(text) // 4 + 1)
        yield Finish("stop")

    async def aclose(self) -> None:
        """It holds nothing open."""


def answer(history: Sequence[HistoryItem]) -> str:
    """The answer to the last prompt of the history."""
    places = [n for n, item in enumerate(history) if isinstance(item, UserText)]
    if not places:
        return GREETING
    text = history[places[-1]].text.strip()
    asked = Asked(text, text.casefold(), history[: places[-1]])
    for rule in _RULES:
        if (found := rule(asked)) is not None:
            return found
    return FALLBACK.format(quote=clip(one_line(text), QUOTE_MAX_CHARACTERS))


_REPEAT = re.compile(
    r"(?:please\s+)?(?:repeat|echo|say)(?:\s+after me)?\s*:?\s+(.+)", re.IGNORECASE | re.DOTALL
)
_MY_WORDS = re.compile(r"what (?:did|have) i (?:say|said|ask|asked|write|written|tell|told)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def _repeat(asked: Asked) -> str | None:
    found = _REPEAT.match(asked.text)
    return found[1].strip() if found else None


def _count(asked: Asked) -> str | None:
    found = re.search(r"count (?:up )?(?:from 1 )?to (\d{1,4})\b", asked.small)
    if not found:
        return None
    return ", ".join(str(number) for number in range(1, min(int(found[1]), 1000) + 1)) + "."


def _calculate(asked: Asked) -> str | None:
    if len(asked.text) > SUM_MAX_CHARACTERS:
        return None
    found = re.search(r"[-\d(.][\d\s.,+\-*/×÷^%()]*[\d)]", asked.text)
    if not found or not re.search(r"[+\-*/×÷^%]", found[0]) or _DATE.search(found[0]):
        return None
    result = calculate(found[0])
    return f"`{one_line(found[0])}` = **{result}**" if result is not None else None


def _look_back(asked: Asked) -> str | None:
    mine = [item.text for item in asked.before if isinstance(item, UserText)]
    if asked.has("summari[sz]e", "summary", "recap", "sum up"):
        return _summary(asked.before, mine)
    if _MY_WORDS.search(asked.small):
        return _what_was_said(mine)
    return None


def _summary(before: Sequence[HistoryItem], mine: Sequence[str]) -> str:
    if not mine:
        return "There is nothing to sum up yet: this is the first message of the session."
    replies = sum(isinstance(item, AgentReply) for item in before)
    return (
        f"So far this session has {_number(len(mine), 'message')} of yours and "
        f"{_number(replies, 'answer')}. You wrote:\n\n{_quotes(mine)}\n\n"
        "I am the demo assistant: I list what was said, I do not understand it."
    )


def _what_was_said(mine: Sequence[str]) -> str:
    if not mine:
        return "Nothing before this message."
    return f"In this session you wrote, oldest first:\n\n{_quotes(mine)}"


def _quotes(texts: Sequence[str]) -> str:
    shown = texts[-20:]
    lines = [
        f"{n}. {clip(one_line(text), QUOTE_MAX_CHARACTERS)}" for n, text in enumerate(shown, 1)
    ]
    hidden = len(texts) - len(shown)
    return ("" if not hidden else f"({hidden} older not listed)\n\n") + "\n".join(lines)


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _samples(asked: Asked) -> str | None:
    wanted = [text for words, text in SAMPLES if asked.has(*words)]
    return "\n\n".join(wanted) if wanted else None


def _long(asked: Asked) -> str | None:
    return LONG if asked.has("long answer", "long text", "essay", "story") else None


def _connect(asked: Asked) -> str | None:
    about_models = asked.has("model", "models", "provider", "providers", "openai", "llm", "api key")
    how = asked.has(
        "connect", "add", "use", "real", "another", "configure", "set up", "switch", "how"
    )
    return CONNECT if about_models and how else None


def _topic(asked: Asked) -> str | None:
    return next((text for words, text in TOPICS if asked.has(*words)), None)


def _greet(asked: Asked) -> str | None:
    if asked.has("help", "what can you do", "who are you", "what are you"):
        return HELP
    if asked.has("thanks", "thank you", "cheers"):
        return THANKS
    greeting = r"(?:hi|hello|hey|good (?:morning|afternoon|evening)|greetings)\b"
    return GREETING if re.match(greeting, asked.small) and len(asked.small) < 60 else None


_RULES: tuple[Callable[[Asked], str | None], ...] = (
    _repeat,
    _count,
    _look_back,
    _connect,
    _samples,
    _long,
    _calculate,
    _greet,
    _topic,
)
