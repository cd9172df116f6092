"""What templates may call: icons, state marks, times, initials."""

from __future__ import annotations

from datetime import datetime, tzinfo
from functools import cache
from typing import Any

import lucide
from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from core.clock import now, rfc3339
from sessions_app.web.times import age, full_time, left

register = template.Library()

# Shapes of our own: a state is told by its shape first.
_SHAPES = {
    "needs_you": '<path d="M8 2.5 13.5 8 8 13.5 2.5 8z" fill="currentColor"/>',
    "failed": (
        '<path d="M8 2.2 14.2 13H1.8z" fill="none" stroke="currentColor" stroke-width="1.5" '
        'stroke-linejoin="round"/><path d="M8 6v3.2M8 11v.1" stroke="currentColor" '
        'stroke-width="1.5" stroke-linecap="round"/>'
    ),
    "working": (
        '<circle cx="8" cy="8" r="5.25" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        '<path d="M8 4.2a3.8 3.8 0 0 1 0 7.6z" fill="currentColor"/>'
    ),
    "unread": '<circle cx="8" cy="8" r="3" fill="currentColor"/>',
    "paused": (
        '<path d="M6 4.5v7M10 4.5v7" stroke="currentColor" stroke-width="1.5" '
        'stroke-linecap="round"/>'
    ),
    "done": (
        '<path d="m3 8.5 3.2 3.2L13 5" fill="none" stroke="currentColor" stroke-width="1.5" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
    ),
    "sending": (
        '<circle cx="8" cy="8" r="5.25" fill="none" stroke="currentColor" stroke-width="1.5" '
        'stroke-dasharray="2.2 1.9"/>'
    ),
}
_SHAPES |= dict.fromkeys(("retrying", "awaiting", "queued"), _SHAPES["sending"])


@cache
def _icon(name: str, size: int, extra: str) -> SafeString:
    classes = f"icon {extra}".strip()
    attributes: dict[str, Any] = {"class": classes, "aria-hidden": "true"}
    return mark_safe(lucide._render_icon(name, size, **attributes))  # noqa: S308


@register.simple_tag
def icon(name: str, size: int = 16, extra: str = "") -> SafeString:
    """A lucide icon, inline; it says nothing to a screen reader."""
    return _icon(str(name), size, str(extra))


@register.simple_tag
def mark(state: str, size: int = 16) -> SafeString:
    """The shape of a state, beside which its word stands."""
    return _mark(str(state), size)


@cache
def _mark(state: str, size: int) -> SafeString:
    if state not in _SHAPES:
        return SafeString("")
    return mark_safe(  # noqa: S308 (our own constants)
        f'<span class="mark is-{state}"><svg width="{size}" height="{size}" viewBox="0 0 16 16" '
        f'aria-hidden="true">{_SHAPES[state]}</svg></span>'
    )


@register.simple_tag(takes_context=True)
def clock(context: template.Context, moment: datetime | None, css: str = "") -> SafeString:
    """`14:02`, the whole date on hover, in the reader's zone."""
    return _time(moment, context.get("zone"), "clock", css)


@register.simple_tag(takes_context=True)
def ago(context: template.Context, moment: datetime | None, css: str = "") -> SafeString:
    """`3h`, the absolute time on hover."""
    return _time(moment, context.get("zone"), "age", css)


@register.simple_tag(takes_context=True)
def date_and_time(context: template.Context, moment: datetime | None, css: str = "") -> SafeString:
    """`1 May 2026, 14:02`, in the reader's zone."""
    return _time(moment, context.get("zone"), "date", css)


@register.simple_tag(takes_context=True)
def time_left(context: template.Context, moment: datetime | None, css: str = "") -> SafeString:
    """`5m left`, until then."""
    return _time(moment, context.get("zone"), "left", css)


def _time(moment: datetime | None, zone: tzinfo | None, style: str, css: str) -> SafeString:
    if moment is None:
        return SafeString("")
    local = moment.astimezone(zone)
    texts = {"clock": f"{local:%H:%M}", "date": f"{local.day} {local:%B %Y, %H:%M}"}
    if style == "left":
        texts["left"] = left(moment - now())
    text = texts.get(style) or age(now() - moment)
    return format_html(
        '<time class="{}" datetime="{}" title="{}" data-as="{}">{}</time>',
        css,
        rfc3339(moment),
        full_time(local),
        style,
        text,
    )


@register.filter
def initials(name: str) -> str:
    """`AM` for Ada Moreau."""
    words = str(name).split()
    return "".join(word[0] for word in (words[:1] + words[1:][-1:])).upper()


@register.filter
def words(text: str) -> list[str]:
    return str(text).split()


@register.simple_tag
def sheet_url(name: str) -> str:
    return static(f"css/{name}.css")


@register.simple_tag
def url_of(act: str, workspace: str) -> str:
    return f"/w/{workspace}/{act}"


@register.simple_tag
def logo() -> SafeString:
    """People around a table."""
    return SafeString(
        '<svg width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" '
        'stroke-width="1.4" stroke-linecap="round" aria-hidden="true">'
        '<path d="M2 11a6 6 0 0 1 12 0M4.7 11a3.3 3.3 0 0 1 6.6 0M7.4 11a.6.6 0 0 1 1.2 0"/>'
        "</svg>"
    )
