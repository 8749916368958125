"""
The tools a loop offers its model: what the wire lists, and what runs when one is called.
"""

import inspect

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from guardrails.core.arguments import Arguments, foreign_arguments
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.logs import log
from guardrails.policy.tools import Registered, Registry, checked_arguments, missing
from guardrails.session.session import Session, scoped
from guardrails.session.steps import Execute, is_async


if TYPE_CHECKING:
    from .loop import Wire

Offered = Mapping[str, Any] | Tool | Callable[..., Any] | Registry
"""An entry of a `tools` list of either wire, a `Tool`, a Python function, or tools that may change."""


class Tools:
    """
    The tools *offered* in their order, and how to run each: a function runs itself, the others go to *execute*.

    A call in `session` of this object has its parameters checked at the boundary. The policy's parameters count if it
    declares them. A tool that is not listed is refused. Raises TypeError if nothing can run a tool, also because nothing
    can be awaited (*blocking*), or its name is unfit or given twice, PolicyError if a tool is not valid.
    """

    def __init__(
        self,
        session: Session,
        wire: "Wire",
        offered: Registry | Iterable[Offered],
        execute: Execute | None,
        *,
        blocking: bool,
    ) -> None:
        self._own, self._wire, self._execute, self._blocking = session, wire, execute, blocking
        given = [offered] if isinstance(offered, Registry) else offered
        self._offered = [one if isinstance(one, Mapping) else self._registry(one) for one in given]
        self._seen: list[Mapping[str, Registered]] | None = None
        self.refresh()

    def refresh(self) -> None:
        """
        See what registries have by now.
        """
        seen = [offered.entries for offered in self._offered if isinstance(offered, Registry)]
        if self._seen is not None and all(a is b for a, b in zip(seen, self._seen, strict=True)):
            return
        begun, self._seen = self._seen is not None, seen
        self.listed: list[dict[str, Any]] = []
        self._executors: dict[str, Execute] = {}
        self._tools: dict[str, Tool] = {}
        self._specs: dict[str, Arguments] = {}
        for offered in self._offered:
            if isinstance(offered, Mapping):
                self._list(offered)
                continue
            for entry in offered.entries.values():
                if begun and entry.tool.name in self._tools:
                    # Whoever registers a name that another registry has must not end a loop that is under way.
                    log.warning("two tools are named `%s`: the earlier one in `tools` stays", entry.tool.name)
                else:
                    self._register(entry)
        self.session = scoped(self._own, self._specs, self._tools.values())

    def executor(self, name: str) -> Execute:
        """
        Returns the function that runs the tool *name*. For a tool that nobody offered it says so, with or without guards.
        """
        return self._executors.get(name) or (lambda tool, _: missing(tool, self._tools))

    def _registry(self, offered: Any) -> Registry:
        if isinstance(offered, Registry):
            return offered
        made = Registry(() if isinstance(offered, Tool) else [offered])
        if isinstance(offered, Tool):
            made.add(offered, self._runs(offered.name))
        return made

    def _runs(self, name: str) -> Execute:
        if self._execute is None:
            raise TypeError(f"`execute` is needed to run `{name}`")
        return self._execute

    def _list(self, entry: Mapping[str, Any]) -> None:
        """
        Offer an *entry* of either wire; one that the server runs passes no guard.
        """
        if entry.get("type", "function") == "custom":
            raise TypeError("a free-form tool (`custom`) is not run by this loop: offer a function of one text")
        if entry.get("type", "function") == "function":
            said = entry.get("function", entry)
            name, parameters = said["name"], said.get("parameters")
            self._take(Tool(name=name), foreign_arguments(name, parameters) if parameters else None, self._runs(name))
        self.listed.append(self._wire.listed(entry))

    def _register(self, entry: Registered) -> None:
        tool, run = entry.tool, entry.run
        if entry.fits and self._own.calls.defines(tool.name):
            # After the policy's check, text still has to become the type that the function annotates.
            run = _fitting(entry)
        self._take(tool, tool.arguments(), run, asynchronous=entry.asynchronous)
        self.listed.append(tool.openai(self._wire.form))

    def _take(self, tool: Tool, spec: Arguments | None, run: Execute, *, asynchronous: bool | None = None) -> None:
        if tool.name in self._tools:
            raise TypeError(f"two tools are named `{tool.name}`")
        asynchronous = is_async(run) if asynchronous is None else asynchronous
        if asynchronous and self._blocking:
            raise TypeError(f"`{tool.name}` is asynchronous: use `arun`")
        self._tools[tool.name] = replace(tool, parameters=None)
        self._executors[tool.name] = _checked(run, asynchronous=asynchronous)
        if spec is not None and not self._own.calls.defines(tool.name):
            self._specs[tool.name] = spec


def _fitting(entry: Registered) -> Execute:
    def fitting(tool: str, arguments: Any) -> Any:
        fitted = checked_arguments(entry.tool, arguments)
        return fitted if isinstance(fitted, Envelope) else entry.run(tool, fitted)

    return fitting


def _checked(execute: Execute, *, asynchronous: bool) -> Execute:
    """
    Returns *execute* as the same kind. It never runs on text that should have been an object, with guards or without.
    """

    def checked(tool: str, arguments: Any) -> Any:
        if isinstance(arguments, str):
            return Envelope.error("validation", "the arguments are not a JSON object; send them as one")
        return execute(tool, arguments)

    async def checked_async(tool: str, arguments: Any) -> Any:
        made = checked(tool, arguments)
        return await made if inspect.isawaitable(made) else made

    return checked_async if asynchronous else checked
