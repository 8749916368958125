"""
For the writer of an MCP server: tools that say what state things are in, whether that is all, and whether to try again.
"""

import inspect
import json

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, TypeVar, overload

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import core_schema

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError, needs
from guardrails.policy.policy import Policy
from guardrails.policy.tools import checked_arguments
from guardrails.session.session import Session
from guardrails.session.steps import is_async
from guardrails.stores.base import Store
from guardrails.stores.memory import MemoryStore

from .answers import RUN, refused
from .results import from_wire
from .runs import PROCESS


with needs("mcp", "`guardrails.mcp`"):
    from mcp_types import CallToolResult, InputRequiredResult, TextContent
    from mcp_types import ToolAnnotations as Annotations


F = TypeVar("F", bound=Callable[..., Any])
_ABSENT: Final = object()
"""In place of an argument that did not come."""
MAX_RUNS: Final = 10_000
"""Runs that are remembered; a client may name as many as it likes."""


class Answer(BaseModel):
    """
    The answer of a tool that succeeded; its JSON Schema is the tool's `outputSchema`.
    """

    model_config = ConfigDict(extra="allow")

    status: Literal["success"]
    result: Any = Field(default=None, description="The thing that was found or done, if it is no list.")
    results: list[Any] | None = Field(default=None, description="The things that were found, if they are a list.")
    query_summary: Any = Field(default=None, description="The question that was asked.")
    total_matches: int | None = Field(default=None, description="The number of matches, also if fewer are shown.")
    is_complete: bool | None = Field(default=None, description="Whether nothing is missing from the answer.")
    next_action_hint: str | None = Field(default=None, description="The next step to take, or the way to get the rest.")
    progress: dict[str, Any] | None = Field(
        default=None, description="The used part of the budget, and the part that is left."
    )
    limit_reached: bool | None = Field(default=None, description="Whether this call used up a limit.")
    limit_message: str | None = None


class AnsweringTools:
    """
    Registers functions as tools of *server*, an `mcp` MCPServer or a FastMCP, behind *policy*.

        tool = AnsweringTools(server, Policy.load("default"))

        @tool(read_only=True)
        def search_hotels(city: str) -> list[dict]: ...

    A success is an `Answer`, which the tool's `outputSchema` describes. A failure or a refusal says `isError` with one
    line for a person and the envelope as JSON below it, and in `_meta` under `ENVELOPE`. A call whose arguments do not
    fit is a failure too, a `validation_error`. Budgets and duplicates go by the run that a client names in `_meta`
    under `RUN`, else all calls of the process are one run.
    """

    def __init__(
        self, server: Any, policy: Policy, *, store: Store | None = None, records: Any = None, run: str = PROCESS
    ) -> None:
        self.server = server
        self.policy = policy
        self._fast = type(server).__module__.split(".")[0] == "fastmcp"
        self._store = MemoryStore() if store is None else store
        self._records = records
        self._run = run
        self._tools: dict[str, Tool] = {}
        self._sessions: OrderedDict[tuple[str, bool], Session] = OrderedDict()

    @overload
    def __call__(self, function: F, **declarations: Any) -> F: ...

    @overload
    def __call__(self, **declarations: Any) -> Callable[[F], F]: ...

    def __call__(self, function: Any = None, **declarations: Any) -> Any:
        """
        Register *function*; *declarations* are the fields of `Tool` (`read_only`, `timeout`, `cost_usd`, ...). It is
        returned as it is. Raises PolicyError if a declaration is not valid.
        """
        if function is None:
            return lambda later: self(later, **declarations)
        context = _context_of(function)
        hidden = () if context is None else (context,)
        tool = Tool.of(function, hidden=hidden, **declarations)
        self._tools[tool.name] = tool
        self._sessions.clear()
        made = self._answering(function, tool, context)
        annotations = Annotations(read_only_hint=tool.read_only, idempotent_hint=tool.idempotent)
        if self._fast:
            self.server.tool(
                name=tool.name,
                description=tool.description,
                annotations=annotations,
                output_schema=Answer.model_json_schema(),
            )(made)
        else:
            self.server.add_tool(made, name=tool.name, description=tool.description, annotations=annotations)
        return function

    def session(self, run: str, *, continuing: bool = False) -> Session:
        """
        The session of a *run*. Raises SessionError if *run* is no name of a session.
        """
        key = run, continuing
        session = self._sessions.get(key)
        if session is None:
            tools: Iterable[Tool] = self._tools.values()
            if continuing:
                # It carries what its client was asked for, and is the same call again, as often as the tool asks.
                tools = [replace(tool, repeats="allow") for tool in tools]
            session = self.policy.session(run, tools=tools, store=self._store, records=self._records)
            self._sessions[key] = session
            if len(self._sessions) > MAX_RUNS:
                (old, _), gone = self._sessions.popitem(last=False)
                gone.close()
                if (old, True) not in self._sessions and (old, False) not in self._sessions:
                    self._store.forget(old)
        else:
            self._sessions.move_to_end(key)
        return session

    def _answering(self, function: Callable[..., Any], tool: Tool, context: str | None) -> Callable[..., Any]:
        name = context or "guardrails_context"

        async def answer(**given: Any) -> Any:
            ctx = given[name] if context is not None else given.pop(name)
            passed = {name: given.pop(name)} if context is not None else {}
            run = (ctx.request_context.meta or {}).get(RUN, self._run)
            continuing = ctx.input_responses is not None or ctx.request_state is not None
            try:
                session = self.session(run if isinstance(run, str) else "", continuing=continuing)
            except SessionError as error:
                return self._told(Envelope("denied", message=f"`_meta` names no run: {error}", retryable=False))
            asked: list[InputRequiredResult] = []

            def heard(made: Any) -> Any:
                if isinstance(made, InputRequiredResult):
                    asked.append(made)
                    return "asked the client for input"
                return made

            async def awaited(_: str, arguments: Any) -> Any:
                fitted = checked_arguments(tool, arguments)
                return fitted if isinstance(fitted, Envelope) else heard(await function(**fitted, **passed))

            def called(_: str, arguments: Any) -> Any:
                fitted = checked_arguments(tool, arguments)
                return fitted if isinstance(fitted, Envelope) else heard(function(**fitted, **passed))

            # One that is synchronous runs in a thread where it has a timeout.
            given = {key: value for key, value in given.items() if value is not _ABSENT}
            envelope = await session.acall(tool.name, given, awaited if is_async(function) else called)
            # A question to the client is no answer: it goes out as it is, and the same call comes again with what was said.
            return asked[0] if asked else self._told(envelope)

        parameters = [
            one.replace(annotation=_unchecked(function, one, context))
            for one in inspect.signature(function).parameters.values()
        ]
        if context is None:
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=_context_class(fast=self._fast))
            )
        returned: Any = Any if self._fast else Annotated[CallToolResult, Answer]
        answer.__signature__ = inspect.Signature(parameters, return_annotation=returned)  # type: ignore[attr-defined]
        answer.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": returned}
        answer.__name__ = answer.__qualname__ = tool.name
        answer.__doc__ = function.__doc__
        return answer

    def _told(self, envelope: Envelope) -> Any:
        if envelope.ok:
            text = envelope.to_json("nested")
            read = json.loads(text)
            told = CallToolResult(content=[TextContent(type="text", text=text)], structured_content=read)
        else:
            told = from_wire(refused(envelope))
        if self._fast:
            with needs("fastmcp", "`AnsweringTools`"):
                from fastmcp.tools.base import ToolResult

            return ToolResult(told.content, told.structured_content, told.meta, told.is_error)
        return told


class _Unchecked:
    """
    Marks a parameter that the SDK shows to clients as it is annotated, and takes as it comes. The session answers a
    value that does not fit, with an envelope.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        # A client's arguments have been read by now, so that only the second counts; the first is what the schema shows.
        taken = core_schema.json_or_python_schema(handler(source), core_schema.any_schema())
        # A chain of one step gives its default, and does not make the parameter optional in the schema.
        return core_schema.chain_schema([core_schema.with_default_schema(taken, default_factory=lambda: _ABSENT)])


def _unchecked(function: Callable[..., Any], parameter: inspect.Parameter, context: str | None) -> Any:
    found = _resolved(function, parameter)
    return found if parameter.name == context else Annotated[found, _Unchecked()]


def _context_class(*, fast: bool) -> Any:
    if fast:
        with needs("fastmcp", "`AnsweringTools`"):
            from fastmcp import Context as FastContext

        return FastContext
    with needs("mcp", "`guardrails.mcp`"):
        from mcp.server.mcpserver import Context

    return Context


def _context_of(function: Callable[..., Any]) -> str | None:
    """
    The parameter by which *function* asks for the SDK's context.
    """
    for one in inspect.signature(function).parameters.values():
        found = _resolved(function, one)
        if inspect.isclass(found) and found.__name__ == "Context":
            return one.name
    return None


def _resolved(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    try:
        return inspect.get_annotations(function, eval_str=True)[parameter.name]
    except (NameError, KeyError, SyntaxError, TypeError, AttributeError):
        return Any
