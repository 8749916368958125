"""
The Responses wire: a response, whole or streamed, as the loop's turn and as the items to keep.
"""

import re

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from guardrails.core.text.control import sanitise
from guardrails.core.tools.tool import Wire as Form
from guardrails.core.tools.tool_choice import ToolChoice
from guardrails.core.values.errors import ResponseFailed

from .forms import flat, flat_choice
from .loop import RequestedCall, Turn
from .reading import (
    Cut,
    Unreadable,
    check_error,
    checked_object,
    error_in,
    ids_of,
    line_of,
    list_in,
    named_in,
    reason_of,
    text_in,
    told_once,
    written_in,
)
from .wire import Message, Sent, part


_INPUT: Final = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items that are calls for the client to run, and the field that has what the model wrote."""
_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_TEXT: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})
_WRITTEN: Final = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
_CUT: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}
_SERVED: Final = re.compile(r"reasoning|message|compaction|mcp_.*|.*_(?:call|output)")
"""Items that may stand alone: the model thought, or the server ran a tool of its own."""


@dataclass(frozen=True, slots=True)
class Responses:
    """
    The wire itself. Each request carries the whole conversation, which also serves servers that keep nothing
    (`store=False`). If *chained*, it goes on from the response before and carries only the new items.
    """

    chained: bool = False
    form: ClassVar[Form] = "responses"

    def check(self, options: Mapping[str, Any]) -> None:
        if options.get("conversation") is not None:
            raise TypeError(
                "`conversation` has the server keep what the loop sends again: use `Responses(chained=True)`"
            )
        excluded = {"background": True, **({"store": False} if self.chained else {})}
        for name, excluding in excluded.items():
            if options.get(name) is excluding:
                how = " of a chained conversation" if self.chained and name == "store" else ""
                raise TypeError(f"`{name}={excluding}` leaves the loop{how} without what it goes on from")

    def create(self, client: Any) -> Callable[..., Any]:
        return client.responses.create  # type: ignore[no-any-return]

    def reply(self) -> "Response":
        return Response()

    def request(self, sent: Sent, *, stream: bool) -> dict[str, Any]:
        previous = {"previous_response_id": sent.previous} if sent.previous else {}
        return {"input": sent.messages, **previous, **({"stream": True} if stream else {})}

    def tool(self, listed: Mapping[str, Any]) -> dict[str, Any]:
        return flat(listed)

    def choice(self, choice: ToolChoice) -> ToolChoice:
        return flat_choice(choice)

    def result(self, call: RequestedCall, text: str) -> Message:
        kind = "custom_tool_call_output" if call.kind == "custom" else "function_call_output"
        return {"type": kind, "call_id": call.id, "output": sanitise(text)}

    def answer(self, text: str) -> Message:
        return {"role": "assistant", "content": sanitise(text)}

    def calls_of(self, message: Any) -> Iterator[RequestedCall]:
        if part(message, "type") in _INPUT:
            yield _call(message, str(part(message, "call_id") or ""))

    def answers(self, message: Any) -> str | None:
        answering = part(message, "type") in ("function_call_output", "custom_tool_call_output")
        return str(part(message, "call_id")) if answering else None


@dataclass(slots=True)
class Response:
    """
    A response of Responses as it comes in, from one object or from the events of a stream.
    """

    items: list[Message] = field(default_factory=list)
    usage: Any = None
    status: str | None = None
    reason: str | None = None
    id: str | None = None
    _done: dict[int, Message] = field(default_factory=dict)
    _written: dict[int, str] = field(default_factory=dict)
    _said: str = ""

    def read(self, response: Any) -> str:
        """
        Take in a whole response; its text.
        """
        self._end(response)
        return "".join(self._texts())

    def add(self, event: Any) -> str:
        """
        Take in one event of a stream; the text it brought.
        """
        kind = text_in(checked_object(event, "an event"), "type")
        if kind in _TEXT:
            self._said += text_in(event, "delta")
            return text_in(event, "delta")
        if kind in _WRITTEN:
            place = self._place(event)
            self._written[place] = self._written.get(place, "") + text_in(event, "delta")
        elif kind == "response.output_item.done":
            self._done[self._place(event)] = _wire(part(event, "item"))
        elif kind in _ENDS:
            self._end(part(event, "response"))
        elif kind == "error":
            raise ResponseFailed(*reason_of(part(event, "error") or event))
        elif not kind:
            check_error(event)
        return ""

    def ended(self, *, closed: bool | None) -> None:
        """
        All has come. The event that holds the whole response ends a stream.
        """
        if self.status is None:
            raise Cut

    def turn(self, n: int) -> Turn:
        """
        The response for the loop. Calls that came without an id of their own get one made of *n*, which is to be unique.
        """
        self.ended(closed=None)
        once = told_once(self.items, _told)
        if len(once) < len(self.items):
            # The server waits for a result of each of the two: nothing can go on from there either.
            self.items, self.id = once, None
        made = [item for item in self.items if item.get("type") in _INPUT]
        calls = []
        for item, call_id in zip(made, ids_of([item.get("call_id") or "" for item in made], n), strict=True):
            if call_id != item.get("call_id"):
                # The server knows the call by another id, or none: nothing can go on from there.
                self.id = None
            item["call_id"] = call_id
            calls.append(_call(item, call_id, cut=self.status == "incomplete" and item is made[-1]))
        texts = tuple(map(sanitise, self._texts()))
        strange = [kind for item in self.items if not _SERVED.fullmatch(kind := str(item["type"]))]
        if strange and not calls and not texts:
            raise Unreadable(f"the `output` is `{line_of(strange[0])[:40]}`, neither text nor a call")
        finish = _CUT.get(self.reason or "", "length") if self.status == "incomplete" else None
        return Turn(
            texts=texts,
            calls=tuple(calls),
            usage=self.usage,
            finish_reason=finish or ("tool_calls" if calls else "stop"),
            id=self.id,
        )

    def messages(self) -> list[Message]:
        """
        Returns the items that the conversation keeps, those of the model's reasoning unchanged. Reasoning alone is left
        out, because the API would not take it.
        """
        for item in self.items:
            for piece in _pieces(item):
                for name in {"text", "refusal"} & piece.keys():
                    piece[name] = sanitise(piece[name] or "")
        alone = all(item.get("type") in ("reasoning", "message") for item in self.items)
        return [] if alone and not "".join(self._texts()).strip() else self.items

    def _end(self, response: Any) -> None:
        checked_object(response, "the reply")
        id_, status, reason = (
            said if isinstance(said, str) and said else None
            for said in (
                part(response, "id"),
                part(response, "status"),
                part(part(response, "incomplete_details") or {}, "reason"),
            )
        )
        self.id, self.status, self.reason = id_, status or "completed", reason
        self.usage = part(response, "usage")
        error = error_in(response)
        if status is not None and (error or status in ("failed", "cancelled")):
            raise ResponseFailed(*reason_of(error or f"the response is `{status}`"))
        check_error(response)
        # Some servers leave the output of a stream's last event empty.
        self.items = [_wire(item) for item in list_in(response, "output")] or self._streamed()
        silent = status in ("completed", "incomplete") and part(response, "output") is not None
        if not self.items and not silent:
            raise Unreadable("the reply has no `output`")

    def _place(self, event: Any) -> int:
        # Of a server that does not say it, the next one.
        place = part(event, "output_index")
        return place if isinstance(place, int) else max(self._done, default=-1) + 1

    def _streamed(self) -> list[Message]:
        for place, item in self._done.items():
            name = _INPUT.get(str(item.get("type")))
            if name is not None and not item.get(name):
                item[name] = self._written.get(place, "")
        if not self._done and self._said:
            return [_wire({"type": "message", "content": self._said})]
        return [self._done[place] for place in sorted(self._done)]

    def _texts(self) -> list[str]:
        pieces = [piece for item in self.items for piece in _pieces(item)]
        said = [piece.get("text") or piece.get("refusal") for piece in pieces]
        return [text for text in said if isinstance(text, str) and text]


def _pieces(item: Message) -> list[dict[str, Any]]:
    content = item.get("content") if item.get("type") == "message" else ()
    return [piece for piece in content or () if isinstance(piece, dict)]


def _call(item: Any, call_id: str, *, cut: bool = False) -> RequestedCall:
    kind = part(item, "type")
    written = part(item, _INPUT[kind]) or ""
    name = str(part(item, "name") or "")
    # Cut before its first character, where no text would mean no arguments; or a text that nothing shows to be whole.
    if cut and (not written.strip() or (kind == "custom_tool_call" and part(item, "status") != "completed")):
        return RequestedCall(call_id, name, "{", "custom" if kind == "custom_tool_call" else "function")
    if kind == "custom_tool_call":
        return RequestedCall(call_id, name, {"input": written}, "custom")
    return RequestedCall(call_id, name, written)


def _told(item: Message) -> tuple[str, ...]:
    """
    All that *item* says if it is a call, its id first.
    """
    kind = item["type"]
    return (item.get("call_id") or "", kind, item["name"], item[_INPUT[kind]]) if kind in _INPUT else ("",)


def _wire(item: Any) -> Message:
    """
    *item* as it came, and as it goes back: without what the client adds, or what only a response may say.
    """
    checked_object(item, "an item of `output`")
    came: Message = dict(item) if isinstance(item, Mapping) else item.to_dict(warnings=False)
    came.pop("created_by", None)
    came.pop("parsed_arguments", None)
    if not isinstance(came.get("status"), (str, type(None))):
        del came["status"]
    if not text_in(came, "id") and came.get("id", "") is None:
        del came["id"]
    kind = text_in(came, "type") or ("message" if "content" in came else "")
    if not kind:
        raise Unreadable("an item of `output` has no `type`")
    came["type"] = kind
    if kind == "message":
        came |= {"role": "assistant", "content": _content(came)}
    elif kind == "reasoning":
        came["summary"] = list(list_in(came, "summary"))
        for piece in (*came["summary"], *list_in(came, "content")):
            checked_object(piece, "a piece of reasoning")
    elif kind in _INPUT:
        came |= {"name": named_in(came), _INPUT[kind]: written_in(came, _INPUT[kind])}
        text_in(came, "call_id")
    return came


def _content(message: Message) -> list[Message]:
    """
    The pieces of a *message*; some servers send its text alone.
    """
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "output_text", "text": content, "annotations": []}]
    pieces = []
    for given in list_in(message, "content"):
        piece = dict(checked_object(given, "a piece of `content`"))
        text, refusal = text_in(piece, "text"), text_in(piece, "refusal")
        if not text_in(piece, "type") and (text or refusal):
            piece["type"] = "output_text" if text else "refusal"
        pieces.append(piece)
    return pieces
