"""`manage.py verify_log [session …]`: do logs and rows tell the same story?"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.ids import InvalidId, Prefix, decode_id
from sessions_app.models import Session
from sessions_app.services.verification import verify_session


class Command(BaseCommand):
    help = "Folds the log of each session and compares the result with its rows."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sessions", nargs="*", help="Ids (ses_…); all sessions without any.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            chosen = [decode_id(Prefix.SESSION, text) for text in options["sessions"]]
        except InvalidId as error:
            raise CommandError(str(error)) from error
        ids = chosen or list(Session.objects.order_by("pk").values_list("pk", flat=True))
        problems = 0
        for session_id in ids:
            if not Session.objects.filter(pk=session_id).exists():
                raise CommandError(f"There is no session ses_{session_id.hex}.")
            for problem in verify_session(session_id=session_id):
                problems += 1
                self.stderr.write(f"ses_{session_id.hex}: {problem}")
        if problems:
            raise CommandError(f"{problems} disagreements in {len(ids)} sessions.")
        self.stdout.write(f"{len(ids)} sessions: log and rows agree.")
