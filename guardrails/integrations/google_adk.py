"""
google-adk: a plugin for all agents of an app. Each model request and each tool call passes it.

    App(name="app", root_agent=agent, plugins=[GuardrailsPlugin(Policy.load("default"))])
"""

import asyncio
import json

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack

from guardrails.core.envelope import Envelope
from guardrails.core.result.content import read_mcp
from guardrails.core.values.errors import SessionError, StoreError, needs
from guardrails.core.values.types import Failed
from guardrails.hooks.results import beside
from guardrails.policy.sessions import MAX_OPEN, SessionOptions, Sessions
from guardrails.session.session import Session, scoped
from guardrails.session.steps import is_async

from .hosting import BROKEN_OFF, Asking, calling, declared, missing, opened


with needs("google-adk", "this adapter"):
    from google.adk.agents.run_config import StreamingMode
    from google.adk.events.event import Event
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools import BaseTool, FunctionTool, LongRunningFunctionTool
    from google.adk.workflow._errors import NodeInterruptedError
    from google.genai import types

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy

_ENDS: Final = ("set_model_response", "exit_loop", "finish_task")
"""ADK's own tools that end a loop; they run whenever they are called."""
_FREE: Final = (*_ENDS, "transfer_to_agent")


class _Later(Exception):
    """
    A person, or something outside, is to say what comes of a call: *native* is what ADK is told until then.
    """

    def __init__(self, native: Any) -> None:
        super().__init__()
        self.native = native


_PASSES: Final = (_Later, NodeInterruptedError)


class _Run:
    """
    One run in a *session*, which *end* ends, with the loops of its agents.
    """

    def __init__(self, session: Session, end: Callable[[], None]) -> None:
        self.session = scoped(session, {}, passes=_PASSES)
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
            loop = Asking(self.session, user=self.asked and not self._loops)
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
    An agent that a guarded tool runs (`AgentTool`) has a share of what is left then. Its session is a child, and counts
    its own looks. The *options* are those of `Policy.session`.
    """

    def __init__(
        self,
        guarded: "Policy | Session",
        *,
        named: Callable[[Any], object] | None = None,
        name: str = "guardrails",
        **options: Unpack[SessionOptions],
    ) -> None:
        super().__init__(name=name)
        self._sessions = Sessions(guarded, **options)
        self._named = named
        self._runs: OrderedDict[str, _Run] = OrderedDict()

    def session(self, thread: object) -> Session:
        """
        The session that the id *thread* of ADK's session names.
        """
        return self._sessions.of(thread)

    def run_of(self, context: Any) -> _Run:
        """
        The run that *context* is a part of.
        """
        run = self._runs.get(context.invocation_id)
        if run is None:
            name = context.session.id if self._named is None else self._named(context.session)
            session, end = opened(self._sessions, name, self._sessions.around)
            run = self._runs[context.invocation_id] = _Run(session, end)
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
                response = types.FunctionResponse(id=call.id, name=call.name, response=_told(BROKEN_OFF))
                said = types.Content(role="user", parts=[types.Part(function_response=response)])
                about = {"author": event.author, "invocation_id": event.invocation_id, "branch": event.branch}
                service, where = invocation_context.session_service, invocation_context.session
                await service.append_event(session=where, event=Event(content=said, **about))
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
        free = tool.name in _FREE or getattr(tool, "_defers_response", False) is True
        if not free and not getattr(tool.run_async, "guarded", False):
            tool.run_async = _guarded(tool, type(self))

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, error: BaseException
    ) -> Any:
        """
        Tell a model of a tool that is not there.
        """
        if type(tool) is not BaseTool:
            return None
        session = self.run_of(tool_context).session
        return _told(await session.acall(tool.name, tool_args, missing, id=tool_context.function_call_id))


async def _settled(session: Session, part: Any, call: Any) -> Any:
    """
    The result of *call* that *part* brings, as the model reads it.
    """
    response = part.function_response
    given = response.response or {}
    outcome: Any = given["result"] if given.keys() == {"result"} else given
    outcome = Failed(str(given["error"])) if given.keys() == {"error"} else outcome
    with suppress(SessionError, StoreError):
        # Else the session never knew of it, or it is over: such as a long-running call that told how far it is.
        complete = partial(session.complete, response.id, outcome, arguments=call.args or {})
        said = response.model_copy(update={"response": _told(await session.ledger.off_loop(complete))})
        return part.model_copy(update={"function_response": said})
    return part


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
    calls = [name for name in made if name not in _ENDS] if off else made
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
    ends = [one for tool in tools for one in tool.function_declarations or () if one.name in _ENDS]
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


def _guarded(tool: BaseTool, kind: type) -> Callable[..., Any]:
    """
    Returns the function that runs *tool* if the session lets it, in place of its own `run_async`, where a plugin of this
    *kind* is. An error that it raises is data.
    """
    own = tool.run_async
    # A synchronous function, which ADK runs in its loop.
    blocks = type(tool) in (FunctionTool, LongRunningFunctionTool) and not is_async(tool.func)

    async def guarded(*, args: dict[str, Any], tool_context: Any) -> Any:
        key, plugins = tool_context.function_call_id, tool_context.get_invocation_context().plugin_manager.plugins
        plugin: Any = next((one for one in plugins if isinstance(one, kind)), None)
        if plugin is None or getattr(tool_context.node, "tool", None) is tool:
            # The latter is a step of a workflow, which no model asked for.
            return await own(args=args, tool_context=tool_context)
        run = plugin.run_of(tool_context)
        loop = run.loop(tool_context)
        if loop is not None and loop.off:
            return _told(await loop.off_loop(loop.refusal, tool.name, args, id=key))
        native: Any = None

        async def execute(_: str, arguments: Any) -> Any:
            nonlocal native
            # What an attempt before came to is not what this one does.
            native = None
            native = await own(args=dict(arguments), tool_context=tool_context)
            if _is_later(tool, tool_context, native):
                raise _Later(native)
            return read_mcp(native) if isinstance(native, Mapping) and "isError" in native else native

        def begin(name: str, arguments: Any) -> Any:
            # With a time limit the session runs it in a thread, which has no loop: else it would stop the host's.
            made = execute(name, arguments)
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return asyncio.run(made)
            return made

        try:
            session = calling(run.session, _known(tool), _PASSES)
            envelope = await session.acall(tool.name, args, begin if blocks else execute, id=key)
        except _Later as later:
            return later.native
        return _shown(native, envelope, tool_context)

    guarded.guarded = True  # type: ignore[attr-defined]
    return guarded


def _told(envelope: Envelope) -> dict[str, Any]:
    """
    *envelope* as the response of a function.
    """
    text = envelope.to_json(None if envelope.form == "merged" else "nested")
    said: dict[str, Any] = json.loads(text if text[:1] == "{" else envelope.to_json("nested"))
    return said


def _known(tool: BaseTool) -> Any:
    one = tool._get_declaration()  # noqa: SLF001  the only place that says what the model may pass
    schema = None if one is None else one.parameters_json_schema
    if one is not None and schema is None and one.parameters is not None:
        schema = one.parameters.json_schema.model_dump(mode="json", exclude_none=True, by_alias=True)
    return declared(tool.name, schema, tool.description)


def _is_later(tool: BaseTool, context: Any, result: Any) -> bool:
    asked = {*context.actions.requested_tool_confirmations, *context.actions.requested_auth_configs}
    return context.function_call_id in asked or (tool.is_long_running and not result)


def _shown(native: Any, envelope: Envelope, context: Any) -> Any:
    """
    Returns *envelope* as the model reads it. Media keep their form, and so do values that the host shows the user.
    """
    if envelope.ok and context.actions.skip_summarization:
        return native
    if not envelope.ok or not _has_media(native):
        return _told(envelope)
    said = beside(envelope)
    if said is None:
        return native
    return {**(native if isinstance(native, Mapping) else {"result": native}), "guardrails": json.loads(said)}


def _has_media(native: Any, depth: int = 2) -> bool:
    if isinstance(native, types.Part):
        return True
    if not depth or not isinstance(native, (Mapping, list, tuple)):
        return False
    held = native.values() if isinstance(native, Mapping) else native
    return any(_has_media(one, depth - 1) for one in held)
