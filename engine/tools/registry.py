"""Which tools exist, and which of them a turn's model is offered.

To add a family: write `engine/tools/<family>.py` and register its tools in `build_registry`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from engine.ports import ModelChoice, Tool, ToolSpec
from engine.tools import names
from engine.tools.children import delegation_tools
from engine.tools.probe import probe_tools

SCRIPTED_MODEL = ("demo", "scripted")


class ToolNameCollision(ValueError):
    """Two tools would have the same name on a provider's wire."""


class InvalidToolName(ValueError):
    """A tool's name is lower case words with dots between, at most 64 characters."""


class ToolRegistry:
    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._only_scripted: set[str] = set()
        self._wires: dict[str, str] = {}

    def register(self, tool: Tool, *, only_scripted: bool = False) -> None:
        """`only_scripted`: offered unasked to the scripted model alone, to others by name.

        Raises ToolNameCollision and InvalidToolName.
        """
        name = tool.spec.name
        if not names.is_valid(name):
            raise InvalidToolName(name)
        other = self._wires.setdefault(names.to_wire(name), name)
        if other != name or name in self._tools:
            raise ToolNameCollision(f"{name} and {other} are both {names.to_wire(name)}")
        self._tools[name] = tool
        if only_scripted:
            self._only_scripted.add(name)

    def for_turn(
        self, chosen: Collection[str] | None, *, within_default: bool = False
    ) -> TurnTools:
        """`chosen` None: the default tools; else exactly the named ones that exist, of which
        `within_default` leaves the default ones.
        """
        return TurnTools(self, None if chosen is None else frozenset(chosen), within_default)

    def select(
        self, chosen: frozenset[str] | None, within_default: bool, model: ModelChoice
    ) -> Iterable[Tool]:
        is_scripted = (model.provider_id, model.model_id) == SCRIPTED_MODEL
        for name, tool in self._tools.items():
            is_default = is_scripted or name not in self._only_scripted
            if chosen is None:
                is_meant = is_default
            else:
                is_meant = name in chosen and (is_default or not within_default)
            if is_meant:
                yield tool


class TurnTools:
    """The tools of one turn, by the model that is asked."""

    def __init__(
        self, registry: ToolRegistry, chosen: frozenset[str] | None, within_default: bool
    ) -> None:
        self._registry = registry
        self._chosen = chosen
        self._within_default = within_default

    def offered(self, model: ModelChoice) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self._select(model)]

    def find(self, name: str, model: ModelChoice) -> Tool | None:
        return next((tool for tool in self._select(model) if tool.spec.name == name), None)

    def _select(self, model: ModelChoice) -> Iterable[Tool]:
        return self._registry.select(self._chosen, self._within_default, model)


def build_registry(*, is_development: bool, home: Path) -> ToolRegistry:
    """The tools of this installation."""
    registry = ToolRegistry()
    for tool in delegation_tools():
        registry.register(tool)
    if is_development:
        for tool in probe_tools(home):
            registry.register(tool, only_scripted=True)
    return registry
