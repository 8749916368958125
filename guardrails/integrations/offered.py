"""
The tools a loop offers its model: what the wire lists, and what runs when one is called.
"""

import inspect

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..arguments import arguments_of
from ..arguments.function import FunctionArguments
from ..calls import Execute
from ..envelope import Envelope
from ..session import Session
from ..tool import Tool


Offered = Mapping[str, Any] | Callable[..., Any]
"""An entry of a chat.completions `tools` list, or a Python function."""


class Tools:
    """
    *tools* in their order, and how to run each: a function runs itself, the others go to *execute*.

    Their parameters are checked at the boundary of *session*, unless its policy already defines them. Raises TypeError
    where nothing can run a tool, PolicyError where parameters cannot be read.
    """

    def __init__(self, session: Session, tools: Iterable[Offered], execute: Execute | None) -> None:
        self.listed: list[dict[str, Any]] = []
        self._executors: dict[str, Execute] = {}
        self._execute = None if execute is None else _checked(execute)

        for tool in tools:
            if isinstance(tool, Mapping):
                self._list(session, dict(tool))
            else:
                self._define(session, tool)

    @property
    def asynchronous(self) -> list[str]:
        """
        What only an asynchronous loop can run, by name.
        """
        executors = {**self._executors, "execute": self._execute}
        return [name for name, execute in executors.items() if inspect.iscoroutinefunction(execute)]

    def executor(self, name: str) -> Execute:
        """
        What runs the tool *name*; for one that nobody offered it says so.
        """
        return self._executors.get(name) or self._execute or _missing

    def _list(self, session: Session, tool: dict[str, Any]) -> None:
        said = tool.get(tool.get("type", "function")) or {}
        name = said.get("name")
        if name is not None and self._execute is None:
            raise TypeError(f"`execute` is needed to run `{name}`")
        parameters = said.get("parameters")
        if name is not None and parameters and not _defined(session, name):
            session.define(name, arguments_of(parameters))
        self.listed.append(tool)

    def _define(self, session: Session, function: Callable[..., Any]) -> None:
        tool = Tool.of(function)
        spec = FunctionArguments(function)
        if not _defined(session, tool.name):
            session.define(tool.name, spec)
        self._executors[tool.name] = _checked(_called(function, spec))
        self.listed.append(tool.openai())


def _defined(session: Session, name: str) -> bool:
    return session.defines(name)


def _called(function: Callable[..., Any], spec: FunctionArguments) -> Execute:
    if inspect.iscoroutinefunction(function):

        async def execute_async(tool: str, arguments: Any) -> Any:
            positional, keywords = spec.bind(arguments)
            return await function(*positional, **keywords)

        return execute_async

    def execute(tool: str, arguments: Any) -> Any:
        positional, keywords = spec.bind(arguments)
        return function(*positional, **keywords)

    return execute


def _checked(execute: Execute) -> Execute:
    """
    *execute* as the same kind, but never run on text that should have been an object, whatever guards there are.
    """
    if inspect.iscoroutinefunction(execute):

        async def checked_async(tool: str, arguments: Any) -> Any:
            return _unreadable() if isinstance(arguments, str) else await execute(tool, arguments)

        return checked_async

    def checked(tool: str, arguments: Any) -> Any:
        return _unreadable() if isinstance(arguments, str) else execute(tool, arguments)

    return checked


def _unreadable() -> Envelope:
    return Envelope.error("validation", "the arguments are not a JSON object; send them as one")


def _missing(tool: str, arguments: Any) -> Envelope:
    return Envelope.error("tool_missing", f"there is no tool `{tool}`")
