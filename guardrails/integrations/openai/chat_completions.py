"""
The chat.completions wire: a response, whole or streamed, as the loop's turn and as the message to keep.
"""

import json

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from guardrails.core.text.control import cleaned, sanitise
from guardrails.core.tools.tool import Wire as Form
from guardrails.core.tools.tool_choice import ToolChoice

from .reading import (
    Cut,
    Message,
    RequestedCall,
    Turn,
    Unreadable,
    check_error,
    encodable,
    ids_of,
    part,
    plain,
    rows,
    said_once,
    text_in,
    written_in,
)


_CUT: Final = frozenset({"length", "content_filter"})
_THOUGHTS: Final = ("reasoning_content", "reasoning_details", "reasoning", "extra_content", "thought_signature")
"""Fields of a message that providers want back with the calls that came of them: DeepSeek, OpenRouter, Groq, Gemini."""
_OWN: Final = frozenset({"id", "type", "index", "function"})


@dataclass(frozen=True, slots=True)
class ChatCompletions:
    """
    The wire itself.
    """

    form: ClassVar[Form] = "chat"

    def api(self, client: Any) -> Any:
        return client.chat.completions

    def reply(self) -> "Response":
        return Response()

    def request(self, messages: Sequence[Any], *, stream: bool) -> dict[str, Any]:
        streamed = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        return {"messages": messages, **streamed}

    def listed(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        return _nested(tool)

    def choice(self, choice: ToolChoice) -> ToolChoice:
        if not isinstance(choice, Mapping):
            return choice
        if choice.get("type") == "allowed_tools" and "allowed_tools" not in choice:
            tools = [_nested(tool) for tool in choice.get("tools", ())]
            return {"type": "allowed_tools", "allowed_tools": {"mode": choice.get("mode", "auto"), "tools": tools}}
        return _nested(choice)

    def result(self, call: RequestedCall, text: str) -> Message:
        return {"role": "tool", "tool_call_id": call.id, "content": sanitise(text)}

    def calls_of(self, message: Any) -> Iterator[RequestedCall]:
        for call in part(message, "tool_calls") or ():
            yield RequestedCall(part(call, "id") or "", part(part(call, "function"), "name") or "", None)

    def answers(self, message: Any) -> str | None:
        return str(part(message, "tool_call_id")) if part(message, "role") == "tool" else None


def _nested(entry: Mapping[str, Any]) -> dict[str, Any]:
    """
    A tool of either wire, or the choice of one, as chat.completions has it.
    """
    if entry.get("type") != "function" or "function" in entry:
        return dict(entry)
    return {"type": "function", "function": {name: said for name, said in entry.items() if name != "type"}}


@dataclass(slots=True)
class Response:
    """
    A response of chat.completions as it comes in, from one object or from the chunks of a stream.
    """

    usage: Any = None
    _texts: list[str] = field(default_factory=list)
    _calls: list["_Call"] = field(default_factory=list)
    _thoughts: dict[str, Any] = field(default_factory=dict)
    _finish_reason: str | None = None
    _chosen: bool = False

    def read(self, response: Any) -> str:
        choices = self._choices(response)
        choice = next((choice for choice in choices if not choice.get("index")), choices[0] if choices else None)
        if choice is None:
            return ""
        message = plain(choice.get("message"), "`message`")
        for position, said in enumerate(rows(message, "tool_calls", "a tool call")):
            self._calls.append(_Call(position))
            self._calls[-1].add(said)
        return self._take(choice, message)

    def add(self, event: Any) -> str:
        # The chunk that carries the usage has no choices.
        choice = next((choice for choice in self._choices(event) if not choice.get("index")), None)
        if choice is None:
            return ""
        delta = plain(choice.get("delta") or {}, "`delta`")
        for piece in rows(delta, "tool_calls", "a tool call"):
            self._call(piece).add(piece)
        return self._take(choice, delta)

    def turn(self, n: int, *, closed: bool | None) -> Turn:
        # Some servers never send a finish reason: a stream that was closed is whole if its arguments are.
        whole = closed is None or self._finish_reason is not None
        if not whole and not (closed and all(call.is_whole or not call.arguments.strip() for call in self._calls)):
            raise Cut
        if not self._chosen:
            raise Unreadable("the reply has no `choices`")
        calls, text = self._requested(n), sanitise("".join(self._texts))
        message: Message = {"role": "assistant"}
        if text:
            message["content"] = text
        if calls:
            said = zip(self._calls, calls, strict=True)
            message |= {"tool_calls": [call.wire(made.id) for call, made in said], **self._thoughts}
        if calls and self._finish_reason in _CUT and not calls[-1].arguments.strip():
            # Cut before its first character, where no text would mean no arguments.
            calls[-1] = RequestedCall(calls[-1].id, calls[-1].tool, "{")
        kept = (message,) if calls or text.strip() else ()
        return Turn(text, tuple(calls), kept, self.usage, self._finish_reason)

    def _choices(self, came: Any) -> list[dict[str, Any]]:
        reply = plain(came, "the reply")
        check_error(reply)
        self.usage = self.usage if reply.get("usage") is None else reply["usage"]
        return rows(reply, "choices", "a choice")

    def _take(self, choice: Mapping[str, Any], message: Mapping[str, Any]) -> str:
        """
        Take in all but the calls of a *message*, or of a piece of one; its text.
        """
        check_error(choice)
        self._finish_reason = text_in(choice, "finish_reason") or self._finish_reason
        if self._finish_reason == "error":
            raise Unreadable("the server ended the response with an error")
        self._chosen = True
        for name in _THOUGHTS:
            said: Any = message.get(name)
            before = self._thoughts.get(name)
            if said is not None:
                pieces = isinstance(before, (str, list)) and type(before) is type(said)
                self._thoughts[name] = before + said if pieces else said
        # A refusal is what the model has to say; as plain content it goes back to any server.
        text = _text(message, "content") + _text(message, "refusal")
        self._texts.append(text)
        return text

    def _call(self, piece: Mapping[str, Any]) -> "_Call":
        """
        Returns the call that *piece* belongs to: the one of its index, else of its id, else the latest.
        """
        index, id_ = piece.get("index"), text_in(piece, "id")
        found = [call for call in self._calls if index is not None and call.index == index]
        found = found or [call for call in self._calls if id_ and call.id == id_ and None in (index, call.index)]
        if not found and self._calls and (index is None or self._calls[-1].index is None):
            found = self._calls[-1:]
        if not found or found[-1].ends_before(piece):
            self._calls.append(_Call(index))
            return self._calls[-1]
        return found[-1]

    def _requested(self, n: int) -> list[RequestedCall]:
        self._calls = said_once(self._calls, lambda call: (call.id, call.name, call.arguments))
        if not all(call.name for call in self._calls):
            raise Unreadable("a tool call has no `name`")
        ids = ids_of([call.id for call in self._calls], n)
        for call in self._calls:
            call.arguments = cleaned(encodable(call.arguments))
        made = zip(ids, self._calls, strict=True)
        return [RequestedCall(id_, call.name, call.arguments) for id_, call in made]


@dataclass(slots=True)
class _Call:
    index: Any
    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    """Fields beyond the wire's own, which some servers want back (thought signatures)."""

    @property
    def is_whole(self) -> bool:
        """
        Whether its arguments are a JSON object, to which nothing can be added.
        """
        try:
            return isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False

    def ends_before(self, piece: Mapping[str, Any]) -> bool:
        """
        Whether *piece* is of the next call. Some servers number every call 0, or none, or give all the same id.
        """
        said = plain(piece.get("function") or {}, "the function of a tool call")
        id_, name = text_in(piece, "id"), text_in(said, "name")
        if id_ and self.id and id_ != self.id:
            return True
        if written_in(said, "arguments").strip() and self.arguments and self.is_whole:
            return True
        return bool(name and self.name and name != self.name) and (self.index is None or bool(self.arguments))

    def add(self, piece: Mapping[str, Any]) -> None:
        said = plain(piece.get("function") or {}, "the function of a tool call")
        name = text_in(said, "name")
        self.id = self.id or text_in(piece, "id")
        self.name += "" if name == self.name else name
        self.arguments += written_in(said, "arguments")
        self.extra |= {key: value for key, value in piece.items() if key not in _OWN and value is not None}

    def wire(self, id_: str) -> Message:
        said = {"name": self.name, "arguments": self.arguments}
        return {"id": id_, "type": "function", "function": said, **self.extra}


def _text(message: Mapping[str, Any], name: str) -> str:
    """
    The text in the field *name*, which some servers send in pieces.
    """
    if not isinstance(message.get(name), list):
        return text_in(message, name)
    pieces = [{"text": piece} if isinstance(piece, str) else plain(piece, "a piece of text") for piece in message[name]]
    return "".join(text_in(piece, "text") for piece in pieces)
