"""What an HTTP answer of a provider means: whether a model spoke, or which fault it tells. No I/O.

Servers that call themselves compatible agree on little but the status, so their words are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.probing.verdicts import Outcome

_BY_STATUS = {
    401: Outcome.WRONG_KEY,
    403: Outcome.WRONG_KEY,
    402: Outcome.NO_QUOTA,
    404: Outcome.WRONG_PATH,
    405: Outcome.WRONG_PATH,
    429: Outcome.RATE_LIMITED,
}
_NO_QUOTA = re.compile(r"insufficient_quota|quota exceeded|credit balance", re.IGNORECASE)
# A path that is wrong may be told in words with “model” in them too: more is asked for.
_NO_MODEL = re.compile(
    r"model[_ ]not[_ ]found|(unknown|invalid|no such|not a valid) model|invalid_model"
    r"|model\b.{0,300}\b(not exist|not found|not available|not supported|unknown|not a valid)"
    r"|^model: ",
    re.IGNORECASE | re.DOTALL,
)
_MODEL_FAULTS = frozenset({400, 404, 422})


def judge(status: int, content_type: str, body: bytes) -> tuple[Outcome, str]:
    """The outcome, and the server's own words, as they came."""
    is_page = "html" in content_type.lower()
    if status < 300:
        return (Outcome.WRONG_PATH, "") if is_page else _judge_success(body)
    if status < 400:
        return Outcome.REDIRECTED, ""
    words = "" if is_page else words_of(body)
    return _fault(status, words, body), words


def first_event(body: bytes) -> Mapping[str, Any] | None:
    """The first whole `data:` of a stream of events that is a JSON object."""
    for line in body.split(b"\n")[:-1]:
        field, _, value = line.partition(b":")
        if field == b"data" and (found := _object_in(value)) is not None:
            return found
    return None


def words_of(body: bytes) -> str:
    """What an error says for people."""
    found = _object_in(body)
    if found is None:
        return body.decode("utf-8", "replace")
    inner = found.get("error", found)
    if not isinstance(inner, Mapping):
        return str(inner)
    for name in ("message", "detail", "error"):
        if isinstance(inner.get(name), str):
            return str(inner[name])
    return ""


def _judge_success(body: bytes) -> tuple[Outcome, str]:
    answer = first_event(body) or _object_in(body)
    if answer is None:
        return Outcome.WRONG_PATH, ""
    if "choices" in answer or answer.get("type") in {"message", "message_start"}:
        return Outcome.WORKS, ""
    if "error" in answer:
        told = json.dumps(answer).encode()
        return _fault(_code_of(answer), words_of(told), told), words_of(told)
    return Outcome.WRONG_PATH, ""


def _fault(status: int, words: str, body: bytes) -> Outcome:
    text = "\n".join([words, *_labels(body)])
    if status in _MODEL_FAULTS and _NO_MODEL.search(text):
        return Outcome.MODEL_UNKNOWN
    if status == 429 and _NO_QUOTA.search(text):
        return Outcome.NO_QUOTA
    fallback = Outcome.BROKEN if status >= 500 else Outcome.REQUEST_REFUSED
    return _BY_STATUS.get(status, fallback)


def _code_of(answer: Mapping[str, Any]) -> int:
    """Some servers tell an error inside of a stream that began well."""
    inner = answer["error"]
    code = inner.get("code") if isinstance(inner, Mapping) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def _labels(body: bytes) -> Iterator[str]:
    found = _object_in(body) or {}
    inner = found.get("error", found)
    if isinstance(inner, Mapping):
        yield from (str(inner[name]) for name in ("code", "type") if name in inner)


def _object_in(text: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None
