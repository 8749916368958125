"""
The tools a loop offers its model: what the wire lists, and what runs when one is called.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from guardrails.core.arguments import foreign_arguments
from guardrails.core.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.logs import log
from guardrails.integrations.hosting import awaited
from guardrails.policy.tools import Registered, Registry, checked_arguments, missing
from guardrails.session.session import Session, scoped
from guardrails.session.steps import Execute, is_async


if TYPE_CHECKING:
    from .loop import Wire

Offered = Mapping[str, Any] | Tool | Callable[..., Any] | Registry
"""An entry of a `tools` list of the wire, a `Tool`, a Python function, or tools that may change."""


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
        self._entries: dict[str, Registered] = {}
        for listed, entry in self._offers():
            name = "" if entry is None else entry.tool.name
            if name in self._entries and not begun:
                raise TypeError(f"two tools are named `{name}`")
            if name in self._entries:
                # Whoever registers a name that another registry has must not end a loop that is under way.
                log.warning("two tools are named `%s`: the earlier one in `tools` stays", name)
                continue
            if entry is not None and entry.asynchronous and self._blocking:
                raise TypeError(f"`{name}` is asynchronous: use `arun`")
            if entry is not None:
                self._entries[name] = entry
            self.listed.append(listed)
        specs = {name: entry.tool.arguments() for name, entry in self._entries.items()}
        free = {name: spec for name, spec in specs.items() if spec is not None and not self._own.calls.defines(name)}
        self.session = scoped(self._own, free, [replace(one.tool, parameters=None) for one in self._entries.values()])

    def executor(self, name: str) -> Execute:
        """
        Returns the function that runs the tool *name*. For a tool that nobody offered it says so, with or without guards.
        """
        entry = self._entries.get(name)
        if entry is None:
            return lambda tool, _: missing(tool, self._entries)
        # After the policy's check, text still has to become the type that the function annotates.
        fits = entry.fits and self._own.calls.defines(name)

        def run(tool: str, arguments: Any) -> Any:
            if isinstance(arguments, str):
                # It never runs on text that should have been an object, with guards or without.
                return Envelope.error("validation", "the arguments are not a JSON object; send them as one")
            fitted = checked_arguments(entry.tool, arguments) if fits else arguments
            return fitted if isinstance(fitted, Envelope) else entry.run(tool, fitted)

        async def arun(tool: str, arguments: Any) -> Any:
            return await awaited(run(tool, arguments))

        return arun if entry.asynchronous else run

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

    def _offers(self) -> Iterator[tuple[dict[str, Any], Registered | None]]:
        """
        The entries to list, each with the tool that it is; one that the server runs is none, and passes no guard.
        """
        for offered in self._offered:
            if isinstance(offered, Registry):
                yield from ((entry.tool.openai(self._wire.form), entry) for entry in offered.entries.values())
                continue
            kind, said, entry = offered.get("type", "function"), offered.get("function", offered), None
            if kind == "custom":
                raise TypeError("a free-form tool (`custom`) is not run by this loop: offer a function of one text")
            if kind == "function":
                name, parameters, run = said["name"], said.get("parameters"), self._runs(said["name"])
                spec = foreign_arguments(name, parameters) if parameters else None
                entry = Registered(Tool(name=name, parameters=spec), run, is_async(run), fits=False)
            yield dict(offered), entry
