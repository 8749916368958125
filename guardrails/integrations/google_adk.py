"""
google-adk: a plugin for all agents of an app. Each model request and each tool call passes it.

    App(name="app", root_agent=agent, plugins=[GuardrailsPlugin(Policy.load("default"))])
"""

import json

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Unpack

from guardrails.core.envelope import Envelope
from guardrails.core.result.content import read_mcp
from guardrails.core.values.errors import SessionError, StoreError, needs
from guardrails.core.values.types import Failed
from guardrails.hooks.results import notes_of
from guardrails.policy.policy import Policy
from guardrails.policy.sessions import MAX_OPEN, SessionOptions, Sessions
from guardrails.session.session import Session
from guardrails.session.steps import is_async

from . import hosting as kit
from .hosting import HostLoop


with needs("google-adk", "this adapter"):
    from google.adk.agents.run_config import StreamingMode
    from google.adk.events.event import Event
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools import BaseTool, FunctionTool, LongRunningFunctionTool
    from google.adk.workflow._errors import NodeInterruptedError
    from google.genai import types

_ENDS: Final = ("set_model_response", "exit_loop", "finish_task")
"""ADK's own tools that end a loop; they run whenever they are called."""
_FREE: Final = (*_ENDS, "transfer_to_agent")
_Name = Callable[[Any], object]


class _Run:
    """
    One run in a *session*, which *end* ends, with the loops of its agents.
    """

    def __init__(self, session: Session, end: Callable[[], None]) -> None:
        self.session = session
        self.user = False
        """A message of the user's began it, and not the result of a call."""
        self.request: Any = None
        """The latest one."""
        self._end = end
        self._loops: dict[Any, HostLoop] = {}

    def loop(self, context: Any) -> HostLoop | None:
        """
        The loop of the agent of *context*; None if it has asked no model.
        """
        return self._loops.get((context.agent_name, context.branch))

    def begin(self, context: Any) -> HostLoop:
        """
        The loop of the agent of *context*, which makes a request.
        """
        loop = self.loop(context)
        if loop is None or loop.final.ended == "answered":
            loop = HostLoop(self.session, user=self.user and not self._loops)
            self._loops[context.agent_name, context.branch] = loop
        return loop

    def end(self) -> None:
        """
        Let nothing of the run stay held.
        """
        for loop in self._loops.values():
            loop.failed()
        self._end()


class GuardrailsPlugin(kit.Adapter, BasePlugin):
    """
    The tool calls and model requests of all agents of an app behind a policy, or behind a session that several apps share.

    The id of ADK's session names that of a run; *named* makes another name of ADK's session, such as one with its user.
    An agent that a guarded tool runs (`AgentTool`) has a share of what is left then. Its session is a child, and counts
    its own looks. The *options* are those of `Policy.session`.
    """

    def __init__(
        self, guarded: "Policy | Session", *, named: _Name | None = None, **options: Unpack[SessionOptions]
    ) -> None:
        BasePlugin.__init__(self, name="guardrails")
        self._sessions, self._named = Sessions(guarded, **options), named or (lambda session: session.id)
        self._runs: OrderedDict[str, _Run] = OrderedDict()

    def run_of(self, context: Any) -> _Run:
        """
        The run that *context* is a part of.
        """
        run = self._runs.get(context.invocation_id)
        if run is None:
            run = _Run(*kit.open_run(self._sessions, self._named(context.session)))
            self._runs[context.invocation_id] = run
            # A run that was interrupted or cancelled says nothing of its end.
            if len(self._runs) > MAX_OPEN:
                self._runs.popitem(last=False)[1].end()
        return run

    # Runs

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
        """
        Settle the calls whose results the message brings, and answer those that an earlier run left without one.
        """
        run, parts = self.run_of(invocation_context), user_message.parts or []
        thread, service = invocation_context.session, invocation_context.session_service
        calls, brought = _open_calls(thread), {part.function_response and part.function_response.id for part in parts}
        run.user = not parts or None in brought
        for key, (event, call) in calls.items():
            if key not in brought | (event.long_running_tool_ids or set()):
                answer = types.Content(role="user", parts=[_answer(key, call.name, kit.BROKEN_OFF)])
                about = {"author": event.author, "invocation_id": event.invocation_id, "branch": event.branch}
                await service.append_event(session=thread, event=Event(content=answer, **about))
        return user_message.model_copy(update={"parts": [await _settled(run.session, part, calls) for part in parts]})

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
            # It does not come response by response; the calls are guarded.
            return None
        loop = run.begin(callback_context)
        if loop.final.ended in ("forced", "digest"):
            # Whatever asks on, such as a LoopAgent, hears that it is enough.
            callback_context.actions.escalate = True
            return _text_response(await loop.off_loop(run.session.digest))
        run.request, config = llm_request, llm_request.config.tool_config
        choice = None if config is None else config.function_calling_config
        forces = choice is not None and choice.mode == types.FunctionCallingConfigMode.ANY
        # An answer of an agent's own callback was no request.
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
        if loop is None or llm_response.partial:
            return None

        def read(response: Any) -> tuple[str, int, dict[str, Any]]:
            return _read(response, run.request.model, off=loop.off)

        async def send(_: Any) -> Any:
            _switch_off(run.request.config)
            responses = context.agent.canonical_model.generate_content_async(run.request, stream=False)
            return ([response async for response in responses if not response.partial] or [LlmResponse()])[-1]

        text, calls, charge = read(llm_response)
        if streams and not (text or calls or llm_response.finish_reason):
            return None
        meaning = await loop.off_loop(loop.take, text, calls, **charge)
        if meaning == "again" and not calls:
            response, digest = await loop.respond(None, send, read)
            return response if digest is None else _text_response(digest)
        # Calls stay where the host asks on: each reads why it is not run.
        return _text_response(await loop.off_loop(run.session.digest)) if meaning == "digest" else None

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
        if not free and not kit.guarded(tool):
            tool.run_async = _guarded(tool, type(self))

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, error: BaseException
    ) -> Any:
        """
        Answer a call of a tool that is not there.
        """
        if type(tool) is not BaseTool:
            return None
        session = self.run_of(tool_context).session
        return _response(await session.acall(tool.name, tool_args, kit.missing, id=tool_context.function_call_id))


def _open_calls(thread: Any) -> dict[str, Any]:
    """
    The calls that have no result in the conversation, by id, each with its event.
    """
    results = {response.id for event in thread.events for response in event.get_function_responses()}
    calls = ((event, call) for event in thread.events for call in event.get_function_calls())
    return {call.id: (event, call) for event, call in calls if call.id not in results}


async def _settled(session: Session, part: Any, calls: Mapping[str, Any]) -> Any:
    """
    The *part* of a message, as the model reads it if it is the result of one of the open *calls*.
    """
    response = part.function_response
    _, call = calls.get(response and response.id, (None, None))
    if call is None:
        return part
    native = response.response or {}
    outcome: Any = native["result"] if native.keys() == {"result"} else native
    outcome = Failed(str(native["error"])) if native.keys() == {"error"} else outcome
    with suppress(SessionError, StoreError):
        # Else the session never knew of it, or it is over: such as a long-running call that told how far it is.
        complete = partial(session.complete, response.id, outcome, arguments=call.args or {})
        envelope = await session.ledger.off_loop(complete)
        return _answer(response.id, response.name, envelope)
    return part


def _read(response: Any, model: str | None, *, off: bool) -> tuple[str, int, dict[str, Any]]:
    """
    The text and the number of calls of a *response*, and its charge.
    """
    parts = _parts(response)
    names = [part.function_call.name for part in parts if part.function_call is not None]
    calls = [name for name in names if name not in _ENDS] if off else names
    answers = any(map(_has_content, parts)) or len(calls) < len(names) or response.error_code
    charge = {"model": response.model_version or model or "", "usage": response.usage_metadata}
    return _text(response) or ("-" if answers else ""), len(calls), {**charge, "key": response.interaction_id or None}


def _choose(config: Any, mode: Any) -> None:
    own, choice = config.tool_config or types.ToolConfig(), types.FunctionCallingConfig(mode=mode)
    config.tool_config = own.model_copy(update={"function_calling_config": choice})


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


def _has_content(part: Any) -> bool:
    return any((part.inline_data, part.file_data, part.executable_code, part.code_execution_result))


def _text_response(text: str) -> Any:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=False)


def _guarded(tool: BaseTool, kind: type) -> Callable[..., Any]:
    """
    Returns the function that runs *tool* if the session lets it, in place of its own `run_async`, where a plugin of this
    *kind* is. An error that it raises is data.
    """
    own = tool.run_async
    # A synchronous function, which ADK runs in its loop.
    blocking = type(tool) in (FunctionTool, LongRunningFunctionTool) and not is_async(tool.func)

    async def guarded(*, args: dict[str, Any], tool_context: Any) -> Any:
        key, plugins = tool_context.function_call_id, tool_context.get_invocation_context().plugin_manager.plugins
        plugin: Any = next((one for one in plugins if isinstance(one, kind)), None)
        if plugin is None or getattr(tool_context.node, "tool", None) is tool:
            # The latter is a step of a workflow, which no model asked for.
            return await own(args=args, tool_context=tool_context)
        run = plugin.run_of(tool_context)

        async def invoke(arguments: Any) -> Any:
            result, actions = await own(args=dict(arguments), tool_context=tool_context), tool_context.actions
            waits = {*actions.requested_tool_confirmations, *actions.requested_auth_configs}
            if key in waits or (tool.is_long_running and not result):
                raise kit.Parked(result)
            return result

        outcome = lambda native: read_mcp(native) if isinstance(native, Mapping) and "isError" in native else native  # noqa: E731
        loop = run.loop(tool_context) or HostLoop(run.session)
        options: dict[str, Any] = {"id": key, "passes": (NodeInterruptedError,), "blocking": blocking}
        envelope, native = await kit.guarded_call(loop, tool.name, _known(tool), args, invoke, outcome, **options)
        return native if envelope is None else _result(native, envelope, tool_context)

    return guarded


def _known(tool: BaseTool) -> Any:
    one = tool._get_declaration()  # noqa: SLF001  the only place that says what the model may pass
    schema = None if one is None else one.parameters_json_schema
    if one is not None and schema is None and one.parameters is not None:
        schema = one.parameters.json_schema.model_dump(mode="json", exclude_none=True, by_alias=True)
    return kit.host_tool(tool.name, schema, tool.description)


def _response(envelope: Envelope) -> dict[str, Any]:
    """
    *envelope* as the response of a function.
    """
    text = envelope.to_json(None if envelope.form == "merged" else "nested")
    response: dict[str, Any] = json.loads(text if text[:1] == "{" else envelope.to_json("nested"))
    return response


def _answer(key: str, tool: str, envelope: Envelope) -> types.Part:
    response = types.FunctionResponse(id=key, name=tool, response=_response(envelope))
    return types.Part(function_response=response)


def _result(native: Any, envelope: Envelope, context: Any) -> Any:
    """
    The result as the model reads it. Media keep their form, and so do values that the host shows the user.
    """
    if envelope.ok and context.actions.skip_summarization:
        return native
    if not envelope.ok or not _has_media(native):
        return _response(envelope)
    notes, whole = notes_of(envelope), native if isinstance(native, Mapping) else {"result": native}
    return native if notes is None else {**whole, "guardrails": json.loads(notes)}


def _has_media(native: Any, depth: int = 2) -> bool:
    items = native.values() if isinstance(native, Mapping) else native if isinstance(native, (list, tuple)) else ()
    return isinstance(native, types.Part) or (depth > 0 and any(_has_media(item, depth - 1) for item in items))
