"""
The tools a loop offers its model: what the wire lists, and what runs when one is called.
"""

import inspect
import re

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from ..arguments import Arguments, arguments_of
from ..arguments.function import FunctionArguments
from ..calls import Execute
from ..envelope import Envelope
from ..errors import PolicyError
from ..guards.base import Facts
from ..guards.tool_filter import ToolFilter
from ..policy_check import checked_tools
from ..running import is_async
from ..session import Session
from ..state import SessionState
from ..tool import Tool
from ..types import Denial, ToolCall


Offered = Mapping[str, Any] | Tool | Callable[..., Any]
"""An entry of a chat.completions `tools` list, a `Tool`, or a Python function."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What the API takes as the name of a function."""


class Tools:
    """
    *tools* in their order, and how to run each: a function runs itself, the others go to *execute*.

    What is called in *session* through `session` of this has its parameters checked at the boundary, by those of the
    policy where it declares them; a tool that is not listed is refused. Raises TypeError where nothing can run a tool,
    its name does not do or is given twice, PolicyError where a tool is not valid.
    """

    def __init__(self, session: Session, tools: Iterable[Offered], execute: Execute | None) -> None:
        self.listed: list[dict[str, Any]] = []
        self._executors: dict[str, Execute] = {}
        self._execute = None if execute is None else _checked(execute)
        self._tools: dict[str, Tool] = {}
        self._specs: dict[str, Arguments] = {}

        for tool in tools:
            if isinstance(tool, Mapping):
                self._list(session, dict(tool))
            elif isinstance(tool, Tool):
                self._declare(session, tool)
            else:
                self._define(session, tool)
        self.session = session.scoped(self._specs, self._tools.values())

    @property
    def asynchronous(self) -> list[str]:
        """
        What only an asynchronous loop can run, by name.
        """
        executors = {**self._executors, "execute": self._execute}
        return [name for name, execute in executors.items() if execute is not None and is_async(execute)]

    def executor(self, name: str) -> Execute:
        """
        What runs the tool *name*; for one that nobody offered it says so, whatever guards there are.
        """
        run = self._executors.get(name, self._execute if name in self._tools else None)
        return self._unknown if run is None else run

    def _list(self, session: Session, tool: dict[str, Any]) -> None:
        said = tool.get(tool.get("type", "function")) or {}
        name = said.get("name")
        if name is not None:
            self._take(session, Tool(name=name), said.get("parameters"))
        self.listed.append(tool)

    def _declare(self, session: Session, tool: Tool) -> None:
        mistakes: list[str] = []
        checked_tools([tool], mistakes)
        if mistakes:
            raise PolicyError(mistakes)
        spec = tool.arguments()
        self._take(session, _named(tool), spec)
        self.listed.append(replace(tool, parameters=spec).openai())

    def _define(self, session: Session, function: Callable[..., Any]) -> None:
        spec = FunctionArguments(function)
        tool = replace(_named(Tool.of(function)), parameters=spec)
        ruled = session.defines(tool.name)
        self._executors[tool.name] = _checked(_called(function, spec, ruled=ruled))
        self._take(session, tool, spec)
        self.listed.append(tool.openai())

    def _take(self, session: Session, tool: Tool, parameters: Any) -> None:
        if tool.name in self._tools:
            raise TypeError(f"two tools are named `{tool.name}`")
        if tool.name not in self._executors and self._execute is None:
            raise TypeError(f"`execute` is needed to run `{tool.name}`")
        self._tools[tool.name] = replace(tool, parameters=None)
        if parameters and not session.defines(tool.name):
            self._specs[tool.name] = arguments_of(parameters) if isinstance(parameters, Mapping) else parameters

    def _unknown(self, tool: str, arguments: Any) -> Envelope:
        call = ToolCall(tool, arguments, "", None, None)
        denial = ToolFilter().check(call, SessionState(), Facts(0, Tool(name=tool), known=frozenset(self._tools)))
        return Envelope.refusal(denial) if isinstance(denial, Denial) else _unreadable()


def _named(tool: Tool) -> Tool:
    if _NAME.fullmatch(tool.name) is None:
        raise TypeError(
            f"`{tool.name}` is no name of a tool: a model calls it by 1 to 64 letters, digits, `_` or `-`; "
            f"define it with `def`, or give `Tool.of(..., name=...)` and `execute`"
        )
    return tool


def _called(function: Callable[..., Any], spec: FunctionArguments, *, ruled: bool) -> Execute:
    """
    What runs *function*; where the policy's check came first, text still has to become what the function annotates.
    """

    def bound(arguments: Any) -> Any:
        fitted: Any = spec.check(arguments)[0] if ruled else arguments
        positional, keywords = spec.bind(fitted)
        return function(*positional, **keywords)

    if is_async(function):

        async def execute_async(tool: str, arguments: Any) -> Any:
            made = bound(arguments)
            return await made if inspect.isawaitable(made) else made

        return execute_async

    return lambda tool, arguments: bound(arguments)


def _checked(execute: Execute) -> Execute:
    """
    *execute* as the same kind, but never run on text that should have been an object, whatever guards there are.
    """
    if is_async(execute):

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
