"""What the supervisor does before it starts anything: migrations, and the demo in development.

One process for both, because what takes long is to import everything.
"""

from __future__ import annotations

import argparse

import django
from django.conf import settings
from django.core.management import call_command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True, help="where the server answers")
    arguments = parser.parse_args()
    django.setup()
    call_command("migrate", verbosity=1, interactive=False, skip_checks=True)
    if settings.IS_DEVELOPMENT:
        call_command("create_demo", base_url=arguments.base_url, skip_checks=True)


if __name__ == "__main__":
    main()
