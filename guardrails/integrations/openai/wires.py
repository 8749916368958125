"""
The two wires of the client, each a dialect of the loop: chat.completions and Responses. A server's reply is read as the API
has it, and a conversation is made fit for the next request.

Honest servers differ in what they leave out, so that an absent field, or null, says nothing. A value of another type is not
guessed at: a reply of another shape is one clear error, never obeyed in part.
"""

import json
import re
import sys

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from guardrails.core.text.control import cleaned, repaired, sanitise
from guardrails.core.text.redaction import REDACTED, redact, without_secrets
from guardrails.core.tool import Wire as Form
from guardrails.core.values.errors import ResponseFailed
from guardrails.core.values.usage import public
from guardrails.integrations.hosting import BROKEN_OFF


Message = dict[str, Any]
"""A message of chat.completions, an item of Responses."""

SHOWN_BYTES: Final = 200
"""Of a body, in an error."""
_HEAD_BYTES: Final = 1_024
"""Half a secret has no shape that could be found: they are taken out before the body is cut."""
NO_STREAM: Final = "no_event_stream"
"""The code of a ResponseFailed if the server answers with something else where a stream was asked for."""
_KEY_CHARS: Final = 6
_DONE: Final = re.compile(rb"[\r\n]data: ?\[DONE\]")
_CARRIED: Final = 16
_REASON_CHARS: Final = 300
_CODE_CHARS: Final = 60
_KINDS: Final = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list", type(None): "null"}
_THOUGHTS: Final = ("reasoning_content", "reasoning_details", "reasoning", "extra_content", "thought_signature")
"""Fields of a message that providers want back with the calls that came of them: DeepSeek, OpenRouter, Groq, Gemini."""
_OWN: Final = frozenset({"id", "type", "index", "function"})
_CALL: Final = "function_call"
_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_TEXT: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})
_TEXTS: Final = ("content", "output", "text", "refusal", "instructions")
"""Where the texts are: of a message, of a result, of a part of one, of a request."""
PUT_BACK: Final = "Earlier messages of this conversation were cut. What the tools did so far:\n"
_CLIENTS: Final = ("created_by", "parsed_arguments")
"""Fields of an item that only a response has, or that the client adds."""


class Cut(ResponseFailed):
    """
    A stream that ended before its response was complete.
    """

    def __init__(self) -> None:
        super().__init__("the stream ended before its response was complete")


@dataclass(slots=True)
class RequestedCall:
    """
    A tool call as the model wrote it: *arguments* is its text, read by nobody yet.
    """

    id: str
    tool: str
    arguments: Any
    written: Message = field(default_factory=dict, compare=False)
    """What else the server wrote of it: its item, or the fields beyond the wire's own."""


@dataclass(slots=True)
class Turn:
    """
    One model response, whatever its wire.
    """

    text: str
    """Its text blocks, joined."""
    calls: Sequence[RequestedCall]
    messages: Sequence[Message]
    """The conversation keeps them, with the ids of *calls*. They are empty if nothing is worth keeping."""
    usage: Any = None
    finish_reason: str | None = None
    """In the words of chat.completions."""

    def __post_init__(self) -> None:
        if self.finish_reason in ("length", "content_filter") and self.calls and not self.calls[-1].arguments.strip():
            # Cut before its first character, where no text would mean no arguments.
            self.calls = [*self.calls[:-1], replace(self.calls[-1], arguments="{")]


def part(of: Any, name: str) -> Any:
    """
    The field *name* of what came from a client or was written by hand.
    """
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)


def plain(value: Any, name: str) -> dict[str, Any]:
    """
    Returns the fields of *value*, an object of the client or a mapping that the error calls *name*.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if not hasattr(value, "to_dict"):
        raise ResponseFailed(f"{name} is {_kind_of(value)}, not an object")
    made: dict[str, Any] = value.to_dict(warnings=False)
    return made


def rows(of: Mapping[str, Any], name: str, each: str) -> list[dict[str, Any]]:
    """
    Returns the objects in the list *name*, none if it is absent. The error calls an item of it *each*.
    """
    value = of.get(name)
    if value is not None and not isinstance(value, list):
        raise ResponseFailed(f"`{name}` is {_kind_of(value)}, not a list")
    return [plain(one, each) for one in value or ()]


def text_in(of: Mapping[str, Any], name: str) -> str:
    """
    The text in the field *name*; empty if it is absent.
    """
    value = of.get(name)
    if value is not None and not isinstance(value, str):
        raise ResponseFailed(f"`{name}` is {_kind_of(value)}, not text")
    return value or ""


def written_in(of: Mapping[str, Any], name: str) -> str:
    """
    Returns the text that the model wrote for a tool. Some servers send the object that the text is of.
    """
    value = of.get(name)
    return json.dumps(value) if isinstance(value, (dict, list)) else text_in(of, name)


def calls_of_turn(written: Iterable[RequestedCall], n: int) -> list[RequestedCall]:
    """
    Returns the calls of one turn that were *written*, each once: a call that came twice, with its id, runs once. A call
    whose id is empty or taken gets one made of *n*, which is to be unique. No request could say otherwise which result
    is whose.
    """
    seen, made = set(), dict[str, RequestedCall]()
    for position, call in enumerate(written):
        if not call.tool:
            raise ResponseFailed("a tool call has no `name`")
        # A stream may cut a surrogate pair in two.
        call.arguments = cleaned(repaired(call.arguments))
        key = call.id or position, call.tool, call.arguments
        if key not in seen:
            seen.add(key)
            while call.id in made or not call.id:
                call.id = f"{call.id or 'call'}_{n}_{position}"
            made[call.id] = call
    return list(made.values())


def check_error(of: Mapping[str, Any]) -> None:
    """
    Raise the error that *of* holds in place of a response. Some servers always send an error, empty.
    """
    error = of.get("error") or (of if of.get("object") == "error" else None)
    if (isinstance(error, Mapping) and any(error.values())) or isinstance(error, str):
        raise ResponseFailed(*reason_of(error))


def reason_of(error: Any) -> tuple[str, str | None]:
    """
    Returns a server's reason for an *error*, in one line, and its code.
    """
    code = part(error, "code")
    text = error if isinstance(error, str) else part(error, "message") or json.dumps(error, default=str)
    return line_of(redact(str(text), _REASON_CHARS)), line_of(str(code or ""))[:_CODE_CHARS] or None


def line_of(text: str) -> str:
    """
    *text* in one line, without control characters: it must not steer a terminal.
    """
    return "".join(char for char in " ".join(text.split()) if char.isprintable())


def check_sendable(messages: Sequence[Message]) -> None:
    """
    Raise ResponseFailed if a request could not carry *messages*: once kept, no request of their conversation could be sent.
    """
    try:
        # A request holds them a few levels down.
        json.dumps([[[[messages]]]], ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise ResponseFailed(f"the response cannot be sent again: {error}") from None


def _kind_of(value: object) -> str:
    return _KINDS.get(type(value), "an object")


# The wires


@dataclass(slots=True)
class ChatCompletions:
    """
    A response of chat.completions as it comes in, from one object or from the chunks of a stream. The class is the wire.
    """

    form: ClassVar[Form] = "chat"

    usage: Any = None
    """As far as it is known by now; None where the server does not say."""
    _texts: list[str] = field(default_factory=list)
    _calls: list["_Call"] = field(default_factory=list)
    _thoughts: dict[str, Any] = field(default_factory=dict)
    _finish_reason: str | None = None

    @staticmethod
    def api(client: Any) -> Any:
        """
        Returns the part of *client* whose `create` sends a request.
        """
        return client.chat.completions

    @staticmethod
    def request(messages: Sequence[Any], *, stream: bool) -> dict[str, Any]:
        """
        The parts of a request that are the wire's own.
        """
        streamed = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        return {"messages": messages, **streamed}

    @staticmethod
    def result(call: RequestedCall, text: str) -> Message:
        """
        Returns the message that answers *call*, without control characters.
        """
        return {"role": "tool", "tool_call_id": call.id, "content": sanitise(text)}

    @staticmethod
    def calls_of(message: Any) -> Iterator[RequestedCall]:
        """
        The calls that *message* of a conversation makes.
        """
        for call in part(message, "tool_calls") or ():
            yield RequestedCall(part(call, "id") or "", part(part(call, "function"), "name") or "", None)

    @staticmethod
    def answers(message: Any) -> str | None:
        """
        Returns the id of the call that *message* answers, None if it answers no call.
        """
        return str(part(message, "tool_call_id")) if part(message, "role") == "tool" else None

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
        messages = (message,) if calls or text.strip() else ()
        return Turn(text, calls, messages, self.usage, self._finish_reason)

    def _take(self, event: Any, kind: str) -> str:
        """
        Take in a whole response, or a chunk of one, by the *kind* of its choice; its text.
        """
        reply = plain(event, "the reply")
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
            thought, before = message.get(name), self._thoughts.get(name)
            if thought is not None:
                pieces = isinstance(before, (str, list)) and type(before) is type(thought)
                self._thoughts[name] = before + thought if pieces else thought
        # A refusal is what the model has to say; as plain content it goes back to any server.
        self._texts.append(_chat_text(message, "content") + _chat_text(message, "refusal"))
        return self._texts[-1]

    def _add(self, piece: Mapping[str, Any], index: Any) -> None:
        """
        Take in a *piece* of a call: of the one of its *index*, else of its id, else of the latest; of a new one if that has
        ended.
        """
        function = plain(piece.get("function") or {}, "the function of a tool call")
        id_, name, arguments = (
            text_in(piece, "id"),
            text_in(function, "name"),
            written_in(function, "arguments"),
        )
        calls = [call for call in self._calls if index is not None and call.index == index]
        calls = calls or [call for call in self._calls if id_ and call.id == id_ and None in (index, call.index)]
        calls = calls or [call for call in self._calls[-1:] if None in (index, call.index)]
        if not calls or calls[-1].ends_before(id_, name, arguments):
            calls = [_Call("", "", "", index=index)]
            self._calls += calls
        call = calls[-1]
        call.id = call.id or id_
        call.tool += "" if name == call.tool else name
        call.arguments += arguments
        call.written |= {key: value for key, value in piece.items() if key not in _OWN and value is not None}


@dataclass(slots=True)
class _Call(RequestedCall):
    """
    A call of chat.completions as its pieces come in.
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
    function = {"name": call.tool, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function, **call.written}


def _chat_text(message: Mapping[str, Any], name: str) -> str:
    """
    The text in the field *name*, which some servers send in pieces.
    """
    if not isinstance(message.get(name), list):
        return text_in(message, name)
    pieces = [{"text": piece} if isinstance(piece, str) else plain(piece, "a piece of text") for piece in message[name]]
    return "".join(text_in(piece, "text") for piece in pieces)


@dataclass(slots=True)
class Responses:
    """
    A response of Responses as it comes in, from one object or from the events of a stream. The class is the wire. Each
    request carries the whole conversation, which also serves servers that keep nothing (`store=False`).
    """

    form: ClassVar[Form] = "responses"

    usage: Any = None
    _items: list[Message] = field(default_factory=list)
    _done: list[Message] = field(default_factory=list)
    """Items of a stream: some servers leave the output of the last event empty."""
    _status: str | None = None
    _reason: str | None = None

    @staticmethod
    def api(client: Any) -> Any:
        return client.responses

    @staticmethod
    def request(messages: Sequence[Any], *, stream: bool) -> dict[str, Any]:
        return {"input": messages, **({"stream": True} if stream else {})}

    @staticmethod
    def result(call: RequestedCall, text: str) -> Message:
        return {"type": "function_call_output", "call_id": call.id, "output": sanitise(text)}

    @staticmethod
    def calls_of(message: Any) -> Iterator[RequestedCall]:
        if part(message, "type") == _CALL:
            arguments = part(message, "arguments") or ""
            yield RequestedCall(str(part(message, "call_id") or ""), str(part(message, "name") or ""), arguments)

    @staticmethod
    def answers(message: Any) -> str | None:
        return str(part(message, "call_id")) if part(message, "type") == "function_call_output" else None

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
        return _items_text(self._items)

    def add(self, event: Any) -> str:
        fields = plain(event, "an event")
        kind = text_in(fields, "type")
        if kind in _TEXT:
            return text_in(fields, "delta")
        if kind == "response.output_item.done":
            self._done.append(_item(plain(fields.get("item"), "an item of `output`")))
        elif kind in _ENDS:
            self.read(fields.get("response"))
        elif kind == "error":
            raise ResponseFailed(*reason_of(fields.get("error") or fields))
        elif not kind:
            check_error(fields)
        return ""

    def turn(self, n: int, *, closed: bool | None) -> Turn:
        if self._status is None:
            # The event that holds the whole response ends a stream.
            raise Cut
        items = [item for item in self._items if item["type"] == _CALL]
        written = [RequestedCall(item.get("call_id") or "", item["name"], item["arguments"], item) for item in items]
        calls = calls_of_turn(written, n)
        for call in calls:
            call.written |= {"call_id": call.id, "arguments": call.arguments}
        own = {id(call.written) for call in calls}
        items = [item for item in self._items if item["type"] != _CALL or id(item) in own]
        text, finish = _items_text(items), "tool_calls" if calls else "stop"
        if self._status == "incomplete":
            finish = "content_filter" if self._reason == "content_filter" else "length"
        # The API would not take reasoning alone.
        alone = all(item["type"] in ("reasoning", "message") for item in items)
        return Turn(text, calls, () if alone and not text.strip() else items, self.usage, finish)


def _items_text(items: Sequence[Message]) -> str:
    pieces = [piece for item in items if item["type"] == "message" for piece in item["content"]]
    return "".join(piece.get("text") or piece.get("refusal") or "" for piece in pieces)


def _item(item: dict[str, Any]) -> Message:
    """
    An *item* as it goes back: without what the client adds, or what only a response may say.
    """
    for name in _CLIENTS:
        item.pop(name, None)
    if item.get("id", "") is None:
        del item["id"]
    for name in ("id", "status", "call_id"):
        text_in(item, name)
    kind = item["type"] = text_in(item, "type") or ("message" if "content" in item else "")
    if not kind:
        raise ResponseFailed("an item of `output` has no `type`")
    if kind == "message":
        item |= {"role": "assistant", "content": _pieces(item)}
    elif kind == "reasoning":
        item["summary"] = rows(item, "summary", "a piece of reasoning")
        rows(item, "content", "a piece of reasoning")
    elif kind == _CALL:
        item |= {"name": text_in(item, "name"), "arguments": written_in(item, "arguments")}
    return item


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


Wire = type[ChatCompletions] | type[Responses]
"""One API of the client."""
WIRES: Final[Mapping[str, Wire]] = {"chat": ChatCompletions, "responses": Responses}


# Conversations


def clean(message: Any) -> Any:
    """
    *message* with its texts sanitised, itself if there is nothing to do; the arguments of its calls stay as they are.
    """
    changes = {}
    for name in _TEXTS if isinstance(message, dict) else ():
        text = message.get(name)
        sound = sanitise(text) if isinstance(text, str) else [*map(clean, text)] if isinstance(text, list) else text
        if sound != text:
            changes[name] = sound
    return {**message, **changes} if changes else message


def mend(wire: Wire, messages: list[Any]) -> None:
    """
    Answer the calls in *messages* that nobody answered, as a process leaves them behind that was killed, as broken off.
    """
    whole = _answered(wire, messages, strays=True)
    if len(whole) > len(messages):
        messages[:] = whole


def compacted(wire: Wire, messages: list[Any], rest: Sequence[Any], digest: Callable[[], str] | None) -> list[Any]:
    """
    The *rest* of all *messages*. If they differ, the text of *digest* is put in front, after the instructions. A result is
    dropped with its call; a call that is left alone is answered.
    """
    if [*rest] == messages:
        return messages
    whole = _answered(wire, rest, strays=False)
    if digest is not None:
        roles = [part(message, "role") in ("system", "developer") for message in whole]
        head = roles.index(False) if False in roles else len(roles)
        whole.insert(head, {"role": "user", "content": PUT_BACK + digest()})
    return whole


def _answered(wire: Wire, messages: Sequence[Any], *, strays: bool) -> list[Any]:
    """
    Returns *messages* with a result of each call, which says of a lost one that it was broken off. Results without a call
    stay as *strays*, or are dropped.
    """
    whole, waiting = list[Any](), list[RequestedCall]()

    def give_up() -> None:
        whole.extend(wire.result(lost, BROKEN_OFF.to_json()) for lost in waiting)
        waiting.clear()

    for message in messages:
        answered = wire.answers(message)
        # Servers use the same ids again: the latest call of an id is meant.
        call = next((one for one in reversed(waiting) if one.id == answered), None)
        if call is not None:
            waiting.remove(call)
        elif answered is None:
            # In chat.completions an answer follows its call at once, in Responses it may come later.
            if wire.form == "chat":
                give_up()
            waiting += wire.calls_of(message)
        elif not strays:
            continue
        whole.append(message)
    give_up()
    return whole


# The body of a reply


class Body:
    """
    The body of a reply, of which the *client* made *made*: a raw response, a stream, or the response itself.
    """

    def __init__(self, client: Any, made: Any) -> None:
        self.closed = False
        """A stream has been closed by the mark that chat.completions has for its end."""
        self._client = client
        self._response = getattr(made, "http_response", None)
        self._begins, self._last = b"", b"\n"

    def whole(self, made: Any) -> Any:
        """
        Returns the response that the client *made*. Raises ValueError if it is no JSON.
        """
        if self._response is None:
            return made
        self._begins = self._response.content[:_HEAD_BYTES]
        whole = made.parse()
        if isinstance(whole, str):
            raise ValueError(whole)
        return whole

    def stream(self, made: Any) -> Any:
        """
        Returns the stream that the client *made*, seen as it passes: the client does not tell one that was closed in order
        from one that was cut.
        """
        if self._response is None:
            return made
        each, aeach = self._response.iter_bytes, self._response.aiter_bytes

        def seen(*given: Any, **options: Any) -> Iterator[bytes]:
            return map(self._seen, each(*given, **options))

        async def aseen(*given: Any, **options: Any) -> AsyncIterator[bytes]:
            async for piece in aeach(*given, **options):
                yield self._seen(piece)

        self._response.iter_bytes, self._response.aiter_bytes = seen, aseen
        return made.parse()

    def failure(self, error: BaseException) -> BaseException:
        """
        *error* as the loop raises it: a reply that is no response says where it came from and how it begins.
        """
        openai: Any = sys.modules.get("openai")
        kind = str(getattr(self._response, "headers", {}).get("content-type", ""))
        message, code = str(error), getattr(error, "code", None)
        if isinstance(error, Cut) and kind and "event-stream" not in kind:
            message, code = "the reply is no event stream", NO_STREAM
        elif isinstance(error, (ValueError, RecursionError)):
            message = "the reply is no JSON; check the base URL"
        elif openai is not None and type(error) is openai.APIError:
            # The client's word for an error that the server reports in place of a response.
            message, code = reason_of(getattr(error, "body", None) or message)
            message = f"{code}: {message}" if code else message
        elif not isinstance(error, ResponseFailed):
            return error
        key = getattr(self._client, "api_key", None)
        url = public(str(getattr(self._response, "url", None) or getattr(self._client, "base_url", "")) or None)
        status = getattr(self._response, "status_code", None)
        body = in_one_line(self._begins.decode("utf-8", "replace"), key)
        source = ("the server" if status is None else f"HTTP {status}") + (f" from `{url}`" if url else "")
        failed = ResponseFailed(_without_key(f"{message} ({source}: {f'`{body}`' if body else 'an empty body'})", key))
        failed.code, failed.url, failed.status, failed.body = code, url, status, body
        return failed

    def _seen(self, piece: bytes) -> bytes:
        self._begins = (self._begins + piece)[:_HEAD_BYTES]
        seen = self._last + piece
        self.closed = self.closed or _DONE.search(seen) is not None
        self._last = seen[-_CARRIED:]
        return piece


def in_one_line(text: str, key: Any) -> str:
    """
    The first 200 bytes of the *text* of a server, without control characters, secrets, and the client's *key*.
    """
    line = line_of(without_secrets(_without_key(sanitise(text[:_HEAD_BYTES]), key)))
    return line.encode()[:SHOWN_BYTES].decode("utf-8", "ignore")


def is_cut(error: BaseException) -> bool:
    """
    Returns whether *error* says that a stream ended early: without its end, or because the connection was lost.
    """
    openai = sys.modules.get("openai")
    if openai is None or isinstance(error, Cut):
        return isinstance(error, Cut)
    return isinstance(error, openai.APIConnectionError) and not isinstance(error, openai.APITimeoutError)


def _without_key(text: str, key: Any) -> str:
    """
    *text* without the client's *key*, which a server may say again; a short one is a placeholder, as `none`.
    """
    return text.replace(key, REDACTED) if isinstance(key, str) and len(key) >= _KEY_CHARS else text
