"""Tools: names that survive a provider's wire, who is offered which, and the probes."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.calls import read_arguments, tidy_calls
from engine.ports import ModelChoice, Tool, ToolCall, ToolContext, ToolOutput
from engine.tools import names
from engine.tools.base import Arguments, finish_in_thread, function_tool
from engine.tools.registry import (
    InvalidToolName,
    ToolNameCollision,
    ToolRegistry,
    build_registry,
)

SCRIPTED = ModelChoice("demo", "scripted")
ASSISTANT = ModelChoice("demo", "assistant")
CONTEXT = ToolContext("ses_1", "trn_1", "call_1", "trn_1:1:call_1")


class Nothing(Arguments):
    pass


async def nothing(arguments: Nothing, context: ToolContext) -> ToolOutput:
    """Does nothing."""
    return ToolOutput("")


def named(name: str) -> Tool:
    return function_tool(name, Nothing, nothing, repeatable=True)


def probe(home: Path, name: str) -> Tool:
    tool = build_registry(is_development=True, home=home).for_turn(None).find(name, SCRIPTED)
    assert tool is not None
    return tool


async def run(tool: Tool, arguments: Mapping[str, Any]) -> ToolOutput:
    assert tool.find_problem(arguments) is None
    return await tool.run(arguments, CONTEXT)


def test_names_go_over_the_wire_and_back() -> None:
    known = ["session.search", "models.list"]
    assert names.to_wire("session.search") == "session_search"
    assert names.from_wire("session_search", known) == "session.search"
    assert names.from_wire("made_up", known) == "made_up"


def test_names_that_would_be_one_on_the_wire_are_refused() -> None:
    registry = ToolRegistry()
    registry.register(named("a.b_c"))
    for name in ("a_b.c", "a.b_c", "a.b.c"):
        with pytest.raises(ToolNameCollision):
            registry.register(named(name))


@pytest.mark.parametrize("name", ["", "A.b", "a..b", ".a", "a.", "a-b", "a" * 65, "1a"])
def test_names_that_no_provider_takes_are_refused(name: str) -> None:
    with pytest.raises(InvalidToolName):
        ToolRegistry().register(named(name))


def test_probes_exist_in_development_alone(tmp_path: Path) -> None:
    production = build_registry(is_development=False, home=tmp_path).for_turn(None)
    offered = [spec.name for spec in production.offered(SCRIPTED)]
    assert offered == ["session.start_child", "session.wait_children", "session.result"]
    development = build_registry(is_development=True, home=tmp_path)
    assert len(development.for_turn(None).offered(SCRIPTED)) == 3 + 7
    assert [spec.name for spec in development.for_turn(None).offered(ASSISTANT)] == offered


def test_an_explicit_list_is_taken_verbatim(tmp_path: Path) -> None:
    registry = build_registry(is_development=True, home=tmp_path)
    assert registry.for_turn([]).offered(SCRIPTED) == []
    some = registry.for_turn(["probe.lookup", "made.up"])
    assert [spec.name for spec in some.offered(ASSISTANT)] == ["probe.lookup"]
    assert some.find("probe.append", SCRIPTED) is None


def test_a_list_within_the_default_tools_gives_no_model_more_than_they_do(tmp_path: Path) -> None:
    registry = build_registry(is_development=True, home=tmp_path)
    bounded = registry.for_turn(["probe.lookup", "session.result"], within_default=True)
    assert [spec.name for spec in bounded.offered(ASSISTANT)] == ["session.result"]
    assert bounded.find("probe.lookup", ASSISTANT) is None
    assert len(bounded.offered(SCRIPTED)) == 2


async def test_lines_appended_at_once_stay_whole(tmp_path: Path) -> None:
    append = probe(tmp_path, "probe.append")
    line = "x" * 5000
    await asyncio.gather(*[run(append, {"line": f"{n}{line}"}) for n in range(20)])
    lines = (tmp_path / "probe.log").read_text().splitlines()
    assert len(lines) == 20
    assert all(each.endswith(line) for each in lines)
    assert (await run(probe(tmp_path, "probe.lookup"), {})).text == "20"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("probe.append", {}, "line"),
        ("probe.append", {"line": "a\nb"}, "line"),
        ("probe.append", {"line": "a", "sleep_ms": "5"}, "sleep_ms"),
        ("probe.append", {"line": "a", "extra": 1}, "extra"),
        ("probe.big", {"bytes": -1}, "bytes"),
    ],
)
def test_arguments_that_do_not_fit_are_named(
    tmp_path: Path, name: str, arguments: dict[str, Any], told: str
) -> None:
    problem = probe(tmp_path, name).find_problem(arguments)
    assert problem is not None
    assert told in problem


async def test_the_other_probes(tmp_path: Path) -> None:
    assert len((await run(probe(tmp_path, "probe.big"), {"bytes": 1001})).text) == 1001
    encoded = base64.b64encode("né".encode()).decode()
    assert (await run(probe(tmp_path, "probe.raw"), {"base64": encoded})).text == "né"
    assert (await run(probe(tmp_path, "probe.raw"), {"base64": "§"})).is_error
    failed = await run(probe(tmp_path, "probe.error"), {"message": "No paper"})
    assert failed == ToolOutput("No paper", is_error=True)


async def test_work_in_a_thread_is_over_when_its_cancellation_is(tmp_path: Path) -> None:
    done: list[str] = []

    def slow() -> None:
        time.sleep(0.2)
        done.append("done")

    task = asyncio.create_task(finish_in_thread(slow))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["done"]


# --------------------------------------------------------------------- what a model may write


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("", {}),
        ("  ", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": "\\u0000"}', {"a": "\ufffd"}),
        ('{"a": "\\ud800x"}', {"a": "\ufffdx"}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        ('{"\\ud800": 1}', {"\ufffd": 1}),
    ],
)
def test_arguments_are_read_leniently(raw: str, value: dict[str, Any]) -> None:
    assert read_arguments(raw, max_bytes=100) == (value, None)


@pytest.mark.parametrize(
    "raw",
    [
        "{",
        "null",
        "[1]",
        '"x"',
        "{'a': 1}",
        '{"a": NaN}',
        "[" * 100_000,
        '{"a": 1' + "0" * 400 + "}",
    ],
)
def test_what_is_no_object_is_told(raw: str) -> None:
    value, problem = read_arguments(raw, max_bytes=1_000_000)
    if problem is None:
        # A number without bounds is a number all the same, if a float can say it.
        assert value["a"]
    else:
        assert "JSON" in problem


def test_arguments_that_are_too_large_are_told() -> None:
    value, problem = read_arguments('{"a": "' + "é" * 100 + '"}', max_bytes=100)
    assert problem is not None
    assert "100 bytes" in problem
    assert set(value) == {"invalid_json"}


def test_calls_have_ids_of_their_own() -> None:
    calls = [
        ToolCall("call_1", "a", "{}"),
        ToolCall("call_1", "b", "{}"),
        ToolCall("", "c\x00", "{}"),
        ToolCall("with spaces", "d" * 500, "x" * 500),
    ]
    tidy = tidy_calls(calls, max_bytes=100)
    assert tidy[0].call_id == "call_1"
    assert len({call.call_id for call in tidy}) == 4
    assert tidy[2].name == "c\ufffd"
    assert (len(tidy[3].name), len(tidy[3].arguments)) == (128, 101)
