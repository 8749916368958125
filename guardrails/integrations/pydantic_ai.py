"""
pydantic-ai: a capability that puts the tools of an agent, and its model requests, behind a session.

    agent = Agent(model, tools=[search], capabilities=[GuardrailsCapability(Policy.load("default"))])
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

from guardrails.core.arguments.typed import problems_of
from guardrails.core.envelope import Envelope
from guardrails.core.result.kinds import kind_of_text
from guardrails.core.tool import Tool
from guardrails.core.values.errors import SessionError, needs
from guardrails.core.values.types import Failed, Problem
from guardrails.hooks.results import notes_of
from guardrails.session.session import Session, scoped

from . import hosting as kit
from .hosting import HostLoop


with needs("pydantic-ai", "this adapter"):
    from pydantic import ValidationError
    from pydantic_ai import CallToolsNode, RunContext, ToolReturn
    from pydantic_ai import exceptions as host
    from pydantic_ai import messages as parts
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolApproved, ToolDefinition, ToolDenied

_LATER: Final = (host.CallDeferred, host.ApprovalRequired)
"""By these the result of a call comes later: from elsewhere, or after a person has said yes."""
_FAILURES: Final = (host.ToolRetryError, host.ToolFailedError, host.ToolFailed, host.UnexpectedModelBehavior)
"""By these, and by `ModelRetry`, the host says that a tool failed; by the last, that it asked for too many retries."""


class GuardrailsCapability(kit.Adapter, AbstractCapability[Any]):
    """
    All tools of an agent but its output tools, from every toolset, behind a policy or a session that several agents
    share. The *options* are those of `Policy.session`.

    The conversation of a run names its session. A run inside a guarded tool has a share of the session of the tool's
    call if its policy is the same. At the end tools are off and output tools stay; so it is for the last request of
    `UsageLimits`.
    """

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """
        The hooks of one run.
        """
        session, end = await kit.aopen_run(self._sessions, ctx.conversation_id or ctx.run_id)
        return _Run(session, end, user=ctx.prompt is not None)


class _Run(AbstractCapability[Any]):
    """
    The guard of one run in its *session*. At its end *end* is called.
    """

    def __init__(self, session: "Session", end: Callable[[], None], *, user: bool) -> None:
        self._session = scoped(session, {}, passes=_LATER)
        self._loop, self._end = HostLoop(session, user=user), end
        self._tools: dict[str, Tool] = {}
        """Those that the session knows."""
        self._answered: set[str] = set()
        """Ids of calls whose result is the session's envelope."""
        self._forced: Any = None
        """The latest choice that forced a tool."""

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """
        Give back what is left of a share.
        """
        try:
            return await handler()
        finally:
            await self._loop.off_loop(self._end)

    # Model requests

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> parts.ModelResponse:
        """
        Turn tools off when it is time, and charge the response; the digest is the answer if the model gives none.
        """
        loop, request = self._loop, request_context.model_request_parameters
        await loop.off_loop(self._prepare, ctx.run_id, request_context.messages, request.function_tools)
        limit = None if ctx.usage_limits is None else ctx.usage_limits.request_limit
        # With a tool that others run a call may well be what the run ends with.
        deferred = any(tool.defer for tool in request.function_tools)
        last = limit is not None and ctx.usage.requests + 1 >= limit and not deferred
        if last:
            loop.final.force(kit.LAST_CODE)
        settings, outputs = request_context.model_settings or {}, {tool.name for tool in request.output_tools}
        choice = settings.get("tool_choice")
        forces = choice == "required" or (isinstance(choice, list) and choice and outputs.isdisjoint(choice))
        if forces and choice != self._forced:
            # One that changes from step to step is meant: each holds for its first request.
            self._forced, loop.final.first = choice, True

        def send(chosen: Any) -> Any:
            if (loop.off and request.function_tools) or (forces and chosen is None):
                request_context.model_settings = {**settings, "tool_choice": chosen}
            return handler(request_context)

        def read(response: parts.ModelResponse) -> tuple[str, int, dict[str, Any]]:
            calls = [call for call in response.tool_calls if call.tool_name not in outputs]
            answers = len(calls) < len(response.tool_calls) or bool(response.files) or response.state == "suspended"
            key = f"{ctx.run_id}:{ctx.run_step}:{response.provider_response_id or ''}"
            provider = response.provider_url or response.provider_name
            charge = {"model": response.model_name or "", "usage": response.usage, "key": key, "provider": provider}
            # With tools off, calls beside an output are not run: each is refused.
            return response.text or ("-" if answers else ""), 0 if answers and loop.off else len(calls), charge

        response, digest = await loop.respond("required" if forces else None, send, read, again=False)
        # The host asks on by itself, once each of its calls is refused.
        if digest is None and last and loop.final.ended is None:
            digest = await loop.off_loop(self._session.digest)
        if digest is None:
            return cast("parts.ModelResponse", response)
        if request.allow_text_output and request.output_mode in ("text", "tool"):
            return replace(response, parts=[parts.TextPart(digest)], finish_reason="stop")
        # Whatever fits a schema is no digest.
        raise host.UnexpectedModelBehavior(digest)

    def _prepare(
        self, run: str | None, messages: Sequence[parts.ModelMessage], tools: Sequence[ToolDefinition]
    ) -> None:
        """
        Settle the calls that were answered elsewhere, by the host or its user, and declare the tools that are new.
        """
        # A request with the results of its other calls may stand between the response and those that came later.
        latest: Any = next((one.tool_calls for one in reversed(messages) if isinstance(one, parts.ModelResponse)), [])
        calls = {call.tool_call_id: call for call in latest if call.tool_call_id not in self._answered}
        # A request of an earlier run that is made again was prepared then.
        for part in messages[-1].parts if messages and messages[-1].run_id == run else ():
            call = calls.get(part.tool_call_id) if isinstance(part, parts.ToolReturnPart) else None
            if call is not None:
                with suppress(SessionError):
                    # The host deferred it before it was decided about, or it is over: nothing is to be settled.
                    self._settle(call, part)
        for tool in tools:
            if tool.name not in self._tools:
                hints = (tool.metadata or {}).get("annotations")
                self._tools[tool.name] = kit.host_tool(tool.name, None, tool.description, hints)
        self._session.calls.declare(*self._tools.values(), listed=False)

    def _settle(self, call: parts.ToolCallPart, part: parts.ToolReturnPart) -> None:
        """
        Say what came of *call*, whose result, *part*, is from elsewhere; one that a person denied was none.
        """
        key, arguments = call.tool_call_id, call.args or {}
        if part.retry is not None and part.retry.cause == "unknown_tool":
            known = scoped(self._session, {}, self._tools.values(), passes=_LATER)
            part.content = known.call(call.tool_name, arguments, kit.missing, id=key).to_json()
        elif part.outcome == "denied":
            self._session.calls.release(key, arguments=arguments)
        else:
            failure = Failed(part.model_response_str(wrap_if_error=False))
            outcome = _value(part.content) if part.outcome == "success" else failure
            envelope = self._session.complete(key, outcome, arguments=arguments)
            part.content = envelope.to_json() if _is_plain(part.content) else part.content

    # Tool calls

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        """
        Let a call hold nothing that a person allows with other arguments: it is another than was decided about.
        """
        given = node.tool_call_results if isinstance(node, CallToolsNode) else None
        for key, result in (given or {}).items():
            if isinstance(result, ToolApproved) and result.override_args is not None:
                with suppress(SessionError):
                    await self._loop.off_loop(self._session.calls.release, key)
        return node

    async def wrap_tool_validate(
        self, ctx: RunContext[Any], *, call: parts.ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """
        Name what is wrong with the arguments; decide about a deferred call before anyone is asked for its result.
        """
        try:
            valid = await handler(args)
        except (ValidationError, host.ModelRetry, host.ToolFailed) as error:
            wrong = _Wrong(error, tool_def.parameters_json_schema)
            session = scoped(self._session, {call.tool_name: wrong}, passes=_LATER)
            # A policy without a check of arguments hears of a failure; the tool does not run then either.
            failure = Failed(str(error), error_type="validation")
            raise host.ToolFailed((await self._called(call, lambda *_: failure, session)).to_json()) from error
        if not tool_def.defer or ctx.tool_call_approved:
            return valid

        async def elsewhere(_: str, __: Any) -> None:
            raise host.CallDeferred

        try:
            refused = await self._called(call, elsewhere)
        except _LATER:
            return valid
        raise host.ToolFailed(refused.to_json())

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: parts.ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """
        Run the tool if the session lets it. A refusal reads as a denial of the host, what a tool raises as its failure.
        """
        results: list[Any] = []
        retry: host.ToolRetryError | None = None
        ran = False

        async def execute(_: str, __: Any) -> Any:
            nonlocal retry, ran
            # What an attempt before came to is not what this one does.
            retry, ran = None, True
            results.clear()
            try:
                results.append(await handler(args))
            except host.SkipToolExecution as skip:
                results.append(skip.result)
            except (*_FAILURES, host.ModelRetry) as error:
                retry = error if isinstance(error, host.ToolRetryError) else None
                own = error.__cause__ if isinstance(error.__cause__, (host.ModelRetry, host.ToolFailed)) else error
                # One that asks for a retry means another call than this.
                kind = kind_of_text(str(own)) or ("validation" if isinstance(own, host.ModelRetry) else None)
                return Failed(str(own), error_type=kind)
            return _value(results[0])

        envelope = await self._called(call, execute)
        text = envelope.to_json()
        if not ran:
            return ToolDenied(text)
        if retry is not None:
            raise host.ToolRetryError(replace(retry.tool_retry, content=text))
        if not results or (not envelope.ok and _is_plain(results[0], tool_def)):
            raise host.ToolFailed(text)
        return _shown(results[0], envelope, tool_def)

    async def _called(self, call: parts.ToolCallPart, execute: Any, session: "Session | None" = None) -> Envelope:
        tool, arguments, key = call.tool_name, call.args or {}, call.tool_call_id
        if self._loop.off:
            envelope: Envelope = await self._loop.off_loop(self._loop.refusal, tool, arguments, id=key)
        else:
            session = session or kit.call_session(self._session, self._tools.get(tool), _LATER)
            envelope = await session.acall(tool, arguments, execute, id=key)
        self._answered.add(key)
        return envelope


class _Wrong(NamedTuple):
    """
    The host's objections to the arguments of one call, as their check, whatever it is asked about.
    """

    error: "ValidationError | host.ModelRetry | host.ToolFailed"
    parameters: dict[str, Any]

    def schema(self) -> dict[str, Any]:
        return self.parameters

    def check(self, arguments: object) -> tuple[object, tuple[Problem, ...]]:
        if not isinstance(self.error, ValidationError):
            return arguments, (Problem("", self.error.message, "value"),)
        return arguments, problems_of(self.error, arguments if isinstance(arguments, dict) else {}, self.parameters)


def _value(result: Any) -> Any:
    """
    *result* as a session reads it: of a file, which one it is.
    """
    if isinstance(result, ToolReturn):
        return _value(result.return_value)
    if isinstance(result, list) and any(map(parts.is_multi_modal_content, result)):
        return kit.lines(map(_value, result))
    return f"{result.kind} {result.identifier}" if parts.is_multi_modal_content(result) else result


def _is_plain(result: Any, tool: ToolDefinition | None = None) -> bool:
    """
    Whether the model may read an envelope in the place of *result*: it has no files, and nobody was told of its form.
    """
    value = result.return_value if isinstance(result, ToolReturn) else result
    formed = tool is not None and (tool.tool_kind is not None or tool.include_return_schema)
    return not formed and not any(map(parts.is_multi_modal_content, value if isinstance(value, list) else (value,)))


def _shown(result: Any, envelope: Envelope, tool: ToolDefinition) -> Any:
    """
    *result* as the model reads it, in the host's own form if it has one; then with what *envelope* says beside it.
    """
    made = result if isinstance(result, ToolReturn) else None
    if _is_plain(result, tool):
        return envelope.to_json() if made is None else replace(made, return_value=envelope.to_json())
    notes = notes_of(envelope)
    if notes is None:
        return result
    made = made or ToolReturn(result)
    others = [made.content] if isinstance(made.content, str) else made.content or ()
    return replace(made, content=[*others, notes])
