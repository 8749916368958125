"""
The tools a loop offers its model: what the wire lists, and what runs when one is called.
"""

import inspect

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from guardrails.core.arguments import Arguments, foreign_arguments
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.logs import log
from guardrails.policy.tools import Registered, Registry, checked_arguments, missing
from guardrails.session.session import Session, scoped
from guardrails.session.steps import Execute, is_async

from .forms import named
from .wire import Wire


Offered = Mapping[str, Any] | Tool | Callable[..., Any]
"""An entry of a `tools` list of either wire, a `Tool`, or a Python function."""


_TWICE: Final = "two tools are named `{name}`"


class Tools:
    """
    *tools* in their order, or those of a registry, and how to run each: a function runs itself, the others go to
    *execute*.

    A call in *session* through `session` of this object has its parameters checked at the boundary. The policy's
    parameters count if it declares them. A tool that is not listed is refused. Raises TypeError if nothing can run a
    tool, or its name is unfit or given twice, PolicyError if a tool is not valid.
    """

    def __init__(
        self, session: Session, wire: Wire, tools: "Registry | Iterable[Offered | Registry]", execute: Execute | None
    ) -> None:
        self._own = session
        self._wire = wire
        self._execute = None if execute is None else _checked(execute)
        self._offered = [tools] if isinstance(tools, Registry) else list(tools)
        self._begun = False
        self._seen: list[Mapping[str, Registered]] | None = None
        self.refresh()

    def refresh(self) -> None:
        """
        See what registries have by now.
        """
        seen = [offered.entries for offered in self._offered if isinstance(offered, Registry)]
        if self._seen is not None and all(a is b for a, b in zip(seen, self._seen, strict=True)):
            return
        self._seen = seen
        self.listed: list[dict[str, Any]] = []
        self._executors: dict[str, Execute] = {}
        self._tools: dict[str, Tool] = {}
        self._specs: dict[str, Arguments] = {}
        fresh = iter(seen)
        for offered in self._offered:
            if isinstance(offered, Registry):
                for entry in next(fresh).values():
                    self._register(entry)
            elif isinstance(offered, Mapping):
                self._list(dict(offered))
            elif isinstance(offered, Tool):
                self._declare(offered)
            else:
                [entry] = Registry([offered]).entries.values()
                self._register(entry)
        self.session = scoped(self._own, self._specs, self._tools.values())
        self._begun = True

    @property
    def asynchronous(self) -> list[str]:
        """
        The names of the tools that only an asynchronous loop can run.
        """
        executors = {**self._executors, "execute": self._execute}
        return [name for name, execute in executors.items() if execute is not None and is_async(execute)]

    def executor(self, name: str) -> Execute:
        """
        Returns the function that runs the tool *name*. For a tool that nobody offered it says so, with or without
        guards.
        """
        run = self._executors.get(name, self._execute if name in self._tools else None)
        return self._unknown if run is None else run

    def _list(self, tool: dict[str, Any]) -> None:
        name, said = named(tool)
        if name is not None:
            if self._execute is None:
                raise TypeError(f"`execute` is needed to run `{name}`")
            parameters = said.get("parameters")
            self._take(Tool(name=name), foreign_arguments(name, parameters) if parameters else None)
        self.listed.append(self._wire.tool(tool))

    def _declare(self, tool: Tool) -> None:
        if self._execute is None:
            raise TypeError(f"`execute` is needed to run `{tool.name}`")
        made = Registry()
        made.add(tool, self._execute)
        [entry] = made.entries.values()
        self._take(entry.tool, entry.tool.arguments())
        self.listed.append(entry.tool.openai(self._wire.form))

    def _register(self, entry: Registered) -> None:
        tool = entry.tool
        if self._begun and tool.name in self._tools:
            # Whoever registers a name that another registry has must not end a loop that is under way.
            log.warning("%s: the earlier one in `tools` stays", _TWICE.format(name=tool.name))
            return
        ruled = entry.fits and self._own.calls.defines(tool.name)
        self._executors[tool.name] = _checked(_fitting(entry) if ruled else entry.run, asynchronous=entry.asynchronous)
        self._take(tool, tool.arguments())
        self.listed.append(tool.openai(self._wire.form))

    def _take(self, tool: Tool, spec: Arguments | None) -> None:
        if tool.name in self._tools:
            raise TypeError(_TWICE.format(name=tool.name))
        self._tools[tool.name] = replace(tool, parameters=None)
        if spec is not None and not self._own.calls.defines(tool.name):
            self._specs[tool.name] = spec

    def _unknown(self, tool: str, arguments: Any) -> Envelope:
        return _unreadable() if tool in self._tools else missing(tool, self._tools)


def _fitting(entry: Registered) -> Execute:
    """
    Returns the function that runs *entry* after the policy's check. Text still has to become the type that its function
    annotates.
    """

    def fitting(tool: str, arguments: Any) -> Any:
        fitted = checked_arguments(entry.tool, arguments)
        return fitted if isinstance(fitted, Envelope) else entry.run(tool, fitted)

    return fitting


def _checked(execute: Execute, *, asynchronous: bool | None = None) -> Execute:
    """
    Returns *execute* as the same kind. It never runs on text that should have been an object, with guards or without.
    """
    if is_async(execute) if asynchronous is None else asynchronous:

        async def checked_async(tool: str, arguments: Any) -> Any:
            if isinstance(arguments, str):
                return _unreadable()
            made = execute(tool, arguments)
            return await made if inspect.isawaitable(made) else made

        return checked_async

    def checked(tool: str, arguments: Any) -> Any:
        return _unreadable() if isinstance(arguments, str) else execute(tool, arguments)

    return checked


def _unreadable() -> Envelope:
    return Envelope.error("validation", "the arguments are not a JSON object; send them as one")
