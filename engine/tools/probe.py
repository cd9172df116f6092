"""Tools whose effects a test can count. They exist in development and in tests alone."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

from pydantic import Field

from engine.ports import Tool, ToolContext, ToolOutput
from engine.tools.asking import question_tool
from engine.tools.base import Arguments, finish_in_thread, function_tool

LOG_NAME = "probe.log"
BIG_MAX_BYTES = 50_000_000


class Append(Arguments):
    line: str = Field(pattern=r"^[^\r\n]*$", max_length=10_000)
    sleep_ms: int = Field(default=0, ge=0)


class AppendAsked(Arguments):
    line: str = Field(pattern=r"^[^\r\n]*$", max_length=10_000)


class Lookup(Arguments):
    sleep_ms: int = Field(default=0, ge=0)


class Big(Arguments):
    bytes: int = Field(ge=0, le=BIG_MAX_BYTES)


class Raw(Arguments):
    base64: str


class Error(Arguments):
    message: str


def probe_tools(home: Path) -> list[Tool]:
    """All probes; their effects go to `probe.log` in `home`."""
    path = home / LOG_NAME

    async def append(arguments: Append, context: ToolContext) -> ToolOutput:
        """Waits, then appends one line to the probe log."""
        await asyncio.sleep(arguments.sleep_ms / 1000)
        await finish_in_thread(lambda: append_line(path, arguments.line))
        return ToolOutput(f"appended {arguments.line}")

    async def append_asked(arguments: AppendAsked, context: ToolContext) -> ToolOutput:
        """Appends one line to the probe log, after somebody has approved it."""
        await finish_in_thread(lambda: append_line(path, arguments.line))
        return ToolOutput(f"appended {arguments.line}")

    async def lookup(arguments: Lookup, context: ToolContext) -> ToolOutput:
        """Waits, then says how many lines the probe log has."""
        await asyncio.sleep(arguments.sleep_ms / 1000)
        return ToolOutput(str(await finish_in_thread(lambda: count_lines(path))))

    async def big(arguments: Big, context: ToolContext) -> ToolOutput:
        """Returns a text of so many bytes."""
        line = "0123456789abcdef" * 4
        return ToolOutput((line * (arguments.bytes // len(line) + 1))[: arguments.bytes])

    async def raw(arguments: Raw, context: ToolContext) -> ToolOutput:
        """Returns the given bytes as text, whatever they are."""
        try:
            data = base64.b64decode(arguments.base64, validate=True)
        except ValueError:
            return ToolOutput("base64: this is not base64.", is_error=True)
        return ToolOutput(as_text(data))

    async def error(arguments: Error, context: ToolContext) -> ToolOutput:
        """Fails with the given message."""
        return ToolOutput(arguments.message, is_error=True)

    return [
        function_tool("probe.append", Append, append, repeatable=False),
        function_tool(
            "probe.append_asked", AppendAsked, append_asked, repeatable=False, policy="ask"
        ),
        question_tool("probe.ask", "Asks people structured questions and returns their answers."),
        function_tool("probe.lookup", Lookup, lookup, repeatable=True),
        function_tool("probe.big", Big, big, repeatable=True),
        function_tool("probe.raw", Raw, raw, repeatable=True),
        function_tool("probe.error", Error, error, repeatable=True),
    ]


def append_line(path: Path, line: str) -> None:
    """One write to a file opened for appending: concurrent lines never mix; then to the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def count_lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def as_text(data: bytes) -> str:
    """Text that may hold what no log can store, as a careless tool would return it."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")
