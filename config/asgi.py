"""What an ASGI server is given: `config.asgi:application`."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from config.protocols import Application  # noqa: E402 (needs the filled registry)
from sessions_app.streaming import rendering  # noqa: E402
from sessions_app.web.live import LiveRenderer  # noqa: E402
from sessions_app.web.sidebar import render_row  # noqa: E402

rendering.plug(make_event_renderer=LiveRenderer, render_row=render_row)
application = Application()
