"""
LangChain and LangGraph: a middleware of `create_agent`, whose methods fit `ToolNode` and graphs of one's own too.

    create_agent(model, tools, middleware=[GuardrailsMiddleware(Policy.load("default"))])
"""

import asyncio

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Final, Unpack
from uuid import uuid4

from guardrails.core.envelope import Envelope
from guardrails.core.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.policy.policy import Policy
from guardrails.policy.sessions import SessionOptions
from guardrails.session.session import Session

from . import hosting as kit
from .hosting import HostLoop


with needs("langchain", "`GuardrailsMiddleware`"):
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain.agents.structured_output import ProviderStrategy
    from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
    from langgraph.config import get_config
    from langgraph.errors import GraphBubbleUp
    from langgraph.graph.message import REMOVE_ALL_MESSAGES
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command

RUN: Final = "guardrails_run"
"""The key of the graph's state by which a run without a thread, or one that a tool makes, finds its session."""
_NONE: Final[dict[str, Any]] = {
    "BaseChatOpenAI": "none",
    "ChatAnthropic": {"type": "none"},
    "ChatGoogleGenerativeAI": "none",
    "ChatVertexAI": "none",
}
"""How a model of a class is told to call no tool though some are listed; others are given none."""
_CALLS: Final = ("tool_call", "tool_use", "function_call", "invalid_tool_call", "tool_call_chunk")
_UNSAID: Final = frozenset(("text", "reasoning", "thinking", "redacted_thinking", "non_standard", *_CALLS))
"""Kinds of content that answer nothing."""


class _RunState(AgentState[Any]):
    """
    The fields that the middleware adds to the state of a graph.
    """

    guardrails_run: Annotated[str, PrivateStateAttr]


class GuardrailsMiddleware(kit.Adapter, AgentMiddleware[_RunState, Any]):
    """
    The tool calls and model requests of an agent behind a policy, or behind a session that several agents share.

    The thread of a run (`thread_id`) names its session. A run without one has a session of its own. An agent in a
    guarded tool has a share of the session of the call. The *options* are those of `Policy.session`.
    """

    state_schema = _RunState

    def __init__(self, guarded: "Policy | Session", **options: Unpack[SessionOptions]) -> None:
        super().__init__(guarded, **options)
        self._shares: dict[str, tuple[Session, Session, Callable[[], None]]] = {}
        """Of agents that a call runs, by their ids: the share, the session of the call, and the end of the share."""
        self._known: dict[int, tuple[Any, Tool]] = {}
        """By the ids of tools, which are kept so that no other has them."""
        self._broken: dict[str, str] = {}
        """Of calls whose arguments were no JSON, by their ids: what the model wrote."""

    def session(self, thread: object = None, *, state: Any = None) -> "Session":
        """
        The session of a *thread*; without one that of the run it is asked in, whose *state* a graph's node has.
        """
        if thread is not None:
            return self._sessions.of(thread)
        held = state if isinstance(state, Mapping) else {}
        run = held.get(RUN)
        if run in self._shares:
            return self._shares[run][0]
        # In a graph of one's own the first message is the same in each step.
        name = _thread() or run or next((message.id for message in held.get("messages") or ()), None)
        return self._sessions.around or self._sessions.of(name, run=bool(run))

    # Tool calls

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """
        Run a call if the chain lets it; what the model reads of it.
        """
        call, session, arguments = self._called(request)
        try:
            return call.answer(session.call(call.name, arguments, lambda *_: call.ran(handler(request)), id=call.id))
        finally:
            self._end_shares(session)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """
        The same, awaited.
        """
        call, session, arguments = self._called(request)

        async def run(tool: str, _: Any) -> Any:
            return call.ran(await handler(request))

        try:
            return call.answer(await session.acall(call.name, arguments, run, id=call.id))
        finally:
            if self._shares:
                await session.ledger.off_loop(self._end_shares, session)

    def _called(self, request: ToolCallRequest) -> "tuple[_Call, Session, Any]":
        call, tool, session = _Call(request), request.tool, self.session(state=request.state)
        arguments = self._broken.pop(call.id or "", request.tool_call["args"])
        _, known = self._known.get(id(tool), (None, None))
        if tool is not None and known is None:
            _, known = self._known[id(tool)] = tool, _declared(tool)
        return call, kit.call_session(session, known, (GraphBubbleUp,)), arguments

    def _end_shares(self, session: "Session") -> None:
        for run, (_, around, end) in [*self._shares.items()]:
            if around is session:
                del self._shares[run]
                end()

    # Model requests

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """
        Ask the model; at the end without tools, and once more if it does not answer.
        """
        return kit.sync_result(self.awrap_model_call(request, handler, blocking=True))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any], *, blocking: bool = False
    ) -> Any:
        """
        The same, awaited, unless nothing is to be waited for.
        """
        spoke = [
            isinstance(one, HumanMessage) for one in request.messages if isinstance(one, (HumanMessage, AIMessage))
        ]
        loop = HostLoop(self.session(state=request.state), first=not spoke or spoke[-1])
        loop.blocking = blocking

        def send(choice: Any) -> Any:
            if loop.off:
                return handler(_off(request))
            return handler(request if choice == request.tool_choice else request.override(tool_choice=choice))

        read = partial(_read, request.model, loop)
        response, digest = await loop.respond(request.tool_choice, send, read)
        if digest is not None:
            return ModelResponse(result=[AIMessage(digest)])
        message = _message(response)
        if not message.invalid_tool_calls or response.structured_response is not None:
            return response
        # Arguments that are no JSON: LangChain would take the calls for the answer, or leave them without a result.
        calls = [*message.tool_calls]
        for call in message.invalid_tool_calls:
            calls.append({"type": "tool_call", "name": call["name"], "args": {}, "id": call["id"] or uuid4().hex})
            self._broken[calls[-1]["id"]] = call["args"] or "{"
        whole = message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})
        return ModelResponse(result=[whole if one is message else one for one in response.result])

    def ask(
        self, model: Any, messages: Sequence[Any], tools: Sequence[Any] = (), *, state: Any = None, choice: Any = None
    ) -> list[Any]:
        """
        Ask the *model* for a node of one's own graph. Returns the messages to add. The wanted `tool_choice` is
        *choice*.
        """
        send = lambda sent: ModelResponse(result=[_bound(sent).invoke(sent.messages)])  # noqa: E731
        return list(self.wrap_model_call(_request(model, messages, tools, state, choice), send).result)

    async def aask(
        self, model: Any, messages: Sequence[Any], tools: Sequence[Any] = (), *, state: Any = None, choice: Any = None
    ) -> list[Any]:
        """
        The same, awaited.
        """

        async def send(sent: ModelRequest[Any]) -> ModelResponse[Any]:
            return ModelResponse(result=[await _bound(sent).ainvoke(sent.messages)])

        return list((await self.awrap_model_call(_request(model, messages, tools, state, choice), send)).result)

    # Runs

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """
        Name the session of a run that has no thread, and answer calls that an earlier run left without a result.
        """
        around, mended = self._sessions.around, _mended(state["messages"])
        # The name that an earlier run of the thread left is no longer meant.
        named: dict[str, Any] = {RUN: uuid4().hex if around is None and _thread() is None else ""}
        if around is not None:
            share, end = kit.open_share(around)
            if share is not around:
                named[RUN], self._shares[share.id] = share.id, (share, around, end)
        return named if mended is None else {**named, "messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *mended]}

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """
        The same.
        """
        return await asyncio.to_thread(self.before_agent, state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """
        Forget the session of a run without a thread, which nobody can name again.
        """
        if state.get(RUN) and self._sessions.around is None:
            self._sessions.end(self.session(state=state))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """
        The same.
        """
        await asyncio.to_thread(self.after_agent, state, runtime)


class _Call:
    """
    One call, and the message that ToolNode made of what its tool gave back.
    """

    def __init__(self, request: ToolCallRequest) -> None:
        self.name, self.id = request.tool_call["name"], request.tool_call["id"] or None
        self._tool = request.tool
        self._native: Any = None
        self._message: ToolMessage | None = None

    def ran(self, native: Any) -> Any:
        """
        The outcome of the call.
        """
        self._native, self._message = native, self._answer_in(native)
        if self._message is None:
            return None
        text = kit.lines(_blocks(self._message))
        if self._message.status == "error":
            return Failed(text, error_type="tool_missing" if self._tool is None else None)
        return kit.value_of(text, getattr(self._tool, "func", None) or getattr(self._tool, "coroutine", None))

    def answer(self, envelope: Envelope) -> Any:
        """
        Returns what goes into the conversation: *envelope*, in the tool's own form if that has more than text.
        """
        message = self._message
        if self._native is None or (message is None and not envelope.ok):
            return _result(self.name, self.id, envelope)
        direct = envelope.ok and not envelope.cut and getattr(self._tool, "return_direct", False)
        # What is returned directly it is the user who reads.
        if message is not None and not direct:
            message.content = kit.content(_blocks(message), envelope) or envelope.to_json()
            message.status = "success" if envelope.ok else "error"
        return self._native

    def _answer_in(self, native: Any) -> ToolMessage | None:
        """
        The message in *native* that answers the call.
        """
        if isinstance(native, ToolMessage):
            return native if native.tool_call_id == (self.id or "") else None
        items = native.update if isinstance(native, Command) else native
        items = items.get("messages") if isinstance(items, Mapping) else items
        return next(filter(None, map(self._answer_in, items)), None) if isinstance(items, (list, tuple)) else None


def _result(name: str, id: str | None, envelope: Envelope) -> ToolMessage:
    status = "success" if envelope.ok else "error"
    return ToolMessage(envelope.to_json(), tool_call_id=id or "", name=name, status=status)


def _declared(tool: Any) -> Tool:
    """
    *tool* as a session knows it: what the model may pass, injected arguments left out, and the hints of an MCP server.
    """
    schema: Any = None
    with suppress(TypeError, ValueError, AttributeError):  # the definition is the code of others
        schema, whole = tool.tool_call_schema, tool.args_schema
        if getattr(schema, "model_fields", {}).keys() == getattr(whole, "model_fields", ()):
            # The whole one has the validators that the other lost.
            schema = whole
    hints = {name: hint for name, hint in (tool.metadata or {}).items() if name.endswith("Hint")}
    return kit.host_tool(tool.name, schema, hints=hints)


def _blocks(message: ToolMessage) -> list[Any]:
    return [message.content] if isinstance(message.content, str) else message.content


def _thread() -> object:
    with suppress(RuntimeError):
        return get_config().get("configurable", {}).get("thread_id")
    return None


def _message(response: Any) -> AIMessage:
    return next((one for one in reversed(response.result) if isinstance(one, AIMessage)), AIMessage(""))


def _read(model: Any, loop: HostLoop, response: Any) -> tuple[str, int, dict[str, Any]]:
    """
    The text and the number of calls of a *response*, and what to charge. With tools off an output answers. One that is not
    valid counts as a call: the host asks for it again.
    """
    message, output = _message(response), response.structured_response is not None
    outputs = {one.tool_call_id for one in response.result if output and isinstance(one, ToolMessage)}
    calls = [call for call in (*message.tool_calls, *message.invalid_tool_calls) if call["id"] not in outputs]
    # A refusal answers too, and so does other content, such as an image.
    blocks = (block for block in message.content if isinstance(block, dict) and block.get("type") not in _UNSAID)
    text = message.text.strip() or message.additional_kwargs.get("refusal") or " ".join(map(str, blocks))
    about = message.response_metadata
    name = about.get("model_name") or getattr(model, "model_name", None) or getattr(model, "model", None)
    charge = {"model": name if isinstance(name, str) else "", "usage": message.usage_metadata, "key": message.id}
    charge["provider"] = about.get("model_provider")
    return text or ("-" if output else ""), 0 if output and loop.off else len(calls), charge


def _off(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """
    *request* with tools off. By an output tool `tool_choice` is the factory's, so that it alone is offered.
    """
    by_provider = isinstance(request.response_format, ProviderStrategy)
    none = next((_NONE[kind.__name__] for kind in type(request.model).__mro__ if kind.__name__ in _NONE), None)
    if none is None or not request.tools or (request.response_format is not None and not by_provider):
        return request.override(tools=[], tool_choice=None)
    # Of a request with a schema the factory takes no other choice.
    settings = {**request.model_settings, "tool_choice": none}
    return request.override(model_settings=settings) if by_provider else request.override(tool_choice=none)


def _mended(messages: Sequence[Any]) -> list[Any] | None:
    """
    *messages* with a result for each call that was broken off. Returns None if none is missing.
    """
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    made: list[Any] = []
    for at, message in enumerate(messages):
        made.append(message)
        calls = [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []
        # The last one's are still to be made.
        if at < len(messages) - 1:
            made += [_result(call["name"], call["id"], kit.BROKEN_OFF) for call in calls if call["id"] not in answered]
    return made if len(made) > len(messages) else None


def _request(model: Any, messages: Sequence[Any], tools: Sequence[Any], state: Any, choice: Any) -> ModelRequest[Any]:
    whole, held = _mended(messages) or list(messages), {"messages": list(messages)} if state is None else state
    return ModelRequest(model=model, messages=whole, tools=list(tools), tool_choice=choice, state=held)


def _bound(sent: ModelRequest[Any]) -> Any:
    return sent.model.bind_tools(sent.tools, tool_choice=sent.tool_choice) if sent.tools else sent.model
