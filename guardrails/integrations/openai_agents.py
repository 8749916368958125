"""
openai-agents: a `Runner` whose runs go through a session, with all tools of all agents that they reach.

    runner = GuardedRunner(Policy.load("default"))
    result = await runner.run(agent, "go", session=SQLiteSession("thread-1"))
"""

import inspect
import json

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from guardrails.core.result.exceptions import failure_of
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.policy.sessions import SessionOptions, Sessions

from .hosting import Asking, Last, awaited, calling, content, declared, lines, missing, opened


with needs("openai-agents", "`GuardedRunner`"):
    import agents as host

    from agents import tool as host_tools
    from agents.agent_tool_state import get_agent_tool_state_scope, peek_agent_tool_run_result
    from agents.models.fake_id import FAKE_RESPONSES_ID
    from openai.types import responses as events


if TYPE_CHECKING:
    from agents.tool_context import ToolContext

    from guardrails.policy.policy import Policy
    from guardrails.session.session import Session

MAX_TURNS_CODE: Final = "loop.max_turns"
_REQUEST: Final = inspect.signature(host.Model.get_response)
_PROVIDERS_OWN: Final = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
    *("mcp_call", "tool_search_call"),
)
"""Calls that the provider makes itself; the host makes all others, or asks a person."""
_SPEAKS: Final = ("response.output_text.delta", "response.refusal.delta")
_PARTS: Final = (host.ToolOutputText, host.ToolOutputImage, host.ToolOutputFileContent)
_KINDS: Final = ("text", "image", "file")


class _Run(NamedTuple):
    """
    One run behind one of *sessions*, and what was offered in its requests: its agents are told apart by it.
    """

    sessions: Sessions
    asking: Asking
    offered: set[tuple[str, ...]]


_running: ContextVar[_Run | None] = ContextVar("guardrails_openai_agents_run", default=None)
"""The run that this task is a part of; None: none of ours."""


class _Parked(Exception):
    """
    An agent that is a tool waits for a person: its call goes on later.
    """

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _ServerError(Exception):
    """
    The words of an MCP server for what went wrong.
    """


class GuardedRunner:
    """
    `Runner`, with its `run`, `run_sync` and `run_streamed`, behind *guarded*: a policy, or the one session of all its
    runs. *options* are those of `Policy.session`.

    The run's `conversation_id`, the id of its `session`, or the `group_id` of its configuration names the session of a
    policy, in this order. A run without any of them has a session of its own, forgotten when it ends. In a tool of a
    guarded run, it has a share of what the outer session has left.

    The agents that a run reaches are fitted with the guard where they stand; a plain `Runner.run` runs them as before.
    """

    def __init__(self, guarded: "Policy | Session", **options: Unpack[SessionOptions]) -> None:
        self._sessions = Sessions(guarded, **options)

    def session(self, name: object) -> "Session":
        """
        The session of the runs of that name.
        """
        return self._sessions.of(name)

    async def run(self, starting_agent: host.Agent[Any], input: Any, **options: Any) -> host.RunResult:
        """
        As `Runner.run`.
        """
        with self._run(starting_agent, input, options) as (session, end):
            try:
                return await host.Runner.run(starting_agent, input, **options)
            finally:
                await session.ledger.off_loop(end)

    def run_sync(self, starting_agent: host.Agent[Any], input: Any, **options: Any) -> host.RunResult:
        """
        As `Runner.run_sync`.
        """
        with self._run(starting_agent, input, options) as (_, end):
            try:
                return host.Runner.run_sync(starting_agent, input, **options)
            finally:
                end()

    def run_streamed(self, starting_agent: host.Agent[Any], input: Any, **options: Any) -> host.RunResultStreaming:
        """
        As `Runner.run_streamed`.
        """
        with self._run(starting_agent, input, options) as (_, end):
            result = host.Runner.run_streamed(starting_agent, input, **options)
        if result.run_loop_task is not None:
            result.run_loop_task.add_done_callback(lambda _: end())
        return result

    @contextmanager
    def _run(
        self, agent: host.Agent[Any], input: Any, options: dict[str, Any]
    ) -> Iterator[tuple["Session", Callable[[], None]]]:
        """
        A block that is a run, with its session and what ends it. The *options* are made those of a guarded run.
        """
        given = options.get("run_config") or host.RunConfig()
        config: host.RunConfig = host.RunConfig(**given) if isinstance(given, Mapping) else given
        name = options.get("conversation_id") or getattr(options.get("session"), "session_id", None) or config.group_id
        outer = _running.get()
        around = outer.asking.session if outer is not None and outer.sessions is self._sessions and not name else None
        session, end = opened(self._sessions, name, around)
        _fit(agent, set())
        run = _Run(self._sessions, Asking(session, user=not isinstance(input, host.RunState)), set())
        config = _configured(session, config)
        handlers = {"max_turns": _last_word(run, config), **(options.get("error_handlers") or {})}
        options |= {"run_config": config, "error_handlers": handlers}
        token = _running.set(run)
        try:
            yield session, end
        finally:
            _running.reset(token)


def _configured(session: "Session", config: host.RunConfig) -> host.RunConfig:
    formatter = config.tool_error_formatter

    async def told(asked: Any) -> str | None:
        if asked.kind == "tool_not_found":
            return (await session.acall(asked.tool_name, {}, missing, id=asked.call_id)).to_json()
        return None if formatter is None else await awaited(formatter(asked))

    return replace(
        config,
        model=_Model.of(config.model),
        model_provider=_Provider(config.model_provider),
        tool_not_found_behavior="return_error_to_model",
        tool_error_formatter=told,
    )


def _last_word(run: _Run, config: host.RunConfig) -> Any:
    """
    The answer in place of `MaxTurnsExceeded`: the last agent, asked once more with its tools off.
    """

    async def answer(data: Any) -> Any:
        run.asking.final.force(MAX_TURNS_CODE)
        # Its guardrails are on the whole run, and see the answer as that of the run.
        agent = data.run_data.last_agent.clone(input_guardrails=[], output_guardrails=[])
        more = {"context": data.context.context, "max_turns": 1, "run_config": config}
        result = await host.Runner.run(agent, data.run_data.history, **more)
        data.context.usage.add(result.context_wrapper.usage)
        return result.final_output

    return answer


def _fit(agent: Any, seen: set[int]) -> None:
    """
    Fit the guard to *agent* and to those that it hands over to or has as tools, unless they have it.
    """
    if not isinstance(agent, host.Agent) or id(agent) in seen:
        return
    seen.add(id(agent))
    agent.mcp_servers = [server if type(server) is _Server else _Server(server) for server in agent.mcp_servers]
    agent.model = _Model.of(agent.model)
    for tool in agent.tools:
        _guard(tool)
        _fit(getattr(tool, "_agent_instance", None), seen)
    for handoff in agent.handoffs:
        known = handoff._agent_ref if isinstance(handoff, host.Handoff) else None  # noqa: SLF001  the host keeps it there alone
        _fit(handoff if known is None else known(), seen)


class _Behind:
    """
    An object of the host with methods in front: every other attribute is the object's own, its class too.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.inner)


# Model requests


class _Provider(_Behind):
    """
    A provider of models that are asked as the session of the run says.
    """

    _latest: Any = None
    """The host tells models apart by being the same object."""

    def get_model(self, model_name: str | None) -> Any:
        model = self.inner.get_model(model_name)
        if self._latest is None or self._latest.inner is not model:
            self._latest = _Model.of(model)
        return self._latest


class _Model(_Behind):
    """
    A model that is charged to the session of the run. Once the session is exhausted, the model's tools are off. If it
    calls all the same, it is asked once more; then the session's digest is its message.
    """

    @classmethod
    def of(cls, model: Any) -> Any:
        """
        *model*, if it is one and no name, asked as the session of the run says.
        """
        return cls(model) if isinstance(model, host.Model) and type(model) is not cls else model

    async def get_response(self, *given: Any, **named: Any) -> host.ModelResponse:
        run, asked = _running.get(), _by_name(given, named)

        async def send(choice: Any) -> Any:
            return await self.inner.get_response(**_chosen(asked, choice))

        if run is None:
            return await send(asked["model_settings"].tool_choice)
        response, digest = await run.asking.respond(_begun(run, asked), send, self._read, again=_again(asked))
        return response if digest is None else replace(response, output=[_message(digest)])

    def stream_response(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
        run, asked = _running.get(), _by_name(given, named)
        stream: AsyncIterator[Any]
        stream = self.inner.stream_response(**asked) if run is None else self._streamed(run, asked)
        return stream

    async def _streamed(self, run: _Run, asked: dict[str, Any]) -> AsyncGenerator[Any, None]:
        async def send(choice: Any) -> AsyncGenerator[Any, None]:
            done, late, last = [], [], None
            async with aclosing(self.inner.stream_response(**_chosen(asked, choice))) as stream:
                async for event in stream:
                    if isinstance(event, events.ResponseCompletedEvent):
                        last = event
                    elif run.asking.off and event.type not in _SPEAKS:
                        # It may have to be asked anew: what it calls is not passed on before.
                        late.append(event)
                    else:
                        yield event
                    if isinstance(event, events.ResponseOutputItemDoneEvent):
                        done.append(event.item)
            if last is not None:
                # Some endpoints leave the output of the last event empty.
                last.response.output = last.response.output or done
                yield Last((last, late))

        read = lambda said: self._read(said[0].response)  # noqa: E731
        end: list[Any] = []
        async with aclosing(run.asking.stream(_begun(run, asked), send, read, again=_again(asked))) as stream:
            async for event in stream:
                if isinstance(event, Last):
                    (last, late), digest = event.response
                    end = [*late, last] if digest is None else _told(digest, last)
                else:
                    yield event
        # The host leaves here, at the last event.
        for event in end:
            yield event

    def _read(self, response: Any) -> tuple[str, int, dict[str, Any]]:
        output, helpers = response.output, host.ItemHelpers
        text = "".join(helpers.extract_text(item) or helpers.extract_refusal(item) or "" for item in output)
        if not text and any(item.type not in ("message", "reasoning") for item in output):
            text = "(what the provider did itself)"
        used = response.usage if response.usage is not None and response.usage.total_tokens else None
        name = getattr(self.inner, "model", None)
        return text, sum(map(_is_call, output)), {"model": name if isinstance(name, str) else "", "usage": used}


def _by_name(given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """
    The arguments of a request, which the host says by place in one way of asking and by name in the other.
    """
    asked = _REQUEST.bind(None, *given, **named).arguments
    return {name: value for name, value in asked.items() if name != "self"}


def _begun(run: _Run, asked: dict[str, Any]) -> str | None:
    """
    The choice that the user wants of a request that is *asked*; one that forces a tool holds for the first of each agent.
    """
    for tool in asked["tools"]:
        _guard(tool)
    names = (*(tool.name for tool in asked["tools"]), *(handoff.tool_name for handoff in asked["handoffs"]))
    run.asking.final.first = names not in run.offered
    run.offered.add(names)
    choice = asked["model_settings"].tool_choice
    return choice if choice is None or isinstance(choice, str) else "required"


def _again(asked: dict[str, Any]) -> bool:
    """
    Whether a response may be thrown away. Of a conversation that the server keeps, each of its calls is to be answered.
    """
    return not (asked.get("conversation_id") or asked.get("previous_response_id"))


def _chosen(asked: dict[str, Any], choice: Any) -> dict[str, Any]:
    """
    The request that is *asked*, with the *choice* that the session makes. Without tools an endpoint refuses the key.
    """
    settings = asked["model_settings"]
    own = settings.tool_choice
    kept = own == choice or not asked["tools"] or (choice == "required" and own is not None)
    return asked if kept else {**asked, "model_settings": replace(settings, tool_choice=choice)}


def _is_call(item: Any) -> bool:
    kind: str = item.type
    return kind == "mcp_approval_request" or (kind.endswith("_call") and kind not in _PROVIDERS_OWN)


def _message(text: str) -> events.ResponseOutputMessage:
    said = events.ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    about: dict[str, Any] = {"type": "message", "role": "assistant", "status": "completed"}
    return events.ResponseOutputMessage(id=FAKE_RESPONSES_ID, content=[said], **about)


def _told(text: str, last: events.ResponseCompletedEvent) -> list[Any]:
    message = _message(text)
    at: dict[str, Any] = {"output_index": 0, "sequence_number": last.sequence_number}
    delta: dict[str, Any] = {"delta": text, "item_id": message.id, "content_index": 0, "logprobs": []}
    return [
        events.ResponseTextDeltaEvent(type="response.output_text.delta", **delta, **at),
        events.ResponseOutputItemDoneEvent(type="response.output_item.done", item=message, **at),
        last.model_copy(update={"response": last.response.model_copy(update={"output": [message]})}),
    ]


# Tool calls


class _Server(_Behind):
    """
    An MCP server whose errors are raised: the host reads them as results.
    """

    async def call_tool(self, tool_name: str, arguments: Any, *more: Any, **named: Any) -> Any:
        result = await self.inner.call_tool(tool_name, arguments, *more, **named)
        if _running.get() is not None and (getattr(result, "isError", None) or getattr(result, "is_error", None)):
            raise _ServerError("\n".join(getattr(item, "text", "") for item in result.content))
        return result


def _guard(tool: Any) -> None:
    """
    Put *tool*, if it is a function's, behind the session of the run that calls it, unless it is.
    """
    if not isinstance(tool, host.FunctionTool) or getattr(tool, "guarded", False):
        return
    plain = copy(tool)

    async def invoke(context: "ToolContext[Any]", text: str) -> Any:
        run = _running.get()
        if run is None:
            return await host_tools.invoke_function_tool(function_tool=plain, context=context, arguments=text)
        return await _called(run, plain, context, text)

    # The host prepares the arguments of a call by it to ask whether a person is to approve.
    invoke.__agents_prepare_arguments__ = getattr(plain.on_invoke_tool, "prepare_arguments", None)  # type: ignore[attr-defined]
    tool.on_invoke_tool = invoke
    tool.guarded = True


async def _called(run: _Run, tool: host.FunctionTool, context: "ToolContext[Any]", text: str) -> Any:
    """
    What is read of a call of *tool* with the arguments *text*.
    """
    native: Any = None
    raised: Exception | None = None

    async def execute(_: str, arguments: Any) -> Any:
        nonlocal native, raised
        native = raised = None
        try:
            native = await _invoked(run, tool, context, _sent(text, arguments))
        except _Parked:
            raise
        except Exception as error:  # the model reads it as data
            said = await _words(tool, context, error)
            # If there are none, its author wants it raised.
            raised = error if said is None else None
            if said is None or isinstance(said, Exception):
                raise said or error from None
            return Failed(said, error_type=failure_of(error).error_type)
        return lines(_parts(native)) or native

    hints = None if tool.mcp_annotations is None else tool.mcp_annotations.model_dump(by_alias=True)
    known = declared(tool.qualified_name, _as_written(tool.params_json_schema), tool.description, hints)
    try:
        session = calling(run.asking.session, known, (_Parked,))
        envelope = await session.acall(known.name, text or "{}", execute, id=context.tool_call_id)
    except _Parked as parked:
        return parked.value
    if raised is not None:
        raise raised
    if envelope.ok and tool.output_json_schema is not None:
        return envelope.value
    if envelope.ok and getattr(context.agent, "tool_use_behavior", "run_llm_again") != "run_llm_again":
        # Code of the user reads it, whose run may end with it.
        return native
    parts = content(_parts(native), envelope, lambda said: {"type": "text", "text": said}, _is_text)
    return envelope.to_json() if parts is None else parts


async def _words(tool: host.FunctionTool, context: "ToolContext[Any]", error: Exception) -> str | Exception | None:
    """
    The words of the author of *tool* for an *error*, None if there are to be none; else the error that says most.
    """
    if isinstance(error.__cause__, _ServerError):
        return error.__cause__
    said = await host_tools.maybe_invoke_function_tool_failure_error_function(
        function_tool=tool, context=context, error=error
    )
    return error if said == host.default_tool_error_function(context, error) else said


async def _invoked(run: _Run, tool: host.FunctionTool, context: "ToolContext[Any]", text: str) -> Any:
    """
    What *tool* itself gives back, raising what goes wrong. An agent that is one has a share of the session.
    """
    bare = host_tools.set_function_tool_failure_error_function(copy(tool), None)
    bare.timeout_seconds = None
    if getattr(tool, "_agent_instance", None) is None:
        return await host_tools.invoke_function_tool(function_tool=bare, context=context, arguments=text)
    around, name = run.asking.session, f"{tool.qualified_name}-{context.tool_call_id}"
    session, end = await around.ledger.off_loop(opened, run.sessions, name, around)
    token = _running.set(_Run(run.sessions, Asking(session, user=False), set()))
    try:
        value = await host_tools.invoke_function_tool(function_tool=bare, context=context, arguments=text)
    finally:
        _running.reset(token)
        await around.ledger.off_loop(end)
    scope = get_agent_tool_state_scope(context)
    result = context.tool_call and peek_agent_tool_run_result(context.tool_call, scope_id=scope)
    if getattr(result, "interruptions", None):
        raise _Parked(value)
    return value


def _as_written(schema: Any) -> Any:
    """
    *schema* before the host made it strict, which requires what has a default too.
    """
    fields = schema.get("properties") or {}
    needed = [name for name in schema.get("required") or () if "default" not in fields.get(name, {})]
    return {**schema, "required": needed} if needed != schema.get("required") else schema


def _sent(text: str, arguments: Any) -> str:
    """
    *arguments* as the host takes them: the model's own *text* unless they were changed.
    """
    with suppress(ValueError):
        if json.loads(text or "{}") == arguments:
            return text
    return json.dumps(arguments, ensure_ascii=False)


def _parts(value: Any) -> list[dict[str, Any]]:
    """
    The parts of a message that *value* is; none if it is another value.
    """
    items = value if isinstance(value, list) else [value]
    parts = [item.model_dump(exclude_none=True) if isinstance(item, _PARTS) else item for item in items]
    return parts if all(isinstance(part, dict) and part.get("type") in _KINDS for part in parts) else []


def _is_text(part: dict[str, Any]) -> bool:
    return bool(part["type"] == "text")
