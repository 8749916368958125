"""
The middleware: each tool call and each model request of an agent passes it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final, Unpack
from uuid import uuid4

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import BROKEN_OFF, calling, give_back, share_of
from guardrails.policy.sessions import SessionOptions, Sessions
from guardrails.session.session import scoped
from guardrails.session.steps import current_session

from .model_step import ModelStep
from .tool_call import Called, InvalidResume, answer, declared


with needs("langchain", "`GuardrailsMiddleware`"):
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage
    from langgraph.config import get_config
    from langgraph.errors import GraphBubbleUp
    from langgraph.graph.message import REMOVE_ALL_MESSAGES
    from langgraph.prebuilt.tool_node import ToolCallRequest

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy
    from guardrails.session.session import Session

RUN: Final = "guardrails_run"
"""The key of the graph's state by which a run without a thread finds its session."""


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

        def run(tool: str, arguments: Any) -> Any:
            try:
                return call.ran(handler(request))
            except Exception as error:
                raise call.raised(error) from error

        try:
            return call.told(session.call(call.name, call.arguments, run, id=call.id))
        except InvalidResume as invalid:
            raise invalid.error from None

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """
        The same, awaited.
        """
        call, session = Called(request), self._guarded(request)

        async def run(tool: str, arguments: Any) -> Any:
            try:
                return call.ran(await handler(request))
            except Exception as error:
                raise call.raised(error) from error

        try:
            return call.told(await session.acall(call.name, call.arguments, run, id=call.id))
        except InvalidResume as invalid:
            raise invalid.error from None

    # Model requests

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """
        Ask the model; at the end without tools, and once more if it does not answer.
        """
        step = ModelStep(self._own(request.state), request)
        step.begin()
        while step.sent is not None:
            try:
                response = handler(step.sent)
            except BaseException as error:
                step.failed(error)
                if not isinstance(error, GraphBubbleUp):
                    self._end_share(request.state)
                raise
            step.take(response)
        return step.response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """
        The same, awaited.
        """
        step = ModelStep(self._own(request.state), request)
        await step.session.ledger.off_loop(step.begin)
        while step.sent is not None:
            try:
                response = await handler(step.sent)
            except BaseException as error:
                await step.session.ledger.off_loop(step.failed, error)
                if not isinstance(error, GraphBubbleUp):
                    await step.session.ledger.off_loop(self._end_share, request.state)
                raise
            await step.session.ledger.off_loop(step.take, response)
        return step.response

    def ask(
        self, model: Any, messages: Sequence[Any], tools: Sequence[Any] = (), *, state: Any = None, choice: Any = None
    ) -> list[Any]:
        """
        Ask the *model* for a node of one's own graph. Returns the messages to add. The wanted `tool_choice` is
        *choice*.
        """
        request = _request(model, messages, tools, state, choice)
        return list(self.wrap_model_call(request, lambda sent: _responded(_bound(sent).invoke(sent.messages))).result)

    async def aask(
        self, model: Any, messages: Sequence[Any], tools: Sequence[Any] = (), *, state: Any = None, choice: Any = None
    ) -> list[Any]:
        """
        The same, awaited.
        """

        async def send(sent: ModelRequest[Any]) -> ModelResponse[Any]:
            return _responded(await _bound(sent).ainvoke(sent.messages))

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
        if running is not None and self._share:
            child = share_of(running, **self._share)
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
        name = _thread()
        if name is None:
            running = current_session()
            if running is not None:
                return running
            # In a graph of one's own the first message is the same in each step.
            name = held.get(RUN) or next((message.id for message in held.get("messages") or ()), None)
            return self._sessions.of(name, run=bool(held.get(RUN)))
        return self._sessions.of(name)

    def _guarded(self, request: ToolCallRequest) -> "Session":
        tool, session = request.tool, self._own(request.state)
        if tool is None:
            return scoped(session, {}, passes=(GraphBubbleUp,))
        known = self._known.get(id(tool))
        if known is None or known[0] is not tool:
            known = self._known[id(tool)] = tool, declared(tool)
        return calling(session, known[1], (GraphBubbleUp,))


def _thread() -> object:
    with suppress(RuntimeError):
        return get_config().get("configurable", {}).get("thread_id")
    return None


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


def _responded(message: Any) -> ModelResponse[Any]:
    return ModelResponse(result=[message])
