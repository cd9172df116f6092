"""One supervised process: its log, its pid file, and when to start it again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.embedded_postgres import dying_with_us, write_private

# A process that lived this long did not die "at once".
SETTLED_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 30.0
LOG_MAX_BYTES = 20_000_000


@dataclass(slots=True)
class Child:
    """A process named `web-1`. Start it from the main thread: it is killed if that ends."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    home: Path
    inherited: Sequence[int] = ()
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    quick_deaths: int = 0
    not_before: float = field(default=0.0)

    @property
    def pid_file(self) -> Path:
        return self.home / "run" / f"{self.name}.pid"

    @property
    def log_file(self) -> Path:
        return self.home / "logs" / f"{self.name}.log"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        self.process = spawn(
            self.command,
            environment={**self.environment, "SEDERUNT_PROCESS": self.name},
            log_file=self.log_file,
            inherited=self.inherited,
        )
        self.started_at = time.monotonic()
        write_private(self.pid_file, f"{self.process.pid}\n")

    def tend(self) -> str:
        """Start it again if it died and its pause is over. Returns a sentence when it died."""
        if self.process is None:
            if time.monotonic() >= self.not_before:
                self.start()
            return ""
        code = self.process.poll()
        if code is None:
            return ""
        pause = self._note_death()
        return f"{self.name} {how_it_ended(code)}; it starts again in {pause:g} s ({self.log_file})"

    def _note_death(self) -> float:
        self.process = None
        lived = time.monotonic() - self.started_at
        self.quick_deaths = 0 if lived > SETTLED_SECONDS else self.quick_deaths + 1
        growing = FIRST_PAUSE_SECONDS * 2 ** max(0, self.quick_deaths - 1)
        pause = float(min(LONGEST_PAUSE_SECONDS, growing))
        self.not_before = time.monotonic() + pause
        return pause

    def signal(self, sign: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(sign)

    def forget(self) -> None:
        self.pid_file.unlink(missing_ok=True)


def spawn(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    log_file: Path,
    inherited: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """A process of its own session, writing to a log, killed by the kernel if we are."""
    if log_file.is_file() and log_file.stat().st_size > LOG_MAX_BYTES:
        log_file.replace(log_file.with_suffix(".log.1"))
    with log_file.open("ab") as log:
        return subprocess.Popen(
            dying_with_us([], "KILL") + list(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(environment),
            pass_fds=inherited,
            start_new_session=True,  # Ctrl-C in the terminal is the supervisor's to pass on
        )


def how_it_ended(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with status {code}"


def last_lines(log_file: Path, count: int = 3) -> str:
    try:
        text = log_file.read_text(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-count:])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
