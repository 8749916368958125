"""
One run of an agent of pydantic-ai behind a session: its model requests, its tool calls, and the results that come later.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError, needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import Asking, calling, declared, give_back, missing, share_of
from guardrails.session.session import scoped

from .results import Wrong, failed, is_plain, read, shown


with needs("pydantic-ai", "this adapter"):
    from pydantic import ValidationError
    from pydantic_ai import CallToolsNode, RunContext
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

    def _begin(self, session: "Session") -> None:
        self._session = scoped(session, {}, passes=LATER)
        self._asking = Asking(session, first=True)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """
        Take the share, and give back what is left of it.
        """
        off_loop = self._own.ledger.off_loop
        child = await off_loop(partial(share_of, self._own, **self._share)) if self._share else None
        if child is None:
            return await handler()
        self._begin(child)
        try:
            return await handler()
        finally:
            await off_loop(give_back, child, forget=True)

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> parts.ModelResponse:
        """
        Turn tools off when it is time, and charge the response; the digest is the answer if the model gives none.
        """
        asking, asked = self._asking, request_context.model_request_parameters
        await asking.off_loop(self._prepare, ctx.run_id, request_context.messages, asked.function_tools)
        limit = None if ctx.usage_limits is None else ctx.usage_limits.request_limit
        # With a tool that others run a call may well be what the run ends with.
        deferred = any(tool.defer for tool in asked.function_tools)
        last = limit is not None and ctx.usage.requests + 1 >= limit and not deferred
        if last:
            asking.final.force(LAST)
        settings, outputs = request_context.model_settings or {}, {tool.name for tool in asked.output_tools}
        choice = settings.get("tool_choice")
        forces = choice == "required" or (isinstance(choice, list) and choice and outputs.isdisjoint(choice))
        if forces and choice != self._forced:
            # One that changes from step to step is meant: each holds for its first request.
            self._forced, asking.final.first = choice, True

        def send(chosen: Any) -> Any:
            if (asking.off and asked.function_tools) or (forces and chosen is None):
                request_context.model_settings = {**settings, "tool_choice": chosen}
            return handler(request_context)

        def told(response: parts.ModelResponse) -> tuple[str, int, dict[str, Any]]:
            calls = [call for call in response.tool_calls if call.tool_name not in outputs]
            answers = len(calls) < len(response.tool_calls) or bool(response.files) or response.state == "suspended"
            key = f"{ctx.run_id}:{ctx.run_step}:{response.provider_response_id or ''}"
            provider = response.provider_url or response.provider_name
            named = {"model": response.model_name or "", "usage": response.usage, "key": key, "provider": provider}
            # With tools off, calls beside an output are not run: each is refused.
            return response.text or ("-" if answers else ""), 0 if answers and asking.off else len(calls), named

        response, digest = await asking.respond("required" if forces else None, send, told, again=False)
        # The host asks on by itself, once each of its calls is refused.
        if digest is None and last and asking.final.ended is None:
            digest = await asking.off_loop(self._session.digest)
        if digest is None:
            return cast("parts.ModelResponse", response)
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
        latest: Any = next(
            (said.tool_calls for said in reversed(messages) if isinstance(said, parts.ModelResponse)), []
        )
        made = {call.tool_call_id: call for call in latest}
        # A request of an earlier run that is made again was prepared then.
        for part in messages[-1].parts if messages and messages[-1].run_id == run else ():
            call = made.get(part.tool_call_id) if isinstance(part, parts.ToolReturnPart) else None
            if call is None:
                continue
            if part.retry is not None and part.retry.cause == "unknown_tool":
                known = scoped(self._session, {}, self._tools.values(), passes=LATER)
                envelope = known.call(call.tool_name, call.args or {}, missing, id=call.tool_call_id)
                part.content = envelope.to_json()
            elif call.tool_call_id in self._later:
                self._later.discard(call.tool_call_id)
                self._settle(call, part)
        for tool in tools:
            if tool.name not in self._tools:
                hints = (tool.metadata or {}).get("annotations")
                self._tools[tool.name] = declared(tool.name, None, tool.description, hints)
        self._session.calls.declare(*self._tools.values())

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
            # A policy without a check of arguments is told a failure; the tool does not run then either.
            failure = Failed(str(error), error_type="validation")
            told = await self._called(call, lambda *_: failure, session)
            raise host.ToolFailed(told.to_json()) from error
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
        if self._asking.off:
            return await self._asking.off_loop(self._asking.refusal, tool, arguments, id=made)
        self._later.discard(made)
        if session is None:
            known = self._tools.get(tool)
            session = self._session if known is None else calling(self._session, known, LATER)
        try:
            return await session.acall(tool, arguments, execute, id=made)
        except LATER:
            self._later.add(made)
            raise


async def _elsewhere(_: str, __: Any) -> None:
    raise host.CallDeferred
