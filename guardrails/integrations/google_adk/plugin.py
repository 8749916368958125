"""
The plugin: each model request and each tool call of an app's agents passes it.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from guardrails.core.values.errors import SessionError, needs
from guardrails.policy.sessions import MAX_OPEN, SessionOptions, Sessions
from guardrails.session.ledger import SHARE
from guardrails.session.session import Session
from guardrails.session.steps import current_session

from .mending import answered, mend
from .results import told
from .run import Run
from .tools import Guarded


with needs("google-adk", "this adapter"):
    from google.adk.agents.run_config import StreamingMode
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy


class GuardrailsPlugin(BasePlugin):
    """
    The tool calls and model requests of all agents of an app behind a policy, or behind a session that several apps share.

    The id of ADK's session names that of a run; *named* makes another name of ADK's session, such as one with its user.
    An agent that a guarded tool runs (`AgentTool`) has a *share* of what is left then, above 0 and at most 1. Its
    session is a child, and counts its own looks. The *options* are those of `Policy.session`.
    """

    def __init__(
        self,
        guarded: "Policy | Session",
        *,
        share: float = SHARE,
        named: Callable[[Any], object] | None = None,
        name: str = "guardrails",
        **options: Unpack[SessionOptions],
    ) -> None:
        super().__init__(name=name)
        if not 0 < share <= 1:
            raise SessionError(f"`share` is above 0 and at most 1, not {share}")
        self._policy = guarded.ledger.policy if isinstance(guarded, Session) else guarded
        self._sessions = Sessions(guarded, **options)
        self._share, self._named = share, named
        self._runs: OrderedDict[str, Run] = OrderedDict()

    def session(self, thread: object) -> Session:
        """
        The session that the id *thread* of ADK's session names.
        """
        return self._sessions.of(thread)

    # Runs

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
        """
        Settle the calls whose results the message brings, and answer those that an earlier run left without one.
        """
        own, thread = invocation_context.invocation_id, _thread(invocation_context)
        broken = [key for key, run in self._runs.items() if run.broken and run.thread == thread and key != own]
        for run in map(self._runs.pop, broken):
            await run.session.ledger.off_loop(run.end)
            await mend(run.begun, invocation_context)
        run = self._run(invocation_context)
        run.asked = any(part.function_response is None for part in user_message.parts or ())
        return await answered(run.session, invocation_context, user_message)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """
        Let nothing of a run stay held.
        """
        run = self._runs.pop(invocation_context.invocation_id, None)
        if run is not None:
            await run.session.ledger.off_loop(run.end)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """
        The same.
        """
        await self.after_run_callback(invocation_context=invocation_context)

    def _run(self, context: Any) -> Run:
        run = self._runs.get(context.invocation_id)
        if run is None:
            asking = current_session()
            if asking is not None and asking.ledger.policy is self._policy:
                run = Run.child(asking, self._share)
            else:
                named = context.session.id if self._named is None else self._named(context.session)
                run = Run(self._sessions.of(named))
            run.thread = _thread(context)
            self._runs[context.invocation_id] = run
            # A run that was interrupted or cancelled says nothing of its end.
            if len(self._runs) > MAX_OPEN:
                self._runs.popitem(last=False)[1].end()
        return run

    # Model requests

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
        """
        Turn tools off when it is time, and let the tools of the request run behind the session.
        """
        run, context = self._run(callback_context), callback_context.get_invocation_context()
        declared = run.declare(llm_request)
        if context.live_request_queue is not None or (context.run_config and context.run_config.support_cfc):
            # What comes is no response by response; the calls are guarded.
            return None
        loop = run.begin(callback_context, llm_request)
        if loop.over:
            # Whatever asks on, such as a LoopAgent, hears that it is enough.
            callback_context.actions.escalate = True
            return _says(await run.session.ledger.off_loop(lambda: loop.asking.digest))
        loop.streams = context.run_config is not None and context.run_config.streaming_mode == StreamingMode.SSE
        await run.session.ledger.off_loop(loop.ask)
        for name, tool in llm_request.tools_dict.items():
            llm_request.tools_dict[name] = Guarded.of(tool, self._run, declared.get(name))
        return None

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> Any:
        """
        Charge the response. A model that gives no answer is asked once more; then the digest is the answer.
        """
        loop = self._run(callback_context).loop(callback_context)
        if loop is None or loop.is_piece(llm_response):
            return None
        meaning, calls = await loop.session.ledger.off_loop(loop.take, llm_response)
        if meaning == "again" and not calls:
            again = await loop.again(callback_context.get_invocation_context())
            if again is not None:
                changed = await self.after_model_callback(callback_context=callback_context, llm_response=again)
                return again if changed is None else changed
            meaning = "digest"
        # Calls stay where the host asks on: each reads why it is not run.
        return _says(await loop.session.ledger.off_loop(lambda: loop.asking.digest)) if meaning == "digest" else None

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        """
        Let a request that failed hold nothing.
        """
        loop = self._run(callback_context).loop(callback_context)
        if loop is not None:
            await loop.session.ledger.off_loop(loop.asking.failed)

    # Tool calls that ADK makes past a model's request: confirmed by a person, resumed, live, or of a tool that is not there

    async def before_tool_callback(self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any) -> Any:
        """
        Decide about a call; a refusal is its result.
        """
        if Guarded.is_one(tool, self._run):
            return None
        refused = await self._run(tool_context).before(tool, tool_args, tool_context)
        return None if refused is None else told(refused)

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> Any:
        """
        Settle it.
        """
        return await self._run(tool_context).after(tool, tool_context, result)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, error: BaseException
    ) -> Any:
        """
        Returns a tool's exception as data, unless an earlier plugin has made a result of it.
        """
        failed = await self._run(tool_context).failed(tool, tool_context, error)
        return None if failed is None else told(failed)


def _thread(context: Any) -> tuple[str, str, str]:
    session = context.session
    return session.app_name, session.user_id, session.id


def _says(text: str) -> Any:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=False)
