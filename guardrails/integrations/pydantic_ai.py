"""
pydantic-ai: a capability that puts the tools of an agent, and its model requests, behind a session.

    agent = Agent(model, tools=[search], capabilities=[GuardrailsCapability(Policy.load("default"))])
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.arguments.typed_errors import problems_of
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.outcome.error_text import error_type_from_text
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import Failed, Problem
from guardrails.policy.sessions import Sessions
from guardrails.session.calls.current import current_session

from .hosting import Asking, extra, remark


with extra("pydantic-ai"):
    from pydantic import ValidationError
    from pydantic_ai import CallToolsNode, ModelRequestNode, RunContext, ToolReturn
    from pydantic_ai import exceptions as host
    from pydantic_ai import messages as parts
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolApproved, ToolDefinition, ToolDenied

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy
    from guardrails.session.session import Session

LAST: Final = "loop.request_limit"
"""Why a final answer is asked for with the last request that `UsageLimits` allow."""
LATER: Final = (host.CallDeferred, host.ApprovalRequired)
"""By these the result of a call comes later: from elsewhere, or after a person has said yes."""
_TOLD: Final = (
    host.ToolRetryError,
    host.ToolFailedError,
    host.ToolFailed,
    host.ModelRetry,
    host.UnexpectedModelBehavior,
)
"""By these the host tells that a tool failed; by the last, that it asked for more retries than it may."""
_NOT_MADE: Final = "This call was not made, since the same response called a tool that does not exist."
_UNSET: Final = object()


class GuardrailsCapability(AbstractCapability[Any]):
    """
    All tools of an agent but its output tools, whichever toolset they are of, behind a policy, or a session that several
    agents share. *options* are those of `Policy.session`.

    The conversation of a run names its session. A run that a guarded tool makes has the session of the tool's call if its
    policy is the same. At the end tools are off and output tools stay; so it is for the last request of `UsageLimits`.
    """

    def __init__(self, guarded: "Policy | Session", **options: Any) -> None:
        self._guarded = guarded
        self._sessions = Sessions(guarded, **options)

    def session(self, conversation: object) -> "Session":
        """
        The session of a *conversation*, such as `result.conversation_id`.
        """
        return self._sessions.of(conversation)

    async def for_run(self, ctx: RunContext[Any]) -> "GuardrailsCapability":
        """
        A copy that knows one run.
        """
        session = current_session()
        if session is None or session.policy is not self._guarded:
            session = self._sessions.of(ctx.conversation_id or ctx.run_id)
        if ctx.prompt is not None and ctx.messages:
            await session.off_loop(session.go_on)
        run = copy(self)
        run._session = session.scoped({}, passes=LATER)
        run._asking = Asking(session, first=True)
        run._tools, run._later = {}, set()
        run._forced, run._refuses = None, False
        return run

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> parts.ModelResponse:
        """
        Turn tools off when it is time, and charge the response; the digest is the answer where the model gives none.
        """
        asking, off_loop, asked = self._asking, self._session.off_loop, request_context.model_request_parameters
        await off_loop(self._prepare, request_context.messages, asked.function_tools)
        limit = None if ctx.usage_limits is None else ctx.usage_limits.request_limit
        last = limit is not None and ctx.usage.requests + 1 >= limit
        if last:
            asking.final.force(LAST)
        settings, outputs = request_context.model_settings or {}, {tool.name for tool in asked.output_tools}
        choice = settings.get("tool_choice")
        forces = choice == "required" or (isinstance(choice, list) and choice and outputs.isdisjoint(choice))
        if forces and choice != self._forced:
            # One that changes from step to step is meant: each holds for its first request.
            self._forced, asking.final.first = choice, True
        chosen = await off_loop(asking.ask, "required" if forces else None)
        if asking.off or (forces and chosen is None):
            request_context.model_settings = {**settings, "tool_choice": chosen}
        try:
            response = await handler(request_context)
        except BaseException:
            asking.failed()
            raise
        calls = [call for call in response.tool_calls if call.tool_name not in outputs]
        answers = len(calls) < len(response.tool_calls) or bool(response.files) or response.state == "suspended"
        meaning = await off_loop(
            asking.take,
            response.text or ("-" if answers else ""),
            calls,
            model=response.model_name or "",
            usage=response.usage,
            key=f"{ctx.run_id}:{ctx.run_step}:{response.provider_response_id or ''}",
            provider=response.provider_url or response.provider_name,
        )
        self._refuses = meaning in ("again", "digest")
        if answers or meaning in ("run", "answered") or (meaning == "again" and not last):
            return response
        digest = asking.answer or await off_loop(self._session.digest)
        if asked.allow_text_output and asked.output_mode in ("text", "tool"):
            return replace(response, parts=[parts.TextPart(digest)], finish_reason="stop")
        # Whatever fits a schema is no digest.
        raise host.UnexpectedModelBehavior(digest)

    def _prepare(self, messages: Sequence[parts.ModelMessage], tools: Sequence[ToolDefinition]) -> None:
        """
        Settle the calls that were answered elsewhere, by the host or its user, and declare the tools that are new.
        """
        made = {call.tool_call_id: call for message in messages[-2:-1] for call in getattr(message, "tool_calls", ())}
        for part in messages[-1].parts if messages else ():
            if not isinstance(part, parts.ToolReturnPart):
                continue
            id = part.tool_call_id
            if part.retry is not None and part.retry.cause == "unknown_tool" and id in made:
                part.content = self._missing(made[id], f"`{part.tool_name}` is not there. {part.content}").to_json()
            elif id in self._later:
                self._later.discard(id)
                if part.outcome == "denied":
                    self._session.release(id)
                    continue
                done = part.outcome == "success"
                outcome = _read(part.content) if done else Failed(part.model_response_str(wrap_if_error=False))
                envelope = self._session.complete(id, outcome)
                part.content = envelope.to_json() if _is_plain(part.content) else part.content
        new = {tool.name: _tool(tool) for tool in tools if tool.name not in self._tools}
        if new:
            self._tools |= new
            self._session.declare(*new.values())

    def _missing(self, call: parts.ToolCallPart, text: str) -> Envelope:
        id, arguments = call.tool_call_id, call.args or {}
        if self._refuses:
            return self._asking.refusal(call.tool_name, arguments, id=id)
        known = self._session.scoped({}, self._tools.values(), passes=LATER)
        return known.call(call.tool_name, arguments, lambda *_: Failed(text, error_type="tool_missing"), id=id)

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        """
        Note which calls the run goes on with have a result from elsewhere.
        """
        given = node.tool_call_results if isinstance(node, CallToolsNode) else None
        self._later |= {id for id, one in (given or {}).items() if one != "skip" and not isinstance(one, ToolApproved)}
        return node

    async def wrap_tool_validate(
        self, ctx: RunContext[Any], *, call: parts.ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """
        Name what is wrong with the arguments; decide about a deferred call before anyone is asked for its result.
        """
        try:
            valid = await handler(args)
        except (ValidationError, host.ModelRetry) as error:
            schema = tool_def.parameters_json_schema
            told = SimpleNamespace(check=lambda given: (given, _problems(error, schema, given)))
            session = self._session.scoped({call.tool_name: told}, passes=LATER)
            # A policy without `validation` lets it pass; nothing runs then either.
            wrong = partial(_nothing, outcome=Failed(str(error), error_type="validation"))
            raise host.ToolFailed((await self._called(call, wrong, session)).to_json()) from error
        if not tool_def.defer or ctx.tool_call_approved:
            return valid
        try:
            refused = await self._called(call, _nothing)
        except LATER:
            return valid
        raise host.ToolFailed(refused.to_json())

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: parts.ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """
        Run the tool if the session lets it. A refusal reads as a denial of the host, what a tool raises as its failure.
        """
        result: Any = _UNSET
        retry: host.ToolRetryError | None = None
        ran = False

        async def execute(_: str, __: Any) -> Any:
            nonlocal result, retry, ran
            ran = True
            try:
                result = await handler(args)
            except host.SkipToolExecution as skip:
                result = skip.result
            except _TOLD as error:
                retry = error if isinstance(error, host.ToolRetryError) else None
                return _failed(error)
            return _read(result)

        envelope = await self._called(call, execute)
        text = envelope.to_json()
        if not ran:
            return ToolDenied(text)
        if retry is not None:
            raise host.ToolRetryError(replace(retry.tool_retry, content=text))
        if result is _UNSET or (not envelope.ok and _is_plain(result, tool_def)):
            raise host.ToolFailed(text)
        return _shown(result, envelope, tool_def)

    async def _called(self, call: parts.ToolCallPart, execute: Any, session: "Session | None" = None) -> Envelope:
        tool, arguments, id = call.tool_name, call.args or {}, call.tool_call_id  # noqa: A001
        if self._refuses:
            return await self._session.off_loop(self._asking.refusal, tool, arguments, id=id)
        self._later.discard(id)
        try:
            return await (session or self._session).acall(tool, arguments, execute, id=id)
        except LATER:
            self._later.add(id)
            raise

    async def on_node_run_error(self, ctx: RunContext[Any], *, node: Any, error: Exception) -> Any:
        """
        Go on where the host ends a run since it called a tool that does not exist once more.
        """
        calls = node.model_response.tool_calls if isinstance(node, CallToolsNode) else []
        tools = None if ctx.tool_manager is None else ctx.tool_manager.tools
        if not isinstance(error.__cause__, host.ModelRetry) or all(call.tool_name in (tools or ()) for call in calls):
            raise error
        made: list[Any] = []
        if isinstance(ctx.messages[-1], parts.ModelRequest) and ctx.messages[-1].state == "interrupted":
            made.extend(ctx.messages.pop().parts)
        answered = {getattr(part, "tool_call_id", None) for part in made}
        for call in calls:
            if call.tool_call_id not in answered:
                there = call.tool_name in (tools or ())
                part = parts.ToolReturnPart(call.tool_name, _NOT_MADE, call.tool_call_id, outcome="denied")
                missing = parts.RetryInfo(cause="unknown_tool")
                made.append(part if there else replace(part, content="", outcome="retried", retry=missing))
        return ModelRequestNode(parts.ModelRequest(made))


def _problems(error: ValidationError | host.ModelRetry, schema: dict[str, Any], arguments: Any) -> tuple[Problem, ...]:
    if isinstance(error, host.ModelRetry):
        return (Problem("", error.message, "value"),)
    return problems_of(error, arguments if isinstance(arguments, dict) else {}, schema)


async def _nothing(_: str, __: Any, outcome: Failed | None = None) -> Any:
    if outcome is None:
        raise host.CallDeferred
    return outcome


def _failed(error: Exception) -> Failed:
    """
    What a tool said of its failure. One that asks for a retry means another call than this.
    """
    said = error.__cause__ if isinstance(error.__cause__, (host.ModelRetry, host.ToolFailed)) else error
    kind = error_type_from_text(str(said)) or ("validation" if isinstance(said, host.ModelRetry) else None)
    return Failed(str(said), error_type=kind)


def _tool(tool: ToolDefinition) -> Tool:
    hints = (tool.metadata or {}).get("annotations")
    return Tool(name=tool.name, description=tool.description or "").override({"annotations": hints})


def _read(result: Any) -> Any:
    """
    *result* as a session reads it: of a file, which one it is.
    """
    if isinstance(result, ToolReturn):
        return _read(result.return_value)
    if isinstance(result, list):
        return [_read(one) for one in result]
    return f"{result.kind} {result.identifier}" if parts.is_multi_modal_content(result) else result


def _is_plain(result: Any, tool: ToolDefinition | None = None) -> bool:
    """
    Whether the model may read an envelope in the place of *result*: it has no files, and nobody was told of its form.
    """
    value = result.return_value if isinstance(result, ToolReturn) else result
    told = tool is not None and (tool.tool_kind is not None or tool.include_return_schema)
    return not told and not any(map(parts.is_multi_modal_content, value if isinstance(value, list) else (value,)))


def _shown(result: Any, envelope: Envelope, tool: ToolDefinition) -> Any:
    """
    *result* as the model reads it, in the host's own form if it has one; then with what *envelope* says beside it.
    """
    said = remark(envelope)
    if _is_plain(result, tool):
        text = envelope.to_json()
        return replace(result, return_value=text) if isinstance(result, ToolReturn) else text
    if said is None:
        return result
    made = result if isinstance(result, ToolReturn) else ToolReturn(result)
    content = [made.content] if isinstance(made.content, str) else made.content or ()
    return replace(made, content=[*content, said])
