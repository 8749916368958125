"""
openai-agents: a `Runner` whose runs go through a session, with all tools of all agents that they reach.

    runner = GuardedRunner(Policy.load("default"))
    result = await runner.run(agent, "go", session=SQLiteSession("thread-1"))
"""

import inspect
import json

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from typing import Any, Final

from guardrails.core.result.exceptions import ends_unknown, failure_of
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.session.session import Session

from . import hosting as kit
from .hosting import HostLoop, Last


with needs("openai-agents", "`GuardedRunner`"):
    import agents as host

    from agents import tool as host_tools
    from agents.agent_tool_state import get_agent_tool_state_scope, peek_agent_tool_run_result
    from agents.models.fake_id import FAKE_RESPONSES_ID
    from agents.run import DEFAULT_MAX_TURNS, AgentRunner
    from openai.types import responses as events

_REQUEST: Final = tuple(inspect.signature(host.Model.get_response).parameters)[1:]
"""The arguments of a request, which the host gives by place in one way of asking and by name in the other."""
_CALLS: Final = ("function", "custom_tool", "computer", "shell", "local_shell", "apply_patch", "mcp_approval_request")
"""Calls that the host makes, or asks a person about; the provider makes all others itself."""
_PARTS: Final = (host.ToolOutputText, host.ToolOutputImage, host.ToolOutputFileContent)
_KINDS: Final = ("text", "image", "file")
_ASKS_ON: Final = "run_llm_again"

_running: ContextVar[HostLoop | None] = ContextVar("guardrails_openai_agents_loop", default=None)
"""The loop of the run that this task is a part of; None: none of ours."""


class GuardedRunner(kit.Adapter, AgentRunner):
    """
    `Runner`, with its `run`, `run_sync` and `run_streamed`, behind *guarded*: a policy, or the one session of all its
    runs. *options* are those of `Policy.session`.

    The run's `conversation_id`, the id of its `session`, or the `group_id` of its configuration names the session of a
    policy, in this order. A run without any of them has a session of its own, forgotten when it ends. In a tool of a
    guarded run, it has a share of what the outer session has left.

    The agents that a run reaches, their models, servers and tools, are guarded where they stand; a plain `Runner.run`
    runs them as before.
    """

    async def run(self, starting_agent: host.Agent[Any], input: Any, **options: Any) -> host.RunResult:
        """
        As `Runner.run`. By it does `run_sync` too.
        """
        with self._run(input, options) as (session, end):
            try:
                return await super().run(starting_agent, input, **options)
            finally:
                await session.ledger.off_loop(end)

    def run_streamed(self, starting_agent: host.Agent[Any], input: Any, **options: Any) -> host.RunResultStreaming:
        """
        As `Runner.run_streamed`.
        """
        with self._run(input, options) as (_, end):
            result = super().run_streamed(starting_agent, input, **options)
        if result.run_loop_task is not None:
            result.run_loop_task.add_done_callback(lambda _: end())
        return result

    @contextmanager
    def _run(self, input: Any, options: dict[str, Any]) -> Iterator[tuple["Session", Callable[[], None]]]:
        """
        A block that is a run, with its session and what ends it. The *options* are made those of a guarded run.
        """
        given = options.get("run_config") or host.RunConfig()
        config: host.RunConfig = host.RunConfig(**given) if isinstance(given, Mapping) else given
        name = options.get("conversation_id") or getattr(options.get("session"), "session_id", None) or config.group_id
        session, end = kit.open_run(self._sessions, name or None)
        resumed = isinstance(input, host.RunState)
        _guard_provider(config.model_provider)
        _guard_model(config.model)
        more = {"tool_not_found_behavior": "return_error_to_model", "tool_error_formatter": _formatter(session, config)}
        options["run_config"] = replace(config, **more)
        requests = None if resumed else options.get("max_turns", DEFAULT_MAX_TURNS)
        token = _running.set(HostLoop(session, user=not resumed, requests=requests))
        try:
            yield session, end
        finally:
            _running.reset(token)


def _formatter(session: "Session", config: host.RunConfig) -> Any:
    own = config.tool_error_formatter

    async def text(error: Any) -> str | None:
        if error.kind == "tool_not_found":
            return (await session.acall(error.tool_name, {}, kit.missing, id=error.call_id)).to_json()
        return None if own is None else await kit.maybe_await(own(error))

    return text


# Objects of the host, guarded where they stand


_all_tools = host.Agent.get_all_tools


async def _guarded_tools(agent: Any, context: Any) -> list[Any]:
    """
    The tools of an *agent*, which the host asks for at each of its turns.
    """
    tools, loop = await _all_tools(agent, context), _running.get()
    if loop is not None:
        # Where a call may be the end of the run, the last request is as good as any.
        loop.left = loop.left if agent.tool_use_behavior == _ASKS_ON else None
        for server in agent.mcp_servers:
            if not kit.guarded(server):
                server.call_tool = _raising(server.call_tool)
        _guard_model(agent.model)
        for tool in tools:
            _guard_tool(tool)
    return tools


host.Agent.get_all_tools = _guarded_tools


def _guard_provider(provider: Any) -> None:
    if not kit.guarded(provider):
        own = provider.get_model
        provider.get_model = lambda name: _guard_model(own(name))


def _raising(call_tool: Callable[..., Any]) -> Callable[..., Any]:
    """
    The method of an MCP server, whose errors are raised: the host reads them as results.
    """

    async def call(*args: Any, **options: Any) -> Any:
        result = await call_tool(*args, **options)
        if _running.get() is not None and (getattr(result, "isError", None) or getattr(result, "is_error", None)):
            raise host.UserError("\n".join(getattr(item, "text", "") for item in result.content))
        return result

    return call


# Model requests


def _guard_model(model: Any) -> Any:
    if isinstance(model, host.Model) and not kit.guarded(model):
        guard = _Model(model)
        model.get_response, model.stream_response = guard.get_response, guard.stream_response
    return model


class _Model:
    """
    The requests to *model*, charged to the session of the run. Once it is exhausted, the model's tools are off. If the
    model calls all the same, it is asked once more; then the session's digest is its message.
    """

    def __init__(self, model: Any) -> None:
        self._respond, self._stream = model.get_response, model.stream_response
        self._name = getattr(model, "model", None)

    async def get_response(self, *args: Any, **options: Any) -> host.ModelResponse:
        loop, request = _running.get(), {**dict(zip(_REQUEST, args, strict=False)), **options}

        async def send(choice: Any) -> Any:
            return await self._respond(**_chosen(request, choice))

        if loop is None:
            return await send(request["model_settings"].tool_choice)
        response, digest = await loop.respond(_begin(loop, request), send, self._read, again=_again(request))
        return response if digest is None else replace(response, output=[_message(digest)])

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        loop, request = _running.get(), {**dict(zip(_REQUEST, args, strict=False)), **options}
        stream: AsyncIterator[Any] = self._stream(**request) if loop is None else self._streamed(loop, request)
        return stream

    async def _streamed(self, loop: HostLoop, request: dict[str, Any]) -> AsyncGenerator[Any, None]:
        async def send(choice: Any) -> AsyncGenerator[Any, None]:
            done, last = [], None
            async with aclosing(self._stream(**_chosen(request, choice))) as stream:
                async for event in stream:
                    if isinstance(event, events.ResponseCompletedEvent):
                        last = event
                    elif not loop.off or "function_call" not in getattr(event, "item", event).type:
                        # With tools off it may be asked anew: no call is passed on.
                        yield event
                    if isinstance(event, events.ResponseOutputItemDoneEvent):
                        done.append(event.item)
            if last is not None:
                # Some endpoints leave the output of the last event empty.
                last.response.output = last.response.output or done
                yield Last(last)

        begun, again = _begin(loop, request), _again(request)
        read = lambda last: self._read(last.response)  # noqa: E731
        async with aclosing(loop.stream(begun, send, read, _last_events, again=again)) as stream:
            async for event in stream:
                yield event

    def _read(self, response: Any) -> tuple[str, int, dict[str, Any]]:
        output, helpers = response.output, host.ItemHelpers
        text = "".join(helpers.extract_text(item) or helpers.extract_refusal(item) or "" for item in output)
        # The provider's own work, such as an image, answers too.
        text = text or ("-" if any(item.type not in ("message", "reasoning") for item in output) else "")
        usage = response.usage if response.usage is not None and response.usage.total_tokens else None
        model = self._name if isinstance(self._name, str) else ""
        return text, sum(item.type.removesuffix("_call") in _CALLS for item in output), {"model": model, "usage": usage}


def _begin(loop: HostLoop, request: dict[str, Any]) -> str | None:
    """
    The choice that the user wants of a *request*; one that forces a tool holds for the first of each agent.
    """
    # Agents are told apart by their tools.
    loop.begin((*(tool.name for tool in request["tools"]), *(handoff.tool_name for handoff in request["handoffs"])))
    choice = request["model_settings"].tool_choice
    return choice if choice is None or isinstance(choice, str) else "required"


def _again(request: dict[str, Any]) -> bool:
    """
    Whether a response may be thrown away. Of a conversation that the server keeps, each of its calls is to be answered.
    """
    return not (request.get("conversation_id") or request.get("previous_response_id"))


def _chosen(request: dict[str, Any], choice: Any) -> dict[str, Any]:
    """
    The *request* with the *choice* that the session makes. Without tools an endpoint refuses the key.
    """
    settings = request["model_settings"]
    own = settings.tool_choice
    same = own == choice or not request["tools"] or (choice == "required" and own is not None)
    return request if same else {**request, "model_settings": replace(settings, tool_choice=choice)}


def _message(text: str) -> events.ResponseOutputMessage:
    about = {"id": FAKE_RESPONSES_ID, "type": "message", "role": "assistant", "status": "completed"}
    part = {"type": "output_text", "text": text, "annotations": []}
    return events.ResponseOutputMessage.model_validate({**about, "content": [part]})


def _last_events(last: events.ResponseCompletedEvent, digest: str | None) -> list[Any]:
    if digest is None:
        return [last]
    delta = {"type": "response.output_text.delta", "delta": digest, "item_id": FAKE_RESPONSES_ID, "logprobs": []}
    at = {"output_index": 0, "content_index": 0, "sequence_number": last.sequence_number}
    response = last.response.model_copy(update={"output": [_message(digest)]})
    return [events.ResponseTextDeltaEvent.model_validate(delta | at), last.model_copy(update={"response": response})]


# Tool calls


def _guard_tool(tool: Any) -> None:
    """
    Put *tool*, if it is a function's, behind the session of the run that calls it.
    """
    if not isinstance(tool, host.FunctionTool) or kit.guarded(tool):
        return
    plain = copy(tool)

    async def invoke(context: Any, text: str) -> Any:
        loop = _running.get()
        if loop is None:
            return await host_tools.invoke_function_tool(function_tool=plain, context=context, arguments=text)
        return await _called(loop, plain, context, text)

    # The host prepares the arguments of a call by it to ask whether a person is to approve.
    invoke.__agents_prepare_arguments__ = getattr(plain.on_invoke_tool, "prepare_arguments", None)  # type: ignore[attr-defined]
    tool.on_invoke_tool = invoke


async def _called(loop: HostLoop, tool: host.FunctionTool, context: Any, text: str) -> Any:
    """
    The output that is read of a call of *tool* with the arguments *text*.
    """
    words = host_tools.resolve_function_tool_failure_error_function(tool, context)
    raised: Exception | None = None

    async def invoke(arguments: Any) -> Any:
        nonlocal raised
        raised = None
        try:
            return await _invoked(loop, tool, context, json.dumps(arguments, ensure_ascii=False))
        except Exception as error:  # the model reads it as data
            if words in (None, host.default_tool_error_function):
                raised = error
                raise
            told, kind = await kit.maybe_await(words(context, error)), failure_of(error).error_type
            return Failed(told, error_type=kind, unknown=ends_unknown(error, kind))

    hints = None if tool.mcp_annotations is None else tool.mcp_annotations.model_dump(by_alias=True)
    known = kit.host_tool(tool.qualified_name, tool.params_json_schema, tool.description, hints)
    outcome, key = (lambda native: kit.lines(_parts(native)) or native), context.tool_call_id
    envelope, native = await kit.guarded_call(loop, known.name, known, text or "{}", invoke, outcome, id=key)
    if raised is not None and words is None:
        # Its author wants it raised.
        raise raised
    if envelope is None:
        return native
    if envelope.ok and (tool.output_json_schema or getattr(context.agent, "tool_use_behavior", _ASKS_ON) != _ASKS_ON):
        # Code reads it, or the run may end with it.
        return native
    return kit.content(_parts(native), envelope) or envelope.to_json()


async def _invoked(loop: HostLoop, tool: host.FunctionTool, context: Any, text: str) -> Any:
    """
    The output of *tool* itself, raising what goes wrong. An agent that is one has a share of the session.
    """
    bare = host_tools.set_function_tool_failure_error_function(copy(tool), None)
    bare.timeout_seconds = None
    work = host_tools.invoke_function_tool(function_tool=bare, context=context, arguments=text)
    if getattr(tool, "_agent_instance", None) is None:
        return await work
    async with kit.share(loop.session, f"{tool.qualified_name}-{context.tool_call_id}") as session:
        token = _running.set(HostLoop(session, user=False))
        try:
            value = await work
        finally:
            _running.reset(token)
    scope = get_agent_tool_state_scope(context)
    result = context.tool_call and peek_agent_tool_run_result(context.tool_call, scope_id=scope)
    if getattr(result, "interruptions", None):
        raise kit.Parked(value)
    return value


def _parts(value: Any) -> list[dict[str, Any]]:
    """
    The parts of a message that *value* is; none if it is another value.
    """
    items = value if isinstance(value, list) else [value]
    parts = [item.model_dump(exclude_none=True) if isinstance(item, _PARTS) else item for item in items]
    return parts if all(isinstance(part, dict) and part.get("type") in _KINDS for part in parts) else []
