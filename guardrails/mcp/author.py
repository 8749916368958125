"""
For the writer of an MCP server: tools that say what state things are in, whether that is all, and whether to try again.
"""

import asyncio
import inspect
import json

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Annotated, Any, Final, Literal, TypeVar, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import core_schema

from guardrails.core.envelope import Envelope
from guardrails.core.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.policy.policy import Policy
from guardrails.policy.tools import checked_arguments
from guardrails.session.steps import in_thread, is_async
from guardrails.stores import Store

from .calls import Asks, Guarding, refused, run_of, scope_of


with needs("mcp", "`guardrails.mcp`"):
    from mcp.server.mcpserver import Context
    from mcp_types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations


F = TypeVar("F", bound=Callable[..., Any])
_ABSENT: Final = object()
"""In place of an argument that did not come."""


class Answer(BaseModel):
    """
    The answer of a tool that succeeded; its JSON Schema is the tool's `outputSchema`.
    """

    model_config = ConfigDict(extra="allow")

    status: Literal["success"]
    result: Any = Field(default=None, description="The thing that was found or done, if it is no list.")
    results: list[Any] | None = Field(default=None, description="The things that were found, if they are a list.")
    total_matches: int | None = Field(default=None, description="The number of matches, also if fewer are shown.")
    is_complete: bool | None = Field(default=None, description="Whether nothing is missing from the answer.")
    next_action_hint: str | None = Field(default=None, description="The next step to take, or the way to get the rest.")
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

    def __init__(self, server: Any, policy: Policy, *, store: Store | None = None, records: Any = None) -> None:
        self.server = server
        self._fast = import_module("fastmcp") if type(server).__module__.split(".")[0] == "fastmcp" else None
        self._guarding = Guarding(policy, store=store, records=records)

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
            return partial(self, **declarations)
        hints: dict[str, Any] = {}
        with suppress(NameError, TypeError):  # types that are there for a type checker only
            hints = get_type_hints(function, include_extras=True)
        context = next((name for name, one in hints.items() if getattr(one, "__name__", "") == "Context"), None)
        tool = Tool.of(function, hidden=() if context is None else (context,), **declarations)
        made = self._answering(function, tool, context, hints)
        annotations = ToolAnnotations(read_only_hint=tool.read_only, idempotent_hint=tool.idempotent)
        schema = {"output_schema": Answer.model_json_schema()} if self._fast else {}
        self.server.tool(name=tool.name, description=tool.description, annotations=annotations, **schema)(made)
        return function

    def _answering(self, function: Any, tool: Tool, context: str | None, hints: dict[str, Any]) -> Callable[..., Any]:
        """
        Returns the function that the server calls, with the parameters of *function* and the SDK's *context*.
        """
        name = context or "guardrails_context"

        async def answer(**given: Any) -> Any:
            ctx = given.pop(name)
            passed = {} if context is None else {name: ctx}
            session = await self._guarding.session(run_of(ctx.request_context.meta))
            asked = {"inputResponses": ctx.input_responses, "requestState": ctx.request_state}
            scope = scope_of(session, tool, asked, listed=True)

            async def execute(_: str, arguments: Any) -> Any:
                fitted = checked_arguments(tool, arguments)
                if isinstance(fitted, Envelope):
                    return fitted
                called = partial(function, **fitted, **passed)
                # One that is synchronous holds up nobody: not the loop, no other that wants a thread, nor the end of the process.
                made = await (called() if is_async(function) else asyncio.wrap_future(in_thread(called)))
                if isinstance(made, InputRequiredResult):
                    raise Asks(made)
                return made

            given = {key: value for key, value in given.items() if value is not _ABSENT}
            try:
                return _result_of(await scope.acall(tool.name, given, execute))
            except Asks as question:
                # It goes out as it is, and the same call comes again with what was said.
                return question.args[0]

        kind: Any = hints.get(name, self._fast.Context if self._fast else Context)
        shown = [one for one in inspect.signature(function).parameters.values() if one.name != context]
        parameters = [one.replace(annotation=Annotated[hints.get(one.name, Any), _Unchecked()]) for one in shown]
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind))
        returned: Any = CallToolResult if self._fast else Annotated[CallToolResult, Answer]
        answer.__signature__ = inspect.Signature(parameters, return_annotation=returned)  # type: ignore[attr-defined]
        answer.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": returned}
        answer.__name__ = answer.__qualname__ = tool.name
        return answer


def _result_of(envelope: Envelope) -> CallToolResult:
    if not envelope.ok:
        return CallToolResult.model_validate(refused(envelope), by_name=False)
    text = envelope.to_json("nested")
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=json.loads(text))


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
