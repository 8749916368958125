"""
One step of a model in LangChain: a request, or more if the final answer is asked for again.
"""

from typing import TYPE_CHECKING, Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import Asking
from guardrails.session.final_answer import SILENT_CODE

from .tool_call import answer


with needs("langchain", "`GuardrailsMiddleware`"):
    from langchain.agents.middleware import ModelRequest, ModelResponse
    from langchain.agents.structured_output import ProviderStrategy
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

if TYPE_CHECKING:
    from guardrails.session.session import Session

TRIES: Final = 3
"""Times in one step that calls which are no JSON are answered and the model is asked again."""
MAX_OUTPUTS: Final = 5
"""Structured outputs in a row that are not valid, before the model is asked for a last time."""
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


class ModelStep:
    """
    The requests of one step: `sent` is the next, until there is a `response`.
    """

    def __init__(self, session: "Session", request: ModelRequest[Any]) -> None:
        self.session = session
        self.sent: ModelRequest[Any] | None = None
        self.response: ModelResponse[Any] | None = None
        self._asking = Asking(session, first=_first(request.messages))
        self._request = request
        self._said: list[Any] = []
        self._tries = 0
        if _wasted(request) >= MAX_OUTPUTS:
            self._asking.final.force(SILENT_CODE)

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
        The request came to *error*. A response that the host could not use is charged all the same.
        """
        message = getattr(error, "ai_message", None)
        if isinstance(message, AIMessage):
            self._take(message, _said(message), 0)
        self._asking.failed()

    def take(self, response: ModelResponse[Any]) -> None:
        """
        Charge *response*, and ask once more or be done.
        """
        message = next((said for said in reversed(response.result) if isinstance(said, AIMessage)), AIMessage(""))
        answered = {said.tool_call_id for said in response.result if isinstance(said, ToolMessage)}
        calls = [call for call in message.tool_calls if call["id"] not in answered]
        broken = [] if calls or answered else message.invalid_tool_calls
        output = response.structured_response
        text, made = _said(message), len(calls) + len(broken)
        if output is not None:
            text, made = text or "-", 0 if self._asking.off else made
        elif answered and not self._asking.off:
            # An output that is not valid is the host's to ask for again, until the final answer is asked for.
            made = made or 1
        meaning = self._take(message, text, made)
        self._said += [said for said in response.result if said is not message or _says(message)]
        if meaning == "run" and broken:
            self._tries += 1
            self._said += [answer(call["name"], call["id"], self._checked(call)) for call in broken]
            meaning = "again" if self._tries < TRIES else "digest"
        elif meaning != "run":
            refused = self._asking.refusal
            for call in [*calls, *broken]:
                self._said.append(answer(call["name"], call["id"], refused(call["name"], call["args"], id=call["id"])))
        if meaning == "again":
            self.begin()
            return
        if meaning == "digest":
            self._said.append(AIMessage(self._asking.digest))
        self.sent, self.response = None, ModelResponse(result=self._said, structured_response=output)

    def _take(self, message: AIMessage, text: str, calls: int) -> str:
        about, model = message.response_metadata, self._request.model
        name = about.get("model_name") or getattr(model, "model_name", None) or getattr(model, "model", None)
        return self._asking.take(
            text,
            calls,
            model=name if isinstance(name, str) else "",
            usage=message.usage_metadata,
            key=message.id,
            provider=about.get("model_provider"),
        )

    def _checked(self, call: Any) -> Envelope:
        """
        Returns the answer to a call whose arguments LangChain found to be no JSON.
        """
        decision = self.session.decide(call["name"], call["args"], id=call["id"])
        if decision.envelope is not None:
            return decision.envelope
        return self.session.complete(decision, Failed(call["error"] or "no JSON object", error_type="validation"))


def _first(messages: list[Any]) -> bool:
    """
    Returns whether no model has answered the latest message of the user's.
    """
    for said in reversed(messages):
        if isinstance(said, (AIMessage, HumanMessage)):
            return isinstance(said, HumanMessage)
    return True


def _said(message: AIMessage) -> str:
    """
    Returns the answer in *message*: its text, a refusal, or the kinds of its other parts, such as an image.
    """
    if message.text.strip():
        return str(message.text)
    refusal = message.additional_kwargs.get("refusal")
    blocks = [block for block in message.content if isinstance(block, dict)]
    kinds = [str(block.get("type")) for block in blocks if block.get("type") not in _UNSAID]
    return refusal or " ".join(kinds)


def _says(message: AIMessage) -> bool:
    return bool(_said(message) or message.tool_calls or message.invalid_tool_calls)


def _wasted(request: ModelRequest[Any]) -> int:
    """
    Returns the number of latest responses that tried to give a structured output that was not valid.
    """
    if request.response_format is None:
        return 0
    count, names = 0, {tool.get("name") if isinstance(tool, dict) else tool.name for tool in request.tools}
    for said in reversed(request.messages):
        if isinstance(said, HumanMessage):
            break
        if isinstance(said, AIMessage):
            if not said.tool_calls or any(call["name"] in names for call in said.tool_calls):
                break
            count += 1
    return count


def _off(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """
    *request* with tools off. By an output tool `tool_choice` is the factory's, so that it alone is offered.
    """
    by_provider = isinstance(request.response_format, ProviderStrategy)
    if request.tools and (request.response_format is None or by_provider):
        for kind in type(request.model).__mro__:
            none = _NONE.get(kind.__name__)
            if none is not None and by_provider:
                # Of a request with a schema the factory takes no other choice.
                return request.override(model_settings={**request.model_settings, "tool_choice": none})
            if none is not None:
                return request.override(tool_choice=none)
    return request.override(tools=[], tool_choice=None)
