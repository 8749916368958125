"""
The Responses wire: a response, whole or streamed, as the loop's turn and as the items to keep.
"""

from collections.abc import Iterator, Sequence
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
    reason_of,
    rows,
    text_in,
    written_in,
)


_CALL: Final = "function_call"
_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_TEXT: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})
_CLIENTS: Final = ("created_by", "parsed_arguments")
"""Fields of an item that only a response has, or that the client adds."""


@dataclass(frozen=True, slots=True)
class Responses:
    """
    The wire itself. Each request carries the whole conversation, which also serves servers that keep nothing
    (`store=False`).
    """

    form: ClassVar[Form] = "responses"

    def api(self, client: Any) -> Any:
        return client.responses

    def reply(self) -> "Response":
        return Response()

    def request(self, messages: Sequence[Any], *, stream: bool) -> dict[str, Any]:
        return {"input": messages, **({"stream": True} if stream else {})}

    def result(self, call: RequestedCall, text: str) -> Message:
        return {"type": "function_call_output", "call_id": call.id, "output": sanitise(text)}

    def calls_of(self, message: Any) -> Iterator[RequestedCall]:
        if part(message, "type") == _CALL:
            arguments = part(message, "arguments") or ""
            yield RequestedCall(str(part(message, "call_id") or ""), str(part(message, "name") or ""), arguments)

    def answers(self, message: Any) -> str | None:
        return str(part(message, "call_id")) if part(message, "type") == "function_call_output" else None


@dataclass(slots=True)
class Response:
    """
    A response of Responses as it comes in, from one object or from the events of a stream.
    """

    usage: Any = None
    _items: list[Message] = field(default_factory=list)
    _done: list[Message] = field(default_factory=list)
    """Items of a stream: some servers leave the output of the last event empty."""
    _status: str | None = None
    _reason: str | None = None

    def read(self, response: Any) -> str:
        reply = plain(response, "the reply")
        self.usage = reply.get("usage")
        status, error = text_in(reply, "status"), reply.get("error")
        if status in ("failed", "cancelled"):
            raise ResponseFailed(*reason_of(error or f"the response is `{status}`"))
        check_error(reply)
        self._status, self._reason = status or "completed", part(reply.get("incomplete_details"), "reason")
        self._items = [_item(item) for item in rows(reply, "output", "an item of `output`")] or self._done
        if not self._items and (status not in ("completed", "incomplete") or reply.get("output") is None):
            raise ResponseFailed("the reply has no `output`")
        return _text(self._items)

    def add(self, event: Any) -> str:
        came = plain(event, "an event")
        kind = text_in(came, "type")
        if kind in _TEXT:
            return text_in(came, "delta")
        if kind == "response.output_item.done":
            self._done.append(_item(plain(came.get("item"), "an item of `output`")))
        elif kind in _ENDS:
            self.read(came.get("response"))
        elif kind == "error":
            raise ResponseFailed(*reason_of(came.get("error") or came))
        elif not kind:
            check_error(came)
        return ""

    def turn(self, n: int, *, closed: bool | None) -> Turn:
        if self._status is None:
            # The event that holds the whole response ends a stream.
            raise Cut
        made = [item for item in self._items if item["type"] == _CALL]
        written = [RequestedCall(item.get("call_id") or "", item["name"], item["arguments"], item) for item in made]
        calls = calls_of_turn(written, n)
        for call in calls:
            call.written |= {"call_id": call.id, "arguments": call.arguments}
        own = {id(call.written) for call in calls}
        kept = [item for item in self._items if item["type"] != _CALL or id(item) in own]
        text, finish = _text(kept), "tool_calls" if calls else "stop"
        if self._status == "incomplete":
            finish = "content_filter" if self._reason == "content_filter" else "length"
        # The API would not take reasoning alone.
        alone = all(item["type"] in ("reasoning", "message") for item in kept)
        return Turn(text, calls, () if alone and not text.strip() else kept, self.usage, finish)


def _text(items: Sequence[Message]) -> str:
    pieces = [piece for item in items if item["type"] == "message" for piece in item["content"]]
    return "".join(piece.get("text") or piece.get("refusal") or "" for piece in pieces)


def _item(came: dict[str, Any]) -> Message:
    """
    An item as it goes back: without what the client adds, or what only a response may say.
    """
    for name in _CLIENTS:
        came.pop(name, None)
    if came.get("id", "") is None:
        del came["id"]
    for name in ("id", "status", "call_id"):
        text_in(came, name)
    kind = came["type"] = text_in(came, "type") or ("message" if "content" in came else "")
    if not kind:
        raise ResponseFailed("an item of `output` has no `type`")
    if kind == "message":
        came |= {"role": "assistant", "content": _pieces(came)}
    elif kind == "reasoning":
        came["summary"] = rows(came, "summary", "a piece of reasoning")
        rows(came, "content", "a piece of reasoning")
    elif kind == _CALL:
        came |= {"name": text_in(came, "name"), "arguments": written_in(came, "arguments")}
    return came


def _pieces(message: Message) -> list[Message]:
    """
    The pieces of a *message*; some servers send its text alone.
    """
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "output_text", "text": sanitise(content), "annotations": []}]
    pieces = rows(message, "content", "a piece of `content`")
    for piece in pieces:
        for name in {"text", "refusal"} & piece.keys():
            piece[name] = sanitise(text_in(piece, name))
            piece.setdefault("type", "output_text" if name == "text" else name)
    return pieces
