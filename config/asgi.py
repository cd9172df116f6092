"""What an ASGI server is given: `config.asgi:application`."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from config.protocols import Application  # noqa: E402 (needs the filled registry)

application = Application()
