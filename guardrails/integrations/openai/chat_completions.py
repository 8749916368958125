"""
The chat.completions wire: a response, whole or streamed, as the loop's turn and as the message to keep.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from guardrails.core.text.control import sanitise
from guardrails.core.tools.tool import Wire as Form
from guardrails.core.tools.tool_choice import ToolChoice

from .forms import nested, nested_choice
from .loop import RequestedCall, Turn
from .reading import (
    Cut,
    Unreadable,
    check_error,
    checked_object,
    encodable,
    ids_of,
    is_json,
    kind_of,
    list_in,
    named_in,
    text_in,
    told_once,
    written_in,
)
from .wire import Message, Sent, part


_CUT: Final = frozenset({"length", "content_filter"})
_KINDS: Final = ("function", "custom")


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
    _chosen: bool = False

    def read(self, completion: Any) -> str:
        """
        Take in a whole completion; its text.
        """
        choices = self._choices(completion)
        choice = next((choice for choice in choices if not part(choice, "index")), choices[0] if choices else None)
        if choice is None:
            return ""
        message = checked_object(self._chose(choice, "message"), "`message`")
        for position, delta in enumerate(list_in(message, "tool_calls")):
            self.calls.append(_Call(position))
            self.calls[-1].add(checked_object(delta, "a tool call"))
        return self._say(message)

    def add(self, chunk: Any) -> str:
        """
        Take in one chunk of a stream; the text it brought.
        """
        # The chunk that carries the usage has no choices.
        choice = next((choice for choice in self._choices(chunk) if not part(choice, "index")), None)
        if choice is None:
            return ""
        delta = self._chose(choice, "delta")
        if delta is None:
            return ""
        for piece in list_in(checked_object(delta, "`delta`"), "tool_calls"):
            self._call(checked_object(piece, "a tool call")).add(piece)
        return self._say(delta)

    def ended(self, *, closed: bool | None) -> None:
        """
        All has come. Some servers never send a finish reason: a stream that was closed is whole if its arguments are.
        """
        ended = self.finish_reason is not None or closed is None
        if not ended and not (closed and all(call.whole for call in self.calls)):
            raise Cut
        if not self._chosen:
            raise Unreadable("the reply has no `choices`")

    def turn(self, n: int) -> Turn:
        """
        The response for the loop. Calls that came without an id of their own get one made of *n*, which is to be unique.
        """
        self.calls = told_once(self.calls, lambda call: (call.id, call.kind, call.name, call.arguments))
        for call, id_ in zip(self.calls, ids_of([call.id for call in self.calls], n), strict=True):
            call.id = id_
        requested = [call.requested() for call in self.calls]
        if requested and self.finish_reason in _CUT and self.calls[-1].may_be_cut:
            # Cut before its first character, where no text would mean no arguments; or a text that nothing shows to be whole.
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
        Returns the assistant message that the conversation keeps: no nulls, and content only if there is text.
        """
        message: Message = {"role": "assistant"}
        if text := "".join(self.texts):
            message["content"] = sanitise(text)
        if self.calls:
            message["tool_calls"] = [call.wire() for call in self.calls]
        return [message] if self.calls or text.strip() else []

    def _choices(self, came: Any) -> Any:
        check_error(checked_object(came, "the reply"))
        id_, usage = part(came, "id"), part(came, "usage")
        self.id = self.id or (id_ if isinstance(id_, str) else None)
        if usage is not None:
            self.usage = usage
        return [checked_object(choice, "a choice") for choice in list_in(came, "choices")]

    def _chose(self, choice: Any, name: str) -> Any:
        """
        Returns the field *name* of *choice*.
        """
        check_error(choice)
        finish = part(choice, "finish_reason")
        if finish == "error":
            raise Unreadable("the server ended the response with an error")
        if isinstance(finish, str) and finish:
            self.finish_reason = finish
        self._chosen = True
        return part(choice, name)

    def _say(self, said: Any) -> str:
        # A refusal is what the model has to say; as plain content it goes back to any server.
        pieces = [*_texts(said, "content"), *_texts(said, "refusal")]
        self.texts += pieces
        return "".join(pieces)

    def _call(self, delta: Any) -> "_Call":
        index = part(delta, "index")
        call = next((call for call in reversed(self.calls) if call.index == index), None)
        if call is None and self.calls and (index is None or self.calls[-1].index is None) and _goes_on(delta):
            call = self.calls[-1]
        if call is None or call.ends_before(delta):
            call = _Call(index)
            self.calls.append(call)
        return call


@dataclass(slots=True)
class _Call:
    index: Any
    id: str = ""
    kind: str = "function"
    name: str = ""
    arguments: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    """Fields beyond the wire's own, which some servers want back (thought signatures)."""

    @property
    def whole(self) -> bool:
        """
        Returns whether its arguments are, as far as they show it.
        """
        return self.kind == "custom" or is_json(self.arguments)

    @property
    def may_be_cut(self) -> bool:
        """
        Returns whether arguments of a response that was cut may be cut without showing it.
        """
        return self.kind == "custom" or not self.arguments.strip()

    def ends_before(self, delta: Any) -> bool:
        """
        Whether *delta* is of the next call. Some servers number every call 0, or none: then its id tells, or its name.
        """
        id_, said = text_in(delta, "id"), _said(delta)
        if id_ and self.id:
            return id_ != self.id
        name = "" if said is None else text_in(said, "name")
        if not name or not self.name:
            return False
        if name != self.name:
            return self.index is None or bool(self.arguments)
        # Some servers say the name with every piece.
        return bool(self.arguments) and self.whole and bool(part(said, "arguments") or part(said, "input"))

    def add(self, delta: Any) -> None:
        said, custom = _said(delta), part(delta, "custom")
        extra = dict(getattr(delta, "model_extra", None) or {})
        for name in _KINDS:
            extra.pop(name, None)
        self.id = self.id or text_in(delta, "id")
        self.kind = "custom" if custom else self.kind
        self.extra |= {name: value for name, value in extra.items() if value is not None}
        if said is not None:
            name = text_in(said, "name")
            self.name += "" if name == self.name else name
            self.arguments += written_in(said, "input" if custom else "arguments")

    def requested(self) -> RequestedCall:
        name, arguments = named_in(self), encodable(self.arguments)
        if self.kind == "custom":
            return RequestedCall(self.id, name, {"input": arguments}, "custom")
        return RequestedCall(self.id, name, arguments)

    def wire(self) -> Message:
        text = "input" if self.kind == "custom" else "arguments"
        said = {"name": self.name, text: encodable(self.arguments)}
        return {"id": self.id, "type": self.kind, self.kind: said, **self.extra}


def _said(delta: Any) -> Any:
    said = part(delta, "custom") or part(delta, "function")
    return None if said is None else checked_object(said, "the function of a tool call")


def _goes_on(delta: Any) -> bool:
    """
    Returns whether *delta* begins no call.
    """
    said = _said(delta)
    return not (text_in(delta, "id") or (said is not None and text_in(said, "name")))


def _texts(of: Any, name: str) -> list[str]:
    content = part(of, name)
    if content is None or isinstance(content, str):
        return [content] if content else []
    if not isinstance(content, (list, tuple)):
        raise Unreadable(f"`{name}` is {kind_of(content)}, not text")
    said = [
        piece if isinstance(piece, str) else text_in(checked_object(piece, "a piece of text"), "text")
        for piece in content
    ]
    return [text for text in said if text]
