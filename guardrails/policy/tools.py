"""
The tools of an agent by name: the schema that the model is told of each, and the function that a call runs.
"""

import importlib.util
import inspect
import re
import sys

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from guardrails.core.arguments import Arguments
from guardrails.core.envelope import Envelope
from guardrails.core.guards.base import Facts
from guardrails.core.guards.tool_filter import ToolFilter
from guardrails.core.guards.validation import Validation
from guardrails.core.state import SessionState
from guardrails.core.tool import Tool, Wire, host_arguments, tool_call
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Denial, ToolCall
from guardrails.session.steps import is_async

from .check import checked_settings


if TYPE_CHECKING:
    from pydantic import BaseModel


F = TypeVar("F", bound=Callable[..., Any])
Run = Callable[[str, Any], Any]
Parameters = type["BaseModel"] | Mapping[str, Any] | Arguments
"""The parameters of a tool, if its function does not define them: a pydantic model, a JSON Schema, a made check."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What the API takes as the name of a function."""


@dataclass(frozen=True, slots=True)
class Registered:
    """
    One tool of a registry.
    """

    tool: Tool
    """Its *parameters* are the check of its arguments, None where it has none."""
    run: Run
    """`run(name, arguments)` with arguments that passed the check; it is awaited where *asynchronous*."""
    asynchronous: bool
    fits: bool
    """Runs on arguments of exactly the check's form only, so that no other check may stand in its place."""


class Registry:
    """
    Tools by name. A name that is registered again replaces the earlier tool. Safe in any number of threads.

    *tools* are functions, to begin with. A loop over a registry sees tools that were registered or removed meanwhile at
    its next request.

        registry = Registry()

        @registry.register(timeout=5)
        def search_hotels(city: str) -> list[dict]: ...

        registry.register(book, parameters=Booking)               # a pydantic model, or a JSON Schema
        registry.add(Tool(name="fs__read", parameters=schema), execute)   # run by `execute(tool, arguments)`
    """

    def __init__(self, tools: Iterable[Callable[..., Any]] = ()) -> None:
        self._lock = Lock()
        self.entries: Mapping[str, Registered] = {}
        """The tools that are registered now, by name and sorted. Each change makes another object, and none is ever changed itself."""
        for function in tools:
            self.register(function)

    @overload
    def register(self, function: F, *, parameters: Parameters | None = None, **declarations: Any) -> F: ...

    @overload
    def register(self, *, parameters: Parameters | None = None, **declarations: Any) -> Callable[[F], F]: ...

    def register(self, function: Any = None, *, parameters: Parameters | None = None, **declarations: Any) -> Any:
        """
        Offer *function*, by a call or as a decorator. Returns it unchanged.

        Name, description and parameters are those of its signature and docstring, unless *declarations* (the fields of
        `Tool`: `name`, `description`, `timeout`, `repeats`, ...) and *parameters* say otherwise. With a pydantic model
        or a JSON Schema as *parameters* the function gets them by keyword. If its one parameter is annotated with the
        model, it gets an instance.

        Raises TypeError for a name that no model can call, PolicyError if a declaration or the parameters are not
        valid.
        """
        if function is None:
            return lambda later: self.register(later, parameters=parameters, **declarations)
        if not callable(function):
            raise TypeError(f"`{function!r:.80}` is no function: use `add` for a tool that something else runs")
        spec: Any = Tool(name="-", parameters=function if parameters is None else parameters).arguments()
        tool = Tool.of(function, **declarations)
        self._put(tool, spec, _bound(function, spec, parameters), asynchronous=is_async(function), fits=True)
        return function

    def add(self, tool: Tool, execute: Callable[[str, Any], Any]) -> None:
        """
        Offer *tool*, run by `execute(tool, arguments)`, sync or async: the way for a tool of an MCP server.

        A JSON Schema that is not valid is one warning, and its tool unchecked. Raises as `register` does for all else.
        """
        if not callable(execute):
            raise TypeError(f"`execute` is a function of (tool, arguments), not `{type(execute).__name__}`")
        self._put(tool, host_arguments(tool), execute, asynchronous=is_async(execute), fits=False)

    def remove(self, name: str) -> bool:
        """
        Offer *name* no longer. Returns whether it was there.
        """
        with self._lock:
            before, self.entries = self.entries, {key: one for key, one in self.entries.items() if key != name}
        return name in before

    @property
    def tools(self) -> list[Tool]:
        """
        The declarations, sorted by name: for `Policy(tools=...)` and `policy.coverage`.
        """
        return [entry.tool for entry in self.entries.values()]

    def schemas(self, wire: Wire = "chat") -> list[dict[str, Any]]:
        """
        Returns the tools as a model is told of them, sorted by name: the `tools` of chat.completions, or of Responses.
        """
        return [entry.tool.openai(wire) for entry in self.entries.values()]

    def execute(self, tool: str, arguments: Any) -> Any:
        """
        Check *arguments*, a mapping or JSON text, and run *tool*. Returns its result, or an `Envelope` that says why it
        did not run. Either there is no such tool (`tool_missing`), or the arguments do not fit. No guard is asked: for
        that, give this to `session.call`.

        Raises the tool's own exceptions, TypeError if the tool is asynchronous.
        """
        entry = self.entries.get(tool)
        if entry is not None and entry.asynchronous:
            raise TypeError(f"`{tool}` is asynchronous: use `aexecute`")
        return self._started(tool, arguments)

    async def aexecute(self, tool: str, arguments: Any) -> Any:
        """
        Returns the same, awaited, for tools of both kinds.
        """
        made = self._started(tool, arguments)
        return await made if inspect.isawaitable(made) else made

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def _put(self, tool: Tool, spec: Arguments | None, run: Run, *, asynchronous: bool, fits: bool) -> None:
        if _NAME.fullmatch(tool.name) is None:
            rule = "a model calls it by 1 to 64 letters, digits, `_` or `-`. Define it with `def`, or give it a `name`"
            raise TypeError(f"`{tool.name}` is no name of a tool: {rule}")
        checked = checked_settings(tools=[replace(tool, parameters=spec)])["tools"]
        entry = Registered(checked[tool.name], run, asynchronous, fits)
        with self._lock:
            self.entries = dict(sorted({**self.entries, tool.name: entry}.items()))

    def _started(self, tool: str, arguments: Any) -> Any:
        entry = self.entries.get(tool)
        if entry is None:
            return missing(tool, self.entries)
        fitted = checked_arguments(entry.tool, arguments)
        return fitted if isinstance(fitted, Envelope) else entry.run(tool, fitted)


def checked_arguments(tool: Tool, arguments: Any) -> Any:
    """
    Returns *arguments*, a mapping or JSON text, as *tool* takes them, or the envelope that says why they do not fit.
    """
    call = tool_call(tool.name, arguments, "-", tool.arguments())
    denial = Validation().check(call, SessionState(), None, Facts(0, tool))
    return Envelope.refusal(denial) if isinstance(denial, Denial) else call.arguments


def missing(tool: str, known: Iterable[str]) -> Envelope:
    """
    Returns the envelope that a model reads if it calls a *tool* that is not among those *known*.
    """
    call, facts = ToolCall(tool, {}, "", None, None), Facts(0, Tool(name=tool), known=frozenset(known))
    denial: Any = ToolFilter().check(call, SessionState(), None, facts)
    return Envelope.refusal(denial)


def _bound(function: Callable[..., Any], spec: Any, model: Any) -> Run:
    """
    Returns *function* as it takes arguments that fit *spec*: as an instance of the *model* if its one parameter is annotated with
    that, else as its own signature says, or by keyword.
    """
    if inspect.isclass(model):
        taken = [one.annotation for one in inspect.signature(function).parameters.values()]
        if taken in ([model], [model.__name__]):
            validate: Any = model.model_validate  # type: ignore[attr-defined]
            return lambda _, arguments: function(validate(arguments, by_name=True))
    bind = getattr(spec, "bind", lambda arguments: ((), arguments))

    def run(_: str, arguments: Any) -> Any:
        positional, keywords = bind(arguments)
        return function(*positional, **keywords)

    return run


def run_file(file: str, holds: str) -> ModuleType:
    """
    Returns the module of a Python *file*, which *holds* `tools` or `guards`. It is run: it is to be one that is trusted.

    Raises PolicyError if there is none, or it cannot be run.
    """
    name = f"guardrails_own_{holds}_{Path(file).stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not Path(file).is_file():
        raise PolicyError([f"`{file}` is no Python file with {holds}"])
    # Types that it names are looked up there.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise PolicyError([f"`{file}` cannot be run: {type(error).__name__}: {error}"]) from error
    return module
