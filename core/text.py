"""Text at the border: what may be stored, how it is cut, what must not be shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
REDACTED = "[redacted]"
REASON_MAX_CHARACTERS = 400
# Kept from a hostile or broken server's body before any pattern runs over it.
REASON_MAX_READ = 20_000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Where a match may begin anywhere its first part is bounded: else long texts cost their square.
_SECRETS = (
    re.compile(r"(?i)\b(bearer|basic|token)\s+[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(
        r"(?i)\b(authorization|x-api-key|api[-_]?key|cookie|set-cookie|password|secret)"
        r"(['\"]?\s*[:=]\s*['\"]?)[^\s'\",;]+"
    ),
    re.compile(r"\b(?:sk|pk|sed_w|sed_o|xox[abp]|gh[pousr]|AIza)[-_A-Za-z0-9*]{6,}"),
    re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://[^\s/@:]+:[^\s/@]+@\S+"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"),
)
# In this order. Every part is bounded: a line of marks alone must cost no more than its length.
_MARKS = tuple(
    (re.compile(pattern), kept)
    for pattern, kept in (
        (r"!?\[([^\[\]]{0,200})\]\([^()\s]{0,300}\)?", r"\1"),
        (r"^(?:\s*(?:#{1,6}|>|[-*+]|\d{1,3}[.)])\s)+", ""),
        (r"(?<!\S)#{2,6}\s", ""),
        (r"`{1,3}", ""),
        (r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*]{1,200}?)(?<=[^\s*])\1(?!\w)", r"\2"),
        (r"(?<![\w_])(_{1,3})(?=[^\s_])([^_]{1,200}?)(?<=[^\s_])\1(?!\w)", r"\2"),
        (r"~~(?=\S)([^~]{1,200})~~", r"\1"),
        (r"(?<!\S)\*{1,3}(?=[^\s*])", ""),
    )
)


_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
# Letters and symbols by their category, and blank: fillers of Hangul, the empty Braille cell.
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def is_storable(text: str) -> bool:
    """PostgreSQL holds no NUL, and no JSON may hold half a surrogate pair."""
    return _UNSTORABLE.search(text) is None


def has_visible(text: str) -> bool:
    """Whether anything of it can be seen: spaces, controls, joiners and fillers cannot."""
    return any(
        unicodedata.category(character) not in _INVISIBLE and character not in _FILLERS
        for character in text
    )


def make_storable(text: str) -> str:
    """What a model or tool sent, with each unstorable character replaced by U+FFFD.

    Two halves that belong together are one character and stay.
    """
    if is_storable(text):
        return text
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _UNSTORABLE.sub(REPLACEMENT, paired)


def make_storable_json(value: Any) -> Any:
    """The same for every text and key inside a JSON value."""
    if isinstance(value, str):
        return make_storable(value)
    if isinstance(value, dict):
        return {make_storable(str(k)): make_storable_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [make_storable_json(item) for item in value]
    return value


def find_unstorable(value: Any, path: str = "") -> str | None:
    """The path of the first text or key inside a JSON value that cannot be stored."""
    if isinstance(value, str):
        return None if is_storable(value) else path
    if isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{make_storable(str(key))}" if path else make_storable(str(key))
            if not is_storable(str(key)):
                return inner
            if (found := find_unstorable(item, inner)) is not None:
                return found
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if (found := find_unstorable(item, f"{path}[{index}]")) is not None:
                return found
    return None


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, the last one an ellipsis where something was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def strip_marks(text: str) -> str:
    """A line of Markdown as its words: without marks of emphasis, code, headings, quotes, links.

    For a line that may have been cut: an opened mark need not be closed. No parse, and not exact.
    """
    for pattern, kept in _MARKS:
        text = pattern.sub(kept, text)
    return text.strip()


def one_line(text: str) -> str:
    return " ".join(text.split())


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Without keys, tokens, headers and URLs with credentials. Redact first, cut afterwards."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, REDACTED)
    for pattern in _SECRETS:
        text = pattern.sub(_keep_label, text)
    return text


def clean_reason(reason: str, secrets: Iterable[str] = ()) -> str:
    """The words of a server that is not ours, for people. They are redacted before they are cut,
    so that no cut leaves half a key.
    """
    if len(reason) > REASON_MAX_READ:
        # The last word may be half a key, which no pattern would recognise.
        reason = reason[:REASON_MAX_READ].rpartition(" ")[0]
    text = one_line(make_storable(reason))
    return clip(redact(text, tuple(secrets)), REASON_MAX_CHARACTERS)


def _keep_label(match: re.Match[str]) -> str:
    groups = match.groups()
    if len(groups) == 2:
        return f"{groups[0]}{groups[1]}{REDACTED}"
    return f"{groups[0]} {REDACTED}" if groups else REDACTED
