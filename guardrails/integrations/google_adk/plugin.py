"""
The plugin: each model request and each tool call of an app's agents passes it.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from guardrails.core.values.errors import SessionError, StoreError, needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import BROKEN_OFF, Asking, missing, opened
from guardrails.policy.sessions import MAX_OPEN, SessionOptions, Sessions
from guardrails.session.ledger import SHARE
from guardrails.session.session import Session, scoped
from guardrails.session.steps import current_session

from .tools import ENDS, PASSES, guard, told


with needs("google-adk", "this adapter"):
    from google.adk.agents.run_config import StreamingMode
    from google.adk.events.event import Event
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy


class Run:
    """
    One run in a *session*, which *end* ends, with the loops of its agents.
    """

    def __init__(self, session: Session, end: Callable[[], None]) -> None:
        self.session = scoped(session, {}, passes=PASSES)
        self.asked = False
        """A message of the user's began it, and not the result of a call."""
        self.request: Any = None
        """The latest one."""
        self._end = end
        self._loops: dict[Any, Asking] = {}

    def loop(self, context: Any) -> Asking | None:
        """
        The loop of the agent of *context*; None if it has asked no model.
        """
        return self._loops.get((context.agent_name, context.branch))

    def begin(self, context: Any) -> Asking:
        """
        The loop of the agent of *context*, which makes a request.
        """
        loop = self.loop(context)
        if loop is None or loop.final.ended == "answered":
            loop = Asking(self.session, first=True, user=self.asked and not self._loops)
            self._loops[context.agent_name, context.branch] = loop
        return loop

    def end(self) -> None:
        """
        Let nothing of the run stay held.
        """
        for loop in self._loops.values():
            loop.failed()
        self._end()


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

    def run_of(self, context: Any) -> Run:
        """
        The run that *context* is a part of.
        """
        run = self._runs.get(context.invocation_id)
        if run is None:
            around = current_session()
            if around is not None and around.ledger.policy is not self._policy:
                around = None
            name = context.session.id if self._named is None else self._named(context.session)
            run = self._runs[context.invocation_id] = Run(*opened(self._sessions, name, around, share=self._share))
            # A run that was interrupted or cancelled says nothing of its end.
            if len(self._runs) > MAX_OPEN:
                self._runs.popitem(last=False)[1].end()
        return run

    # Runs

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
        """
        Settle the calls whose results the message brings, and answer those that an earlier run left without one.
        """
        run, parts, open_calls = self.run_of(invocation_context), [], _open_calls(invocation_context.session)
        brought = {part.function_response.id for part in user_message.parts or () if part.function_response is not None}
        run.asked = len(brought) < len(user_message.parts or ())
        for event, call in open_calls.values():
            if call.id not in brought | (event.long_running_tool_ids or set()):
                response = types.FunctionResponse(id=call.id, name=call.name, response=told(BROKEN_OFF))
                said = types.Content(role="user", parts=[types.Part(function_response=response)])
                broken = Event(
                    author=event.author, invocation_id=event.invocation_id, branch=event.branch, content=said
                )
                service = invocation_context.session_service
                await service.append_event(session=invocation_context.session, event=broken)
        for part in user_message.parts or ():
            response = part.function_response
            _, call = open_calls.get(response and response.id, (None, None))
            parts.append(part if call is None else await _settled(run.session, part, call))
        return user_message.model_copy(update={"parts": parts})

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

    # Model requests

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
        """
        Turn tools off when it is time. A choice that forces a tool holds once.
        """
        run, context = self.run_of(callback_context), callback_context.get_invocation_context()
        if context.live_request_queue is not None or (context.run_config and context.run_config.support_cfc):
            # What comes is no response by response; the calls are guarded.
            return None
        loop = run.begin(callback_context)
        if loop.final.ended in ("forced", "digest"):
            # Whatever asks on, such as a LoopAgent, hears that it is enough.
            callback_context.actions.escalate = True
            return _says(await loop.off_loop(run.session.digest))
        run.request, held = llm_request, llm_request.config.tool_config
        calling = None if held is None else held.function_calling_config
        forces = calling is not None and calling.mode == types.FunctionCallingConfigMode.ANY
        # What an agent's own callback answered was no request.
        await loop.off_loop(loop.failed)
        chosen = await loop.off_loop(loop.ask, "required" if forces else None)
        if loop.off:
            _switch_off(llm_request.config)
        elif forces and chosen != "required":
            _choose(llm_request.config, "AUTO")
        return None

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> Any:
        """
        Charge the response. A model that gives no answer is asked once more; then the digest is the answer.
        """
        run, context = self.run_of(callback_context), callback_context.get_invocation_context()
        loop = run.loop(callback_context)
        streams = context.run_config is not None and context.run_config.streaming_mode == StreamingMode.SSE
        if loop is None or llm_response.partial or (streams and not _says_something(llm_response)):
            return None

        def read(response: Any) -> tuple[str, int, dict[str, Any]]:
            return _read(response, run.request.model, off=loop.off)

        async def send(_: Any) -> Any:
            _switch_off(run.request.config)
            model, response = context.agent.canonical_model, LlmResponse()
            async for said in model.generate_content_async(run.request, stream=False):
                response = response if said.partial else said
            return response

        text, calls, about = read(llm_response)
        meaning = await loop.off_loop(loop.take, text, calls, **about)
        if meaning == "again" and not calls:
            response, digest = await loop.respond(None, send, read)
            return response if digest is None else _says(digest)
        # Calls stay where the host asks on: each reads why it is not run.
        return _says(await loop.off_loop(run.session.digest)) if meaning == "digest" else None

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        """
        Let a request that failed hold nothing.
        """
        loop = self.run_of(callback_context).loop(callback_context)
        if loop is not None:
            await loop.off_loop(loop.failed)

    # Tool calls

    async def before_tool_callback(self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any) -> None:
        """
        Let the tool run behind the session of this run, whoever made the call.
        """
        if tool.name not in ENDS:
            guard(tool, type(self))

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, error: BaseException
    ) -> Any:
        """
        Tell a model of a tool that is not there.
        """
        if type(tool) is not BaseTool:
            return None
        session = self.run_of(tool_context).session
        return told(await session.acall(tool.name, tool_args, missing, id=tool_context.function_call_id))


async def _settled(session: Session, part: Any, call: Any) -> Any:
    """
    The result of *call* that *part* brings, as the model reads it.
    """
    response = part.function_response
    given = response.response or {}
    outcome: Any = given["result"] if given.keys() == {"result"} else given
    outcome = Failed(str(given["error"])) if given.keys() == {"error"} else outcome
    try:
        arguments = call.args or {}
        envelope = await session.ledger.off_loop(session.complete, response.id, outcome, arguments=arguments)
    except (SessionError, StoreError):
        # The session never knew of it, or it is over: such as a long-running call that told how far it is.
        return part
    said = response.model_copy(update={"response": told(envelope)})
    return part.model_copy(update={"function_response": said})


def _open_calls(session: Any) -> dict[str, Any]:
    """
    The calls that have no result in the conversation, by id, each with its event.
    """
    results = {response.id for event in session.events for response in event.get_function_responses()}
    made = ((event, call) for event in session.events for call in event.get_function_calls())
    return {call.id: (event, call) for event, call in made if call.id not in results}


def _read(response: Any, model: str | None, *, off: bool) -> tuple[str, int, dict[str, Any]]:
    """
    The text and the number of calls of a *response*, and what to charge.
    """
    parts = _parts(response)
    made = [part.function_call.name for part in parts if part.function_call is not None]
    calls = [name for name in made if name not in ENDS] if off else made
    answers = any(map(_answers, parts)) or len(calls) < len(made) or response.error_code
    about = {"model": response.model_version or model or "", "usage": response.usage_metadata}
    return _text(response) or ("-" if answers else ""), len(calls), {**about, "key": response.interaction_id or None}


def _choose(config: Any, mode: Any) -> None:
    held, calling = config.tool_config or types.ToolConfig(), types.FunctionCallingConfig(mode=mode)
    config.tool_config = held.model_copy(update={"function_calling_config": calling})


def _switch_off(config: Any) -> None:
    """
    Leave of the functions of a request those alone by which an agent ends, if there are some.
    """
    tools = [tool for tool in config.tools or () if isinstance(tool, types.Tool)]
    ends = [one for tool in tools for one in tool.function_declarations or () if one.name in ENDS]
    if config.tools:
        config.tools = [types.Tool(function_declarations=ends)] if ends else config.tools
        _choose(config, "AUTO" if ends else "NONE")


def _parts(response: Any) -> list[Any]:
    return (response.content and response.content.parts) or []


def _text(response: Any) -> str:
    return "".join(part.text for part in _parts(response) if part.text and not part.thought).strip()


def _answers(part: Any) -> bool:
    return any((part.inline_data, part.file_data, part.executable_code, part.code_execution_result))


def _says_something(response: Any) -> bool:
    calls = any(_answers(part) or part.function_call is not None for part in _parts(response))
    return bool(_text(response) or calls or response.error_code or response.finish_reason)


def _says(text: str) -> Any:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=False)
