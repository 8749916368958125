"""
One run of an agent of pydantic-ai behind a session: its model requests, its tool calls, and the results that come later.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError, needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import Asking, ashare_of, calling, give_back
from guardrails.session.session import scoped

from .arguments import Wrong
from .results import failed, is_plain, read, shown


with needs("pydantic-ai", "this adapter"):
    from pydantic import ValidationError
    from pydantic_ai import CallToolsNode, ModelRequestNode, RunContext
    from pydantic_ai import exceptions as host
    from pydantic_ai import messages as parts
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolApproved, ToolDefinition, ToolDenied

if TYPE_CHECKING:
    from guardrails.session.session import Session

LAST: Final = "loop.request_limit"
"""Why a final answer is asked for with the last request that `UsageLimits` allow."""
LATER: Final = (host.CallDeferred, host.ApprovalRequired)
"""By these the result of a call comes later: from elsewhere, or after a person has said yes."""
TOLD: Final = (
    host.ToolRetryError,
    host.ToolFailedError,
    host.ToolFailed,
    host.ModelRetry,
    host.UnexpectedModelBehavior,
)
"""By these the host tells that a tool failed; by the last, that it asked for more retries than it may."""
NOT_MADE: Final = "This call was not made, since the same response called a tool that does not exist."
UNSET: Final = object()


class GuardedRun(AbstractCapability[Any]):
    """
    The guard of one run of `GuardrailsCapability`: in its *session*, or in a *share* of it if so much is left.
    """

    def __init__(self, session: "Session", share: Mapping[str, Any] | None = None) -> None:
        self._own = session
        self._share = dict(share or {})
        self._begin(session)
        self._tools: dict[str, Tool] = {}
        """Those that the session knows."""
        self._later: set[str] = set()
        """Ids of calls whose result comes, or came, from elsewhere."""
        self._forced: Any = None
        """The latest choice that forced a tool."""
        self._refuses = False
        """No call of the latest response is run."""

    def _begin(self, session: "Session") -> None:
        self._session = scoped(session, {}, passes=LATER)
        self._asking = Asking(session, first=True)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """
        Take the share, and give back what is left of it.
        """
        child = await ashare_of(self._own, **self._share) if self._share else None
        if child is None:
            return await handler()
        self._begin(child)
        try:
            return await handler()
        finally:
            await child.ledger.off_loop(give_back, child, forget=True)

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> parts.ModelResponse:
        """
        Turn tools off when it is time, and charge the response; the digest is the answer if the model gives none.
        """
        asking, off_loop, asked = self._asking, self._session.ledger.off_loop, request_context.model_request_parameters
        await off_loop(self._prepare, ctx.run_id, request_context.messages, asked.function_tools)
        limit = None if ctx.usage_limits is None else ctx.usage_limits.request_limit
        # With a tool that others run a call may well be what the run ends with.
        last = (
            limit is not None and ctx.usage.requests + 1 >= limit and not any(map(_is_deferred, asked.function_tools))
        )
        if last:
            asking.final.force(LAST)
        settings, outputs = request_context.model_settings or {}, {tool.name for tool in asked.output_tools}
        choice = settings.get("tool_choice")
        forces = choice == "required" or (isinstance(choice, list) and choice and outputs.isdisjoint(choice))
        if forces and choice != self._forced:
            # One that changes from step to step is meant: each holds for its first request.
            self._forced, asking.final.first = choice, True
        chosen = await off_loop(asking.ask, "required" if forces else None)
        if (asking.off and asked.function_tools) or (forces and chosen is None):
            request_context.model_settings = {**settings, "tool_choice": chosen}
        try:
            response = await handler(request_context)
        except BaseException:
            await off_loop(asking.failed)
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
        digest = await off_loop(lambda: asking.answer or asking.digest)
        if asked.allow_text_output and asked.output_mode in ("text", "tool"):
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
        made = {call.tool_call_id: call for call in _latest_calls(messages)}
        # A request of an earlier run that is made again was prepared then.
        for part in messages[-1].parts if messages and messages[-1].run_id == run else ():
            call = made.get(part.tool_call_id) if isinstance(part, parts.ToolReturnPart) else None
            if call is None:
                continue
            if part.retry is not None and part.retry.cause == "unknown_tool":
                part.content = self._missing(call, f"`{part.tool_name}` is not there. {part.content}").to_json()
            elif call.tool_call_id in self._later:
                self._later.discard(call.tool_call_id)
                self._settle(call, part)
        new = {tool.name: _tool(tool) for tool in tools if tool.name not in self._tools}
        if new:
            self._tools |= new
            self._session.calls.declare(*new.values())

    def _settle(self, call: parts.ToolCallPart, part: parts.ToolReturnPart) -> None:
        """
        Say what came of *call*, whose result, *part*, is from elsewhere; one that a person denied was none.
        """
        try:
            if part.outcome == "denied":
                self._session.calls.release(call.tool_call_id, arguments=call.args or {})
                return
            told = Failed(part.model_response_str(wrap_if_error=False))
            outcome = read(part.content) if part.outcome == "success" else told
            envelope = self._session.complete(call.tool_call_id, outcome, arguments=call.args or {})
        except SessionError:
            # The host deferred it before it was decided about, or it is over: nothing is to be settled.
            return
        if is_plain(part.content):
            part.content = envelope.to_json()

    def _missing(self, call: parts.ToolCallPart, text: str) -> Envelope:
        arguments, made = call.args or {}, call.tool_call_id
        if self._refuses:
            return self._asking.refusal(call.tool_name, arguments, id=made)
        known = scoped(self._session, {}, self._tools.values(), passes=LATER)
        return known.call(call.tool_name, arguments, lambda *_: Failed(text, error_type="tool_missing"), id=made)

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        """
        Note which calls the run goes on with have a result from elsewhere.
        """
        given = node.tool_call_results if isinstance(node, CallToolsNode) else None
        for key, result in (given or {}).items():
            if isinstance(result, ToolApproved):
                if result.override_args is not None:
                    # With other arguments it is another call than the one that was decided about.
                    with suppress(SessionError):
                        await self._session.ledger.off_loop(self._session.calls.release, key)
            elif result != "skip":
                self._later.add(key)
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
            wrong = Wrong(error, tool_def.parameters_json_schema)
            session = scoped(self._session, {call.tool_name: wrong}, passes=LATER)
            raise host.ToolFailed((await self._called(call, wrong.told, session)).to_json()) from error
        if not tool_def.defer or ctx.tool_call_approved:
            return valid
        try:
            refused = await self._called(call, _elsewhere)
        except LATER:
            return valid
        raise host.ToolFailed(refused.to_json())

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: parts.ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """
        Run the tool if the session lets it. A refusal reads as a denial of the host, what a tool raises as its failure.
        """
        result: Any = UNSET
        retry: host.ToolRetryError | None = None
        ran = False

        async def execute(_: str, __: Any) -> Any:
            nonlocal result, retry, ran
            # What an attempt before came to is not what this one does.
            result, retry, ran = UNSET, None, True
            try:
                result = await handler(args)
            except host.SkipToolExecution as skip:
                result = skip.result
            except TOLD as error:
                retry = error if isinstance(error, host.ToolRetryError) else None
                return failed(error)
            return read(result)

        envelope = await self._called(call, execute)
        text = envelope.to_json()
        if not ran:
            return ToolDenied(text)
        if retry is not None:
            raise host.ToolRetryError(replace(retry.tool_retry, content=text))
        if result is UNSET or (not envelope.ok and is_plain(result, tool_def)):
            raise host.ToolFailed(text)
        return shown(result, envelope, tool_def)

    async def _called(self, call: parts.ToolCallPart, execute: Any, session: "Session | None" = None) -> Envelope:
        tool, arguments, made = call.tool_name, call.args or {}, call.tool_call_id
        if self._refuses:
            return await self._session.ledger.off_loop(self._asking.refusal, tool, arguments, id=made)
        self._later.discard(made)
        if session is None:
            known = self._tools.get(tool)
            session = self._session if known is None else calling(self._session, known, LATER)
        try:
            return await session.acall(tool, arguments, execute, id=made)
        except LATER:
            self._later.add(made)
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
                part = parts.ToolReturnPart(call.tool_name, NOT_MADE, call.tool_call_id, outcome="denied")
                missing = parts.RetryInfo(cause="unknown_tool")
                made.append(part if there else replace(part, content="", outcome="retried", retry=missing))
        return ModelRequestNode(parts.ModelRequest(made))


def _latest_calls(messages: Sequence[parts.ModelMessage]) -> list[parts.ToolCallPart]:
    return next((said.tool_calls for said in reversed(messages) if isinstance(said, parts.ModelResponse)), [])


async def _elsewhere(_: str, __: Any) -> None:
    raise host.CallDeferred


def _is_deferred(tool: ToolDefinition) -> bool:
    return bool(tool.defer)


def _tool(tool: ToolDefinition) -> Tool:
    hints = (tool.metadata or {}).get("annotations")
    known = Tool(name=tool.name, description=tool.description or "")
    return known.override({"annotations": hints}) if isinstance(hints, dict) else known
