"""
The middleware: each tool call and each model request of an agent passes it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final, Unpack
from uuid import uuid4

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import (
    BROKEN_OFF,
    Asking,
    calling,
    finished,
    give_back,
    share_of,
)
from guardrails.policy.sessions import SessionOptions, Sessions
from guardrails.session.session import scoped
from guardrails.session.steps import current_session

from .tool_call import Called, answer, declaration


with needs("langchain", "`GuardrailsMiddleware`"):
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain.agents.structured_output import ProviderStrategy
    from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
    from langgraph.config import get_config
    from langgraph.errors import GraphBubbleUp
    from langgraph.graph.message import REMOVE_ALL_MESSAGES
    from langgraph.prebuilt.tool_node import ToolCallRequest

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy
    from guardrails.session.session import Session

RUN: Final = "guardrails_run"
"""The key of the graph's state by which a run without a thread finds its session."""
_NONE: Final[dict[str, Any]] = {
    "BaseChatOpenAI": "none",
    "ChatAnthropic": {"type": "none"},
    "ChatGoogleGenerativeAI": "none",
    "ChatVertexAI": "none",
}
"""How a model of a class is told to call no tool though some are listed; others are given none."""
_UNSAID: Final = frozenset(
    {"text", "reasoning", "thinking", "redacted_thinking", "non_standard"}
    | {"tool_call", "tool_use", "function_call", "invalid_tool_call", "tool_call_chunk"}
)
"""Kinds of content that answer nothing."""


class RunState(AgentState[Any]):
    """
    The fields that the middleware adds to the state of a graph.
    """

    guardrails_run: Annotated[str, PrivateStateAttr]


class GuardrailsMiddleware(AgentMiddleware[RunState, Any]):
    """
    The tool calls and model requests of an agent behind a policy, or behind a session that several agents share.

    The thread of a run (`thread_id`) names its session. A run without one has a session of its own. An agent in a
    guarded tool uses the session of the call. With *share* (`{"max_calls": 5}`) it has at most that much of it. The
    *options* are those of `Policy.session`.
    """

    state_schema = RunState

    def __init__(
        self, guarded: "Policy | Session", *, share: Mapping[str, Any] | None = None, **options: Unpack[SessionOptions]
    ) -> None:
        super().__init__()
        self._share = dict(share or {})
        self._children: dict[str, Session] = {}
        self._sessions = Sessions(guarded, **options)
        self._known: dict[int, tuple[Any, Tool]] = {}
        self._broken: dict[str, str] = {}
        """Of calls whose arguments were no JSON, by their ids: what the model wrote."""

    def session(self, thread: object = None, *, state: Any = None) -> "Session":
        """
        The session of a *thread*; without one that of the run it is asked in, whose *state* a graph's node has.
        """
        return self._own(state) if thread is None else self._sessions.of(thread)

    # Tool calls

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """
        Run a call if the chain lets it; what the model reads of it.
        """
        call, session = Called(request), self._guarded(request)
        arguments = self._broken.pop(call.id or "", call.arguments)
        return call.told(session.call(call.name, arguments, lambda *_: call.ran(handler(request)), id=call.id))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """
        The same, awaited.
        """
        call, session = Called(request), self._guarded(request)
        arguments = self._broken.pop(call.id or "", call.arguments)

        async def run(tool: str, _: Any) -> Any:
            return call.ran(await handler(request))

        return call.told(await session.acall(call.name, arguments, run, id=call.id))

    # Model requests

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """
        Ask the model; at the end without tools, and once more if it does not answer.
        """
        return finished(self._ask(request, handler, blocking=True))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """
        The same, awaited.
        """
        return await self._ask(request, handler, blocking=False)

    async def _ask(self, request: ModelRequest[Any], handler: Callable[..., Any], *, blocking: bool) -> Any:
        asking = Asking(self._own(request.state), first=_first(request.messages), blocking=blocking)

        def send(choice: Any) -> Any:
            if asking.off:
                return handler(_off(request))
            return handler(request if choice == request.tool_choice else request.override(tool_choice=choice))

        try:
            response, digest = await asking.respond(
                request.tool_choice, send, lambda said: _read(said, request.model, off=asking.off)
            )
        except BaseException as error:
            if not isinstance(error, GraphBubbleUp):
                await asking.off_loop(self._end_share, request.state)
            raise
        if digest is not None:
            return ModelResponse(result=[AIMessage(digest)])
        return self._repaired(response)

    def _repaired(self, response: Any) -> Any:
        """
        *response* with its calls whose arguments are no JSON as calls: LangChain would take it for the answer.
        """
        message = _message(response)
        if message.tool_calls or not message.invalid_tool_calls or response.structured_response is not None:
            return response
        calls: list[Any] = []
        for call in message.invalid_tool_calls:
            calls.append({"type": "tool_call", "name": call["name"], "args": {}, "id": call["id"] or uuid4().hex})
            self._broken[calls[-1]["id"]] = call["args"] or "{"
        made = message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})
        return ModelResponse(result=[made if said is message else said for said in response.result])

    def ask(
        self, model: Any, messages: Sequence[Any], tools: Sequence[Any] = (), *, state: Any = None, choice: Any = None
    ) -> list[Any]:
        """
        Ask the *model* for a node of one's own graph. Returns the messages to add. The wanted `tool_choice` is
        *choice*.
        """
        request = _request(model, messages, tools, state, choice)
        send = lambda sent: ModelResponse(result=[_bound(sent).invoke(sent.messages)])  # noqa: E731
        return list(self.wrap_model_call(request, send).result)

    async def aask(
        self, model: Any, messages: Sequence[Any], tools: Sequence[Any] = (), *, state: Any = None, choice: Any = None
    ) -> list[Any]:
        """
        The same, awaited.
        """

        async def send(sent: ModelRequest[Any]) -> ModelResponse[Any]:
            return ModelResponse(result=[await _bound(sent).ainvoke(sent.messages)])

        response = await self.awrap_model_call(_request(model, messages, tools, state, choice), send)
        return list(response.result)

    # Runs

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """
        Name the session of a run that has no thread, and answer calls that an earlier run left without a result.
        """
        named: dict[str, Any] = self._named(current_session())
        mended = _mended(state["messages"])
        if mended is not None:
            named["messages"] = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *mended]
        return named

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """
        The same.
        """
        running = current_session()
        if running is None or not self._share:
            return self.before_agent(state, runtime)
        return await running.ledger.off_loop(self.before_agent, state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """
        Forget the session of a run without a thread, which nobody can name again; give back what is left of a share.
        """
        if not self._end_share(state) and state.get(RUN) and current_session() is None:
            self._sessions.end(self._own(state))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """
        The same.
        """
        await self._own(state).ledger.off_loop(self.after_agent, state, runtime)

    def _named(self, running: "Session | None") -> dict[str, Any]:
        child = share_of(running, **self._share) if running is not None and self._share else None
        if child is not None:
            self._children[child.id] = child
            return {RUN: child.id}
        # What an earlier run of the thread left is no longer meant.
        return {RUN: uuid4().hex if running is None and _thread() is None else ""}

    def _end_share(self, state: Any) -> bool:
        child = self._children.pop(state.get(RUN), None)
        if child is not None:
            give_back(child, forget=True)
        return child is not None

    def _own(self, state: Any) -> "Session":
        held = state if isinstance(state, Mapping) else {}
        child = self._children.get(held.get(RUN) or "")
        if child is not None:
            return child
        name, running = _thread(), current_session()
        if name is not None or running is None:
            # In a graph of one's own the first message is the same in each step.
            name = name or held.get(RUN) or next((message.id for message in held.get("messages") or ()), None)
            return self._sessions.of(name, run=bool(held.get(RUN)))
        return running

    def _guarded(self, request: ToolCallRequest) -> "Session":
        tool, session = request.tool, self._own(request.state)
        if tool is None:
            return scoped(session, {}, passes=(GraphBubbleUp,))
        known = self._known.get(id(tool))
        if known is None or known[0] is not tool:
            known = self._known[id(tool)] = tool, declaration(tool)
        return calling(session, known[1], (GraphBubbleUp,))


def _thread() -> object:
    with suppress(RuntimeError):
        return get_config().get("configurable", {}).get("thread_id")
    return None


def _first(messages: list[Any]) -> bool:
    """
    Returns whether no model has answered the latest message of the user's.
    """
    said = [isinstance(one, HumanMessage) for one in messages if isinstance(one, (AIMessage, HumanMessage))]
    return not said or said[-1]


def _message(response: Any) -> AIMessage:
    return next((said for said in reversed(response.result) if isinstance(said, AIMessage)), AIMessage(""))


def _read(response: Any, model: Any, *, off: bool) -> tuple[str, int, dict[str, Any]]:
    """
    The text and the number of calls of a *response*, and what to charge. With tools *off* an output answers. One that is
    not valid counts as a call: the host asks for it again.
    """
    message = _message(response)
    answered = {said.tool_call_id for said in response.result if isinstance(said, ToolMessage)}
    calls = len([call for call in message.tool_calls if call["id"] not in answered])
    text = _said(message)
    if response.structured_response is not None:
        text, calls = text or "-", 0 if off else calls
    else:
        calls = calls or (1 if answered else len(message.invalid_tool_calls))
    about = message.response_metadata
    name = about.get("model_name") or getattr(model, "model_name", None) or getattr(model, "model", None)
    told = {"usage": message.usage_metadata, "key": message.id, "provider": about.get("model_provider")}
    return text, calls, {"model": name if isinstance(name, str) else "", **told}


def _said(message: AIMessage) -> str:
    """
    Returns the answer in *message*: its text, a refusal, or the kinds of its other parts, such as an image.
    """
    if message.text.strip():
        return str(message.text)
    blocks = [block for block in message.content if isinstance(block, dict)]
    kinds = [str(block.get("type")) for block in blocks if block.get("type") not in _UNSAID]
    return message.additional_kwargs.get("refusal") or " ".join(kinds)


def _off(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """
    *request* with tools off. By an output tool `tool_choice` is the factory's, so that it alone is offered.
    """
    by_provider = isinstance(request.response_format, ProviderStrategy)
    none = next((_NONE[kind.__name__] for kind in type(request.model).__mro__ if kind.__name__ in _NONE), None)
    if none is None or not request.tools or (request.response_format is not None and not by_provider):
        return request.override(tools=[], tool_choice=None)
    if by_provider:
        # Of a request with a schema the factory takes no other choice.
        return request.override(model_settings={**request.model_settings, "tool_choice": none})
    return request.override(tool_choice=none)


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
            made += [answer(call["name"], call["id"], BROKEN_OFF) for call in calls if call["id"] not in answered]
    return made if len(made) > len(messages) else None


def _request(model: Any, messages: Sequence[Any], tools: Sequence[Any], state: Any, choice: Any) -> ModelRequest[Any]:
    held = {"messages": list(messages)} if state is None else state
    whole = _mended(messages) or list(messages)
    return ModelRequest(model=model, messages=whole, tools=list(tools), tool_choice=choice, state=held)


def _bound(sent: ModelRequest[Any]) -> Any:
    return sent.model.bind_tools(sent.tools, tool_choice=sent.tool_choice) if sent.tools else sent.model
