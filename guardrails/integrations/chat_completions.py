"""
The chat.completions wire: a response, whole or streamed, as the loop's turn and as the message to keep.
"""

import json

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from ..loop import RequestedCall, Turn
from ..outcome.redaction import sanitise
from ..tool import Wire as Form
from ..turns import ToolChoice
from .forms import nested, nested_choice
from .wire import Message, Sent, part


_CUT: Final = frozenset({"length", "content_filter"})


@dataclass(frozen=True, slots=True)
class ChatCompletions:
    """
    The wire itself.
    """

    form: ClassVar[Form] = "chat"
    chained: ClassVar[bool] = False

    def check(self, options: Mapping[str, Any]) -> None:
        """
        Everything goes.
        """

    def create(self, client: Any) -> Callable[..., Any]:
        create: Callable[..., Any] = client.chat.completions.create
        return create

    def reply(self) -> "Response":
        return Response()

    def request(self, sent: Sent, *, stream: bool) -> dict[str, Any]:
        streamed = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        return {"messages": sent.messages, **streamed}

    def tool(self, listed: Mapping[str, Any]) -> dict[str, Any]:
        return nested(listed)

    def choice(self, choice: ToolChoice) -> ToolChoice:
        return nested_choice(choice)

    def result(self, call: RequestedCall, text: str) -> Message:
        return {"role": "tool", "tool_call_id": call.id, "content": sanitise(text)}

    def answer(self, text: str) -> Message:
        return {"role": "assistant", "content": sanitise(text)}

    def calls_of(self, message: Any) -> Iterator[RequestedCall]:
        for call in part(message, "tool_calls") or ():
            said = part(call, part(call, "type") or "function")
            yield RequestedCall(part(call, "id") or "", part(said, "name") or "", None)

    def answers(self, message: Any) -> str | None:
        return str(part(message, "tool_call_id")) if part(message, "role") == "tool" else None


@dataclass(slots=True)
class Response:
    """
    A response of chat.completions as it comes in, from one object or from the chunks of a stream.
    """

    texts: list[str] = field(default_factory=list)
    calls: list["_Call"] = field(default_factory=list)
    usage: Any = None
    finish_reason: str | None = None
    id: str | None = None

    def read(self, completion: Any) -> str:
        """
        Take in a whole completion; its text.
        """
        choice = self._choice(completion)
        if choice is None or choice.message is None:
            return ""
        for position, delta in enumerate(choice.message.tool_calls or ()):
            self.calls.append(_Call(position))
            self.calls[-1].add(delta)
        return self._say(choice.message)

    def add(self, chunk: Any) -> str:
        """
        Take in one chunk of a stream; the text it brought.
        """
        choice = self._choice(chunk)
        if choice is None or choice.delta is None:
            return ""
        for delta in choice.delta.tool_calls or ():
            self._call(delta).add(delta)
        return self._say(choice.delta)

    def turn(self, n: int) -> Turn:
        """
        The response for the loop. Calls that came without an id get one made of *n*, which is to be unique.
        """
        for position, call in enumerate(self.calls):
            call.id = call.id or f"call_{n}_{position}"
        requested = [call.requested() for call in self.calls]
        if requested and self.finish_reason in _CUT and not self.calls[-1].arguments.strip():
            # Cut before its first character; no text at all would mean no arguments.
            requested[-1] = replace(requested[-1], arguments="{")
        return Turn(
            texts=tuple(sanitise(text) for text in self.texts),
            calls=tuple(requested),
            usage=self.usage,
            finish_reason=self.finish_reason,
            id=self.id,
        )

    def messages(self) -> list[Message]:
        """
        The assistant message that the conversation keeps: no nulls, content only where there is text.
        """
        message: Message = {"role": "assistant"}
        if text := "".join(self.texts):
            message["content"] = sanitise(text)
        if self.calls:
            message["tool_calls"] = [call.wire() for call in self.calls]
        return [message] if self.calls or text.strip() else []

    def _choice(self, came: Any) -> Any:
        self.id = self.id or part(came, "id")
        if came.usage is not None:
            self.usage = came.usage
        # The chunk that carries the usage has no choices.
        choice = next((choice for choice in came.choices or () if not choice.index), None)
        if choice is not None and choice.finish_reason is not None:
            self.finish_reason = choice.finish_reason
        return choice

    def _say(self, said: Any) -> str:
        # A refusal is what the model has to say; as plain content it goes back to any server.
        pieces = [*_texts(said.content), *_texts(getattr(said, "refusal", None))]
        self.texts += pieces
        return "".join(pieces)

    def _call(self, delta: Any) -> "_Call":
        for call in reversed(self.calls):
            # Some servers number every call 0; a new id then tells them apart.
            if call.index == delta.index and not (delta.id and call.id and delta.id != call.id):
                return call
        self.calls.append(_Call(delta.index))
        return self.calls[-1]


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str = ""
    kind: str = "function"
    name: str = ""
    arguments: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    """Fields beyond the wire's own, which some servers want back (thought signatures)."""

    def add(self, delta: Any) -> None:
        extra = dict(getattr(delta, "model_extra", None) or {})
        extra.pop("custom", None)
        custom = getattr(delta, "custom", None)
        said = custom or getattr(delta, "function", None)
        self.id = self.id or delta.id or ""
        self.kind = "custom" if custom else self.kind
        self.extra |= {name: value for name, value in extra.items() if value is not None}
        if said is not None:
            self.name = self.name or part(said, "name") or ""
            self.arguments += _argument_text(part(said, "input" if custom else "arguments"))

    def requested(self) -> RequestedCall:
        if self.kind == "custom":
            return RequestedCall(self.id, self.name, {"input": self.arguments}, "custom")
        return RequestedCall(self.id, self.name, self.arguments)

    def wire(self) -> Message:
        text = "input" if self.kind == "custom" else "arguments"
        said = {"name": self.name, text: self.arguments}
        return {"id": self.id, "type": self.kind, self.kind: said, **self.extra}


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content] if content else []
    return [text for piece in content or () if isinstance(text := part(piece, "text"), str) and text]


def _argument_text(arguments: Any) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
