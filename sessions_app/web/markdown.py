"""Markdown as people and agents write it, made into HTML that can do nothing.

Parsed with raw HTML off, then cleaned once more by an allow-list. Remote images become links:
nothing leaves the browser before somebody clicks.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from sessions_app.web.tags import icon

# Beyond these, text is shown as it was written: a slow parse must not hold a thread.
MARKDOWN_MAX_CHARACTERS = 60_000
BRACKETS_MAX = 3_000
MARKS_MAX = 8_000
LINKIFY_MAX_CHARACTERS = 12_000
HIGHLIGHT_MAX_CHARACTERS = 20_000
LIVE_HIGHLIGHT_MAX_CHARACTERS = 4_000

_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li"),
    *("strong", "em", "s", "a", "code", "pre", "span", "div"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {
    "a": {"href", "title", "class"},
    "code": {"class"},
    "div": {"class", "data-language"},
    "h2": {"class"},
    "ol": {"start"},
    "p": {"class", "dir"},
    "span": {"class"},
    "td": {"class"},
    "th": {"class"},
}
Tokens = Sequence[Token]
_SCHEMES = {"http", "https", "mailto"}
_BLOCKS_WITH_DIRECTION = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "td", "th"}


@dataclass(frozen=True, slots=True)
class Blocks:
    """`html` of the top-level blocks; the last one begins at `last_start` in the text."""

    html: str
    count: int
    last_start: int


def render_markdown(text: str) -> str:
    """One element per top-level block. Safe to put on a page."""
    return _render(text, HIGHLIGHT_MAX_CHARACTERS).html


def render_blocks(text: str) -> Blocks:
    """The same for a text that still grows: where its last block begins is said, too."""
    return _render(text, LIVE_HIGHLIGHT_MAX_CHARACTERS)


def _render(text: str, highlight_limit: int) -> Blocks:
    if _is_costly(text):
        plain = f'<p class="is-plain">{html.escape(text)}</p>'
        return Blocks(plain, 1, 0)
    parser = _parser(len(text) <= LINKIFY_MAX_CHARACTERS)
    env: dict[str, Any] = {"highlight_limit": highlight_limit}
    tokens = parser.parse(text, env)
    starts = [t.map[0] for t in tokens if t.level == 0 and t.nesting >= 0 and t.map]
    raw = parser.renderer.render(tokens, parser.options, env)
    return Blocks(_finish(_clean(raw)), len(starts), _offset(text, starts[-1]) if starts else 0)


def _is_costly(text: str) -> bool:
    """Some inputs cost the square of their length: they are known by how dense their marks are."""
    if len(text) > MARKDOWN_MAX_CHARACTERS or text.count("[") > BRACKETS_MAX:
        return True
    return sum(map(text.count, "[]*_`<|")) > MARKS_MAX


def _offset(text: str, line: int) -> int:
    position = 0
    for _ in range(line):
        position = text.index("\n", position) + 1
    return position


def _finish(cleaned: str) -> str:
    """What no writer may put there themselves: copy buttons, and keyboard scrolling."""
    made = cleaned.replace('<div class="table">', '<div class="table" tabindex="0">')
    return made.replace("<pre><code>", f'{_copy_button()}<pre tabindex="0"><code>')


@cache
def _copy_button() -> str:
    return (
        '<span class="code-tools"><button class="icon-button is-small" type="button" '
        f'data-copy-code aria-label="Copy code" title="Copy">{icon("copy", 14)}</button></span>'
    )


def _clean(raw: str) -> str:
    return nh3.clean(
        raw,
        tags=_TAGS,
        clean_content_tags={"script", "style"},
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
        set_tag_attribute_values={
            "a": {"target": "_blank"},
            **{tag: {"dir": "auto"} for tag in _BLOCKS_WITH_DIRECTION},
        },
    )


@cache
def _parser(linkify: bool) -> MarkdownIt:
    options = {"html": False, "linkify": linkify, "maxNesting": 20}
    parser = MarkdownIt("gfm-like", options, renderer_cls=_Renderer)
    if not linkify:
        parser.disable("linkify")
    return parser


class _Renderer(RendererHTML):
    """Code with a head, tables in a box of their own, alignment as classes, images as links."""

    def fence(self, tokens: Tokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        words = tokens[idx].info.split()
        return _code(tokens[idx].content, words[0] if words else "", env)

    def code_block(self, tokens: Tokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return _code(tokens[idx].content, "", env)

    def heading_open(self, tokens: Tokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        """All of one rank for a screen reader: the page's own heading is the only first one."""
        return f'<h2 class="is-{tokens[idx].tag[1:]}">'

    def heading_close(self, tokens: Tokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</h2>\n"

    def table_open(self, tokens: Tokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="table"><table>'

    def table_close(self, tokens: Tokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>"

    def th_open(self, tokens: Tokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return _cell(tokens[idx])

    def td_open(self, tokens: Tokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return _cell(tokens[idx])

    def image(self, tokens: Tokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        source = str(token.attrs.get("src", ""))
        name = token.content or "image"
        host = urlsplit(source).netloc
        label = f"{name} ({host})" if host else name
        return f'<a class="image-link" href="{html.escape(source)}">{html.escape(label)}</a>'


def _cell(token: Token) -> str:
    style = str(token.attrs.get("style", ""))
    for side in ("right", "center"):
        if style.endswith(side):
            return f'<{token.tag} class="to-{side}">'
    return f"<{token.tag}>"


def _code(text: str, language: str, env: EnvType) -> str:
    body, known = html.escape(text), ""
    if language and len(text) <= env.get("highlight_limit", HIGHLIGHT_MAX_CHARACTERS):
        lexer = _lexer(language.lower()[:40])
        if lexer is not None:
            known = lexer.name
            body = highlight(text, lexer, _formatter())
    return (
        f'<div class="code" data-language="{html.escape(known or language[:40])}">'
        f"<pre><code>{body}</code></pre></div>\n"
    )


@cache
def _formatter() -> HtmlFormatter[str]:
    return HtmlFormatter(nowrap=True)


def _lexer(name: str) -> Any:
    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
