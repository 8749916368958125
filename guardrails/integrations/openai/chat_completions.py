"""
The chat.completions wire: a response, whole or streamed, as the loop's turn and as the message to keep.
"""

import json

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from guardrails.core.text.control import sanitise
from guardrails.core.tools.tool import Wire as Form
from guardrails.core.values.errors import ResponseFailed

from .reading import (
    Cut,
    Message,
    RequestedCall,
    Turn,
    calls_of_turn,
    check_error,
    part,
    plain,
    rows,
    text_in,
    written_in,
)


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
        """
        Returns the part of *client* whose `create` sends a request.
        """
        return client.chat.completions

    def reply(self) -> "Response":
        """
        A response, still empty.
        """
        return Response()

    def request(self, messages: Sequence[Any], *, stream: bool) -> dict[str, Any]:
        """
        The parts of a request that are the wire's own.
        """
        streamed = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        return {"messages": messages, **streamed}

    def result(self, call: RequestedCall, text: str) -> Message:
        """
        Returns the message that answers *call*, without control characters.
        """
        return {"role": "tool", "tool_call_id": call.id, "content": sanitise(text)}

    def calls_of(self, message: Any) -> Iterator[RequestedCall]:
        """
        The calls that *message* of a conversation makes.
        """
        for call in part(message, "tool_calls") or ():
            yield RequestedCall(part(call, "id") or "", part(part(call, "function"), "name") or "", None)

    def answers(self, message: Any) -> str | None:
        """
        Returns the id of the call that *message* answers, None if it answers no call.
        """
        return str(part(message, "tool_call_id")) if part(message, "role") == "tool" else None


@dataclass(slots=True)
class Response:
    """
    A response of chat.completions as it comes in, from one object or from the chunks of a stream.
    """

    usage: Any = None
    """As far as it is known by now; None where the server does not say."""
    _texts: list[str] = field(default_factory=list)
    _calls: list["_Call"] = field(default_factory=list)
    _thoughts: dict[str, Any] = field(default_factory=dict)
    _finish_reason: str | None = None

    def read(self, response: Any) -> str:
        """
        Take in a whole response; its text. Raises ResponseFailed if the server says that it failed.
        """
        return self._take(response, "message")

    def add(self, event: Any) -> str:
        """
        Take in one event of a stream; the text it brought. Raises as `read` does.
        """
        return self._take(event, "delta")

    def turn(self, n: int, *, closed: bool | None) -> Turn:
        """
        The response for the loop. Calls without an id of their own get one made of *n*, which is to be unique. Whether the
        mark of its end has come closed a stream says *closed*, None if there was no stream. Raises ResponseFailed if a part
        of the response is missing.
        """
        # Some servers never send a finish reason: a stream that was closed is whole if its arguments are.
        whole = closed is None or self._finish_reason is not None
        if not whole and not (closed and all(call.is_whole or not call.arguments.strip() for call in self._calls)):
            raise Cut
        if not self._texts:
            raise ResponseFailed("the reply has no `choices`")
        calls, text = calls_of_turn(self._calls, n), sanitise("".join(self._texts))
        message: Message = {"role": "assistant"}
        if text:
            message["content"] = text
        if calls:
            message |= {"tool_calls": [*map(_wired, calls)], **self._thoughts}
        kept = (message,) if calls or text.strip() else ()
        return Turn(text, calls, kept, self.usage, self._finish_reason)

    def _take(self, came: Any, kind: str) -> str:
        """
        Take in a whole response, or a chunk of one, by the *kind* of its choice; its text.
        """
        reply = plain(came, "the reply")
        check_error(reply)
        self.usage = self.usage if reply.get("usage") is None else reply["usage"]
        choices, whole = rows(reply, "choices", "a choice"), kind == "message"
        choice = next((choice for choice in choices if whole or not choice.get("index")), None)
        if choice is None:
            # The chunk that carries the usage has no choices.
            return ""
        check_error(choice)
        self._finish_reason = text_in(choice, "finish_reason") or self._finish_reason
        if self._finish_reason == "error":
            raise ResponseFailed("the server ended the response with an error")
        message = plain(choice.get(kind) or (None if whole else {}), f"`{kind}`")
        for position, piece in enumerate(rows(message, "tool_calls", "a tool call")):
            self._add(piece, position if whole else piece.get("index"))
        for name in _THOUGHTS:
            said, before = message.get(name), self._thoughts.get(name)
            if said is not None:
                pieces = isinstance(before, (str, list)) and type(before) is type(said)
                self._thoughts[name] = before + said if pieces else said
        # A refusal is what the model has to say; as plain content it goes back to any server.
        self._texts.append(_text(message, "content") + _text(message, "refusal"))
        return self._texts[-1]

    def _add(self, piece: Mapping[str, Any], index: Any) -> None:
        """
        Take in a *piece* of a call: of the one of its *index*, else of its id, else of the latest; of a new one if that has
        ended.
        """
        said = plain(piece.get("function") or {}, "the function of a tool call")
        id_, name, arguments = text_in(piece, "id"), text_in(said, "name"), written_in(said, "arguments")
        found = [call for call in self._calls if index is not None and call.index == index]
        found = found or [call for call in self._calls if id_ and call.id == id_ and None in (index, call.index)]
        found = found or [call for call in self._calls[-1:] if None in (index, call.index)]
        if not found or found[-1].ends_before(id_, name, arguments):
            found = [_Call("", "", "", index=index)]
            self._calls += found
        call = found[-1]
        call.id = call.id or id_
        call.tool += "" if name == call.tool else name
        call.arguments += arguments
        call.written |= {key: value for key, value in piece.items() if key not in _OWN and value is not None}


@dataclass(slots=True)
class _Call(RequestedCall):
    """
    A call as its pieces come in.
    """

    index: Any = None

    @property
    def is_whole(self) -> bool:
        """
        Whether its arguments are a JSON object, to which nothing can be added.
        """
        try:
            return isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False

    def ends_before(self, id_: str, name: str, arguments: str) -> bool:
        """
        Whether a piece with these is of the next call. Some servers number every call 0, or none, or give all the same id.
        """
        if id_ and self.id and id_ != self.id:
            return True
        if arguments.strip() and self.is_whole:
            return True
        return bool(name and self.tool and name != self.tool) and (self.index is None or bool(self.arguments))


def _wired(call: RequestedCall) -> Message:
    said = {"name": call.tool, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": said, **call.written}


def _text(message: Mapping[str, Any], name: str) -> str:
    """
    The text in the field *name*, which some servers send in pieces.
    """
    if not isinstance(message.get(name), list):
        return text_in(message, name)
    pieces = [{"text": piece} if isinstance(piece, str) else plain(piece, "a piece of text") for piece in message[name]]
    return "".join(text_in(piece, "text") for piece in pieces)
