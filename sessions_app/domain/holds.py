"""Pause and Resume over a tree: which mark counts where.

Each place (session, ancestor, workspace) keeps the revision of its last Pause and of its last
Resume, from one counter. A session is held if a pause stands at a place on its way up, with no
later resume at that place or nearer to the session.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """Revisions; 0 is never."""

    pause: int = 0
    resume: int = 0

    @property
    def stands(self) -> bool:
        """A pause was the last word at this place."""
        return self.pause > self.resume


def is_held(marks: Iterable[Mark]) -> bool:
    """`marks` from the session itself up to its workspace."""
    newest_resume = 0
    for mark in marks:
        newest_resume = max(newest_resume, mark.resume)
        if mark.pause > newest_resume:
            return True
    return False
