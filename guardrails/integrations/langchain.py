"""
LangChain and LangGraph: a middleware of `create_agent`, whose methods fit `ToolNode` too.

    create_agent(model, tools, middleware=[GuardrailsMiddleware(Policy.load("default"))])
    ToolNode(tools, wrap_tool_call=guard.wrap_tool_call, awrap_tool_call=guard.awrap_tool_call)
"""

import json

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, get_origin
from uuid import uuid4

from guardrails.core.arguments import Arguments, arguments_of
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Failed
from guardrails.policy.sessions import Sessions
from guardrails.session.calls.current import current_session

from .hosting import Asking, extra, remark


with extra("langchain"):
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain.agents.structured_output import ProviderStrategy
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langgraph.config import get_config
    from langgraph.errors import GraphBubbleUp
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command

if TYPE_CHECKING:
    from guardrails.policy.policy import Policy
    from guardrails.session.session import Session

RUN: Final = "guardrails_run"
"""The key of the graph's state by which a run without a thread finds its session."""
TRIES: Final = 3
"""Times in a row that calls which are no JSON are asked for again."""
_NONE: Final[dict[str, Any]] = {
    "BaseChatOpenAI": "none",
    "ChatAnthropic": {"type": "none"},
    "ChatGoogleGenerativeAI": "none",
    "ChatVertexAI": "none",
}
"""How a model's class is told to call no tool though some are listed; others are given none."""


class _State(AgentState[Any]):
    guardrails_run: NotRequired[Annotated[str, PrivateStateAttr]]


class GuardrailsMiddleware(AgentMiddleware[_State, Any]):
    """
    The tool calls and model requests of an agent behind a policy, or a session that several agents share.

    The thread of a run (`thread_id`) names its session; a run without one has its own, as has an agent that a guarded tool
    runs: that of the tool's call. *options* are those of `Policy.session`.
    """

    state_schema = _State

    def __init__(self, guarded: "Policy | Session", **options: Any) -> None:
        super().__init__()
        self._sessions = Sessions(guarded, **options)
        self._specs: dict[int, tuple[Any, Arguments | None]] = {}

    def session(self, thread: object = None) -> "Session":
        """
        The session of a *thread*; inside a run None is its own.
        """
        return self._sessions.of(thread) if thread is not None else self._own({})

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """
        Name the session of a run that has no thread.
        """
        return None if _thread() is not None or current_session() is not None else {RUN: uuid4().hex}

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """
        The same.
        """
        return self.before_agent(state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """
        Forget that session, which nobody can name again.
        """
        if state.get(RUN) is not None and _thread() is None and current_session() is None:
            self._sessions.end(self._own(state))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """
        The same.
        """
        self.after_agent(state, runtime)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """
        Run a call if the chain lets it; what the model reads of it.
        """
        call = _Called(request)
        session = self._guarded(request)
        return call.told(session.call(call.tool, call.arguments, lambda *_: call.ran(handler(request)), id=call.id))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """
        The same, awaited.
        """
        call = _Called(request)
        session = self._guarded(request)

        async def run(tool: str, arguments: Any) -> Any:
            return call.ran(await handler(request))

        return call.told(await session.acall(call.tool, call.arguments, run, id=call.id))

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """
        Ask the model; at the end without tools, and once more if it does not answer.
        """
        asks = _Asks(self._own(request.state), request)
        asks.begin()
        while asks.sent is not None:
            try:
                response = handler(asks.sent)
            except BaseException as error:
                asks.failed(error)
                raise
            asks.take(response)
        return asks.response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """
        The same, awaited.
        """
        asks = _Asks(self._own(request.state), request)
        await asks.session.off_loop(asks.begin)
        while asks.sent is not None:
            try:
                response = await handler(asks.sent)
            except BaseException as error:
                asks.failed(error)
                raise
            await asks.session.off_loop(asks.take, response)
        return asks.response

    def _own(self, state: Any) -> "Session":
        thread = _thread()
        if thread is None:
            running = current_session()
            if running is not None:
                return running
            messages = state.get("messages") if isinstance(state, Mapping) else None
            thread = state.get(RUN) if isinstance(state, Mapping) else None
            # A graph of one's own: its first message is the same in each step.
            thread = thread or (messages and messages[0].id) or None
        return self._sessions.of(thread)

    def _guarded(self, request: ToolCallRequest) -> "Session":
        tool, spec = request.tool, None
        if tool is not None:
            known = self._specs.get(id(tool))
            if known is None or known[0] is not tool:
                known = self._specs[id(tool)] = tool, _arguments(tool)
            spec = known[1]
        name = request.tool_call["name"]
        return self._own(request.state).scoped({} if spec is None else {name: spec}, passes=(GraphBubbleUp,))


class _Called:
    """
    One tool call: what the tool gave back, and what the model reads of it.
    """

    def __init__(self, request: ToolCallRequest) -> None:
        made = request.tool_call
        self.tool, self.arguments, self.id = made["name"], made["args"], made["id"] or None
        self._known = request.tool
        self._native: Any = None

    def ran(self, native: Any) -> Any:
        """
        The outcome of the call, of what ToolNode made of it.
        """
        self._native = native
        message = next(self._messages(native), None)
        if message is None:
            return None
        if message.status == "error":
            missing = "tool_missing" if self._known is None else None
            return Failed(_text(message.content), error_type=missing)
        if isinstance(message.content, str):
            return _value(message.content, self._known)
        return _text(message.content) if _is_text(message.content) else [_shown(block) for block in message.content]

    def told(self, envelope: Envelope) -> Any:
        """
        What goes into the conversation: in the form of *envelope*, or in the tool's own with what the envelope says beside.
        """
        native, self._native = self._native, None
        if next(self._messages(native), None) is None and (native is None or not envelope.ok):
            status = "success" if envelope.ok else "error"
            return ToolMessage(envelope.to_json(), tool_call_id=self.id or "", name=self.tool, status=status)
        return self._with(native, envelope)

    def _messages(self, native: Any) -> Iterator[ToolMessage]:
        if isinstance(native, ToolMessage) and native.tool_call_id == (self.id or ""):
            yield native
        elif isinstance(native, Command):
            update = native.update
            yield from self._messages(update.get("messages", ()) if isinstance(update, Mapping) else update)
        elif isinstance(native, (list, tuple)):
            for one in native:
                yield from self._messages(one)

    def _with(self, native: Any, envelope: Envelope) -> Any:
        if isinstance(native, Command):
            if isinstance(native.update, Mapping) and "messages" in native.update:
                messages = self._with(native.update["messages"], envelope)
                return replace(native, update={**native.update, "messages": messages})
            return replace(native, update=self._with(native.update, envelope))
        if isinstance(native, (list, tuple)):
            return [self._with(one, envelope) for one in native]
        if not isinstance(native, ToolMessage) or native.tool_call_id != (self.id or ""):
            return native
        status = "success" if envelope.ok else "error"
        return native.model_copy(update={"content": _content(native.content, envelope), "status": status})


class _Asks:
    """
    The requests that one step of the model makes: one, or more where the final answer is asked for again.
    """

    def __init__(self, session: "Session", request: ModelRequest[Any]) -> None:
        since = next((n for n, said in enumerate(reversed(request.messages)) if isinstance(said, HumanMessage)), None)
        latest = request.messages if since is None else request.messages[len(request.messages) - since :]
        self.session = session
        self.sent: ModelRequest[Any] | None = None
        """The request to be made next; None: `response` is there."""
        self.response: ModelResponse[Any] | None = None
        self._asking = Asking(session, first=not any(isinstance(said, AIMessage) for said in latest))
        self._request = request
        self._said: list[Any] = []
        self._unreadable = 0

    def begin(self) -> None:
        """
        Tell the session of the next request.
        """
        choice = self._asking.ask(self._request.tool_choice)
        sent = self._request.override(messages=[*self._request.messages, *self._said]) if self._said else self._request
        if self._asking.off:
            sent = _off(sent)
        elif choice != sent.tool_choice:
            sent = sent.override(tool_choice=choice)
        self.sent = sent

    def failed(self, error: BaseException) -> None:
        """
        The request came to *error*; a response that the host could not use is charged all the same.
        """
        message = getattr(error, "ai_message", None)
        if isinstance(message, AIMessage):
            self._charge(message, message.text, 0)
        self._asking.failed()

    def take(self, response: ModelResponse[Any]) -> None:
        """
        Charge *response*, and ask once more or be done.
        """
        message = next((said for said in reversed(response.result) if isinstance(said, AIMessage)), AIMessage(""))
        answered = {said.tool_call_id for said in response.result if isinstance(said, ToolMessage)}
        calls = [call for call in message.tool_calls if call["id"] not in answered]
        output = response.structured_response
        unreadable = [] if calls or answered else message.invalid_tool_calls
        # An output that is not valid is the host's to ask for again, until the final answer is asked for.
        again = len(calls) or len(unreadable) or (len(answered) if output is None and not self._asking.off else 0)
        if output is not None and self._asking.off:
            again = 0
        meaning = self._charge(message, message.text if output is None else str(output) or "-", again)
        self._said += [said for said in response.result if said is not message or _says(message)]
        if meaning == "run" and unreadable and self._unreadable < TRIES:
            self._unreadable += 1
            self._said += [self._answer(call, self._checked(call)) for call in unreadable]
            self.begin()
            return
        if meaning != "run":
            refused = [*calls, *unreadable]
            refusal = self._asking.refusal
            self._said += [self._answer(call, refusal(call["name"], call["args"], id=call["id"])) for call in refused]
        if meaning == "again":
            self.begin()
            return
        if meaning == "digest" or (meaning == "run" and unreadable):
            self._said.append(AIMessage(self._asking.answer or self.session.digest()))
        self.sent, self.response = None, ModelResponse(result=self._said, structured_response=output)

    def _charge(self, message: AIMessage, text: str, calls: int) -> str:
        about, model = message.response_metadata, self._request.model
        name = about.get("model_name") or getattr(model, "model_name", None) or getattr(model, "model", None)
        return self._asking.take(
            text,
            calls,
            model=name if isinstance(name, str) else "",
            usage=message.usage_metadata,
            key=about.get("id") or message.id,
            provider=about.get("model_provider"),
        )

    def _checked(self, call: Any) -> Envelope:
        decision = self.session.decide(call["name"], call["args"], id=call["id"])
        if decision.envelope is not None:
            return decision.envelope
        return self.session.complete(decision, Failed(call["error"] or "no JSON object", error_type="validation"))

    @staticmethod
    def _answer(call: Any, envelope: Envelope) -> ToolMessage:
        return ToolMessage(envelope.to_json(), tool_call_id=call["id"] or "", name=call["name"], status="error")


def _thread() -> object:
    try:
        return get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:
        return None


def _says(message: AIMessage) -> bool:
    return bool(message.text.strip() or message.tool_calls or message.invalid_tool_calls)


def _off(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """
    *request* with tools off. By an output tool `tool_choice` is the factory's, so that it alone is offered.
    """
    if request.tools and (request.response_format is None or isinstance(request.response_format, ProviderStrategy)):
        for kind in type(request.model).__mro__:
            if kind.__name__ in _NONE:
                return request.override(tool_choice=_NONE[kind.__name__])
    return request.override(tools=[], tool_choice=None)


def _arguments(tool: Any) -> Arguments | None:
    """
    What the model may pass to *tool*, injected arguments left out. Returns None where nobody can tell.
    """
    try:
        schema, whole = tool.tool_call_schema, tool.args_schema
        if isinstance(schema, type) and isinstance(whole, type):
            # The whole one has the validators that the other lost.
            schema = whole if getattr(whole, "model_fields", 0) == getattr(schema, "model_fields", 1) else schema
        if isinstance(schema, type) and not hasattr(schema, "__pydantic_validator__"):
            schema = schema.schema()  # type: ignore[attr-defined]
        return arguments_of(schema)
    except (PolicyError, TypeError, ValueError, AttributeError):
        return None


def _value(text: str, tool: Any) -> Any:
    """
    What *tool* returned as *text*: LangChain writes objects and lists as JSON.
    """
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    returns = getattr(function, "__annotations__", {}).get("return", str)
    if returns is str or (get_origin(returns) or returns) not in (dict, list):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_text(content: Any) -> bool:
    return all(isinstance(block, str) or block.get("type") == "text" for block in content)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [block if isinstance(block, str) else str(block.get("text", "")) for block in content]
    return "\n".join(text for text in texts if text)


def _shown(block: Any) -> Any:
    """
    *block* as the records have it: of an image, or what else is no text, its kind and what tells it from others.
    """
    if isinstance(block, str) or block.get("type") == "text":
        return block if isinstance(block, str) else block.get("text", "")
    from xxhash import xxh3_64_hexdigest

    whole = json.dumps(block, sort_keys=True, default=str)
    return {"type": block.get("type"), "bytes": len(whole), "xxh3": xxh3_64_hexdigest(whole)}


def _content(content: Any, envelope: Envelope) -> Any:
    if isinstance(content, str) or _is_text(content) or not envelope.ok:
        return envelope.to_json()
    said = remark(envelope)
    if said is None:
        return content
    if envelope.cut is None:
        return [*content, {"type": "text", "text": said}]
    kept = [block for block in content if not isinstance(block, str) and block.get("type") != "text"]
    return [{"type": "text", "text": envelope.to_json()}, *kept]
