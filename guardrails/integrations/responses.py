"""
The Responses wire: a response, whole or streamed, as the loop's turn and as the items to keep.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from ..errors import ResponseFailed
from ..loop import RequestedCall, Turn
from ..outcome.redaction import sanitise
from ..tool import Wire as Form
from ..turns import ToolChoice
from .forms import flat, flat_choice
from .wire import Message, Sent, part


_INPUT: Final = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items that are calls for the client to run, and the field that has what the model wrote."""
_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_TEXT: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})
_WRITTEN: Final = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
_CUT: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}


@dataclass(frozen=True, slots=True)
class Responses:
    """
    The wire itself. Each request carries the whole conversation, which also serves servers that keep nothing
    (`store=False`); *chained*, it goes on from the response before and carries only what is new.
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
        create: Callable[..., Any] = client.responses.create
        return create

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
        kind = part(event, "type")
        if kind in _TEXT:
            return str(event.delta or "")
        if kind in _WRITTEN:
            self._written[event.output_index] = self._written.get(event.output_index, "") + (event.delta or "")
        elif kind == "response.output_item.done":
            self._done[event.output_index] = _wire(event.item)
        elif kind in _ENDS:
            self._end(event.response)
        elif kind == "error":
            raise ResponseFailed(str(part(event, "message")), part(event, "code"))
        return ""

    def turn(self, n: int) -> Turn:
        """
        The response for the loop. Calls that came without an id get one made of *n*, which is to be unique.
        """
        if self.status is None:
            raise ResponseFailed("the stream ended before its response was complete")
        made = [item for item in self.items if item.get("type") in _INPUT]
        if not all(item.get("call_id") for item in made):
            # The server knows the call by another id, or none: nothing can go on from there.
            self.id = None
        calls = []
        for position, item in enumerate(made):
            item["call_id"] = item.get("call_id") or f"call_{n}_{position}"
            calls.append(_call(item, item["call_id"], cut=self.status == "incomplete" and position == len(made) - 1))
        finish = _CUT.get(self.reason or "", "length") if self.status == "incomplete" else None
        return Turn(
            texts=tuple(map(sanitise, self._texts())),
            calls=tuple(calls),
            usage=self.usage,
            finish_reason=finish or ("tool_calls" if calls else "stop"),
            id=self.id,
        )

    def messages(self) -> list[Message]:
        """
        The items that the conversation keeps, those of the model's reasoning unchanged; none where they are alone, which
        the API would not take.
        """
        for item in self.items:
            for piece in _pieces(item):
                for name in {"text", "refusal"} & piece.keys():
                    piece[name] = sanitise(piece[name] or "")
        alone = all(item.get("type") in ("reasoning", "message") for item in self.items)
        return [] if alone and not "".join(self._texts()).strip() else self.items

    def _end(self, response: Any) -> None:
        self.id = part(response, "id")
        self.usage = part(response, "usage")
        self.status = part(response, "status") or "completed"
        self.reason = part(part(response, "incomplete_details") or {}, "reason")
        error = part(response, "error")
        if error is not None or self.status in ("failed", "cancelled"):
            said = part(error or {}, "message") or f"the response is `{self.status}`"
            raise ResponseFailed(str(said), part(error or {}, "code"))
        # Some servers leave the output of a stream's last event empty.
        self.items = [_wire(item) for item in part(response, "output") or ()] or self._streamed()

    def _streamed(self) -> list[Message]:
        for place, item in self._done.items():
            name = _INPUT.get(str(item.get("type")))
            if name is not None and not item.get(name):
                item[name] = self._written.get(place, "")
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
    if kind == "custom_tool_call":
        return RequestedCall(call_id, name, {"input": written}, "custom")
    # Cut before its first character; no text at all would mean no arguments.
    return RequestedCall(call_id, name, "{" if cut and not written.strip() else written)


def _wire(item: Any) -> Message:
    """
    *item* as it came, and as it goes back: without what the client adds, or what only a response may say.
    """
    came: Message = dict(item) if isinstance(item, Mapping) else item.to_dict()
    came.pop("created_by", None)
    came.pop("parsed_arguments", None)
    if came.get("id", "") is None:
        del came["id"]
    return came
