"""
A scripted OpenAI-compatible server on loopback, chat.completions and Responses, for tests and for the demo.

    def model(body, n):
        return Calls(call("grep", {"pattern": "error"})) if n < 3 else Text("done")

    with ScriptedOpenAI(model) as server:
        client = OpenAI(base_url=server.base_url, api_key="-", max_retries=0)
"""

import json
import threading

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from guardrails.core.values.errors import needs


Body = dict[str, Any]
"""The parsed JSON of a request."""
Headers = Mapping[str, str]
_REASONS: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass(frozen=True, slots=True)
class Usage:
    """
    Tokens that a reply reports; *cached* of the *prompt* tokens came from the cache.
    """

    prompt: int
    completion: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """
    One tool call of a reply; *arguments* is sent as it is, JSON or not, and without *id* the server makes a unique one.
    """

    name: str
    arguments: str
    id: str | None = None

    @property
    def function(self) -> Body:
        """
        Its name and its arguments.
        """
        return {"name": self.name, "arguments": self.arguments}


def call(name: str, arguments: Mapping[str, Any] | str | None = None, *, id: str | None = None) -> ScriptedCall:
    """
    A tool call for `Calls`; *arguments* as a mapping, or as text to send malformed JSON.
    """
    text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments or {}), ensure_ascii=False)
    return ScriptedCall(name, text, id)


@dataclass(frozen=True, slots=True)
class Text:
    """
    An answer in text. Empty text is a model that answers nothing.

    *usage*: `True` reports an estimate (a token for every four characters), `False` none, as some servers do.
    """

    text: str = ""
    usage: Usage | bool = True
    finish_reason: str | None = "stop"
    refusal: str | None = None
    items: tuple[Body, ...] = ()
    """Over Responses, further output items that come first, as they are: reasoning, say."""
    calls: tuple[ScriptedCall, ...] = ()

    def used(self, *read: object) -> Usage | None:
        """
        Returns the usage that it reports as the reply to a request of *read*.
        """
        if isinstance(self.usage, Usage):
            return self.usage
        written = [self.text, *(call.name + call.arguments for call in self.calls)]
        prompt, completion = len(json.dumps(read, ensure_ascii=False)), len("".join(written))
        return Usage(-(-prompt // 4), -(-completion // 4)) if self.usage else None


class Calls(Text):
    """
    One assistant turn with one or more tool calls: `Calls(call("grep", {"pattern": "error"}), call("ls"))`.

    `finish_reason="length"` with arguments cut in the middle is a model that ran out of tokens. *others* as for `Text`.
    """

    def __init__(self, *calls: ScriptedCall, finish_reason: str | None = "tool_calls", **others: Any) -> None:
        super().__init__(finish_reason=finish_reason, calls=calls, **others)


@dataclass(frozen=True, slots=True)
class Raw:
    """
    A body sent as it is, whole or streamed: `Raw("<html>...", "text/html")` is a server that lies.
    """

    body: str | bytes = b""
    content_type: str = "application/json"
    status: int = 200
    headers: Headers = field(default_factory=dict)
    broken: bool = False
    """The connection is lost behind it."""

    @property
    def data(self) -> bytes:
        """
        The bytes of the body.
        """
        return self.body.encode() if isinstance(self.body, str) else self.body


class Fail(Raw):
    """
    An HTTP error in the API's shape: `Fail(429, {"Retry-After": "2"})`, `Fail(500)`.
    """

    def __init__(self, status: int, headers: Headers | None = None, message: str = "scripted failure") -> None:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        error = {"message": message, "type": kind, "param": None, "code": None}
        super().__init__(json.dumps({"error": error}), status=status, headers=headers or {})


@dataclass(frozen=True, slots=True)
class Delayed:
    """
    *reply*, *seconds* late.
    """

    reply: "Reply"
    seconds: float


Reply = Text | Raw | Delayed
Script = Callable[[Body, int], Reply]
"""Of a request and its number, counted from 0, what the model says."""


def _as_script(script: Script | Sequence[Reply]) -> Script:
    """
    *script* as a function; a list is played in order, and a request beyond its end fails.
    """
    if callable(script):
        return script
    beyond = Fail(400, message=f"the script has only {len(script)} replies")
    return lambda body, n: script[n] if n < len(script) else beyond


def obeying(script: Script | Sequence[Reply], answer: str) -> Script:
    """
    *script* as a model that obeys: where `tool_choice` is `none`, or no tools are listed, it says *answer*.
    """
    play, final = _as_script(script), Text(answer)
    return lambda body, n: final if body.get("tool_choice") == "none" or not body.get("tools") else play(body, n)


class ScriptedOpenAI:
    """
    The server: a context manager that answers as *script* says, on a port that the system picks.

    *script* is a list of replies, or a function of the request and its number. A script that raises is answered with
    HTTP 400, which no client retries. While it runs, `base_url` is its address for an OpenAI client.
    """

    def __init__(self, script: Script | Sequence[Reply]) -> None:
        self.requests: list[Body] = []
        """The bodies of all requests so far, in order of arrival."""
        self._script = _as_script(script)
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        self._stopping.clear()
        self._server = _Server(("127.0.0.1", 0), _Requests)
        self._server.scripted = self
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def transport(self) -> Any:
        """
        The same script without a socket: a transport for the HTTP client of an OpenAI client, at any address.
        """
        with needs("openai", "a transport"):
            import httpx2

        def body(answer: Raw) -> Iterator[bytes]:
            yield answer.data
            if answer.broken:
                raise httpx2.RemoteProtocolError("the connection is lost")

        def handle(request: httpx2.Request) -> httpx2.Response:
            answer = self.answer(request.url.path, request.read())
            headers = {"Content-Type": answer.content_type, **answer.headers}
            return httpx2.Response(answer.status, headers=headers, content=body(answer))

        return httpx2.MockTransport(handle)

    def answer(self, path: str, text: bytes) -> Raw:
        """
        Returns the answer to a request of *text* to *path*.
        """
        wire, body = WIRES.get(path), json.loads(text)
        if wire is None:
            return Fail(404, message=f"Invalid URL (POST {path})")
        with self._lock:
            n = len(self.requests)
            self.requests.append(body)
        try:
            reply = self._script(body, n)
        except Exception as error:  # (a failing script must reach the test that wrote it)
            reply = Fail(400, message=f"the script failed: {error!r}")
        while isinstance(reply, Delayed):
            self._stopping.wait(reply.seconds)
            reply = reply.reply
        if isinstance(reply, Raw):
            return reply
        if body.get("stream"):
            return Raw("".join(wire.frames(body, reply, n)), "text/event-stream")
        return Raw(json.dumps(wire.whole(body, reply, n)))


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True
    scripted: ScriptedOpenAI

    def handle_error(self, request: Any, client_address: Any) -> None:
        """
        Say nothing: what ends here is a client that hung up.
        """


class _Requests(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        """
        Answer one request; each has a connection of its own.
        """
        answer = self.server.scripted.answer(self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        self.send_response(answer.status)
        own = {"Content-Type": answer.content_type, "Content-Length": str(len(answer.data) + answer.broken)}
        for name, value in {**own, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.data)

    def log_message(self, format: str, *args: Any) -> None:
        """
        Say nothing: the log is `ScriptedOpenAI.requests`.
        """


# The wires: a reply as the two APIs of OpenAI write it, `whole`, and as the `frames` of a stream


class _ChatCompletions:
    """
    `/v1/chat/completions`. The usage event (`choices == []`) comes only if `stream_options.include_usage` asks for it;
    every other event then says `usage: null`.
    """

    def whole(self, body: Body, reply: Text, n: int) -> Body:
        """
        The response to the request *body*, of number *n*, that does not stream.
        """
        content = reply.text or (None if reply.calls or reply.refusal else "")
        message: Body = {"role": "assistant", "content": content, "refusal": reply.refusal}
        if reply.calls:
            numbered = [(_id(call, n, i), call.function) for i, call in enumerate(reply.calls)]
            message["tool_calls"] = [{"id": id_, "type": "function", "function": made} for id_, made in numbered]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
        response = {"id": f"chatcmpl-{n}", "object": "chat.completion", "created": 1_700_000_000 + n}
        response |= {"model": body["model"], "choices": [choice]}
        used = reply.used(body.get("messages"), body.get("tools"))
        return response | ({"usage": _usage(used, "prompt", "completion")} if used else {})

    def frames(self, body: Body, reply: Text, n: int) -> list[str]:
        """
        The server-sent events of a streamed response, `[DONE]` last.
        """
        head: Body = self.whole(body, reply, n) | {"object": "chat.completion.chunk"}
        [choice], usage = head.pop("choices"), head.pop("usage", None)
        deltas: list[Body] = [{"role": "assistant", "content": None if reply.calls and not reply.text else ""}]
        deltas += [{"content": piece} for piece in _pieces(reply.text)]
        deltas += [{"refusal": piece} for piece in _pieces(reply.refusal or "")]
        for i, call in enumerate(choice["message"].get("tool_calls", ())):
            whole = call["function"]["arguments"]
            deltas.append({"tool_calls": [{**call, "index": i, "function": {**call["function"], "arguments": ""}}]})
            deltas += [{"tool_calls": [{"index": i, "function": {"arguments": piece}}]} for piece in _pieces(whole)]
        chunks: list[Body] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish_reason}]})
        if (body.get("stream_options") or {}).get("include_usage"):
            head["usage"] = None
            chunks += [{"choices": [], "usage": usage}] if usage else []
        return [*(f"data: {json.dumps(head | chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]


class _Responses:
    """
    `/v1/responses`. Usage comes with the last event.
    """

    def whole(self, body: Body, reply: Text, n: int) -> Body:
        """
        The response to the request *body*, of number *n*, that does not stream.
        """
        used, reason = reply.used(body.get("input"), body.get("tools")), _REASONS.get(reply.finish_reason or "")
        status = "incomplete" if reason else "completed"
        response: Body = {"id": f"resp_{n}", "object": "response", "created_at": 1_700_000_000 + n, "status": status}
        response |= {"error": None, "incomplete_details": {"reason": reason} if reason else None}
        response |= {"tools": body.get("tools") or [], "tool_choice": body.get("tool_choice", "auto")}
        response |= {"model": body["model"], "parallel_tool_calls": True, "output": _output(reply, n, status)}
        return response | {"usage": used and _usage(used, "input", "output")}

    def frames(self, body: Body, reply: Text, n: int) -> list[str]:
        """
        The server-sent events of a streamed response.
        """
        response = self.whole(body, reply, n)
        events: list[Body] = [{"type": "response.created", "response": {**response, "output": [], "usage": None}}]
        for place, item in enumerate(response["output"]):
            events += _events(item, {"output_index": place, "item_id": item.get("id")})
        events.append({"type": f"response.{response['status']}", "response": response})
        texts = (json.dumps({**event, "sequence_number": at}) for at, event in enumerate(events))
        return [f"event: {event['type']}\ndata: {text}\n\n" for event, text in zip(events, texts, strict=True)]


WIRES: Final[Mapping[str, _ChatCompletions | _Responses]] = {
    "/v1/chat/completions": _ChatCompletions(),
    "/v1/responses": _Responses(),
}


def _usage(used: Usage, read: str, written: str) -> Body:
    details = {f"{read}_tokens_details": {"cached_tokens": used.cached}}
    details[f"{written}_tokens_details"] = {"reasoning_tokens": 0}
    made = {f"{read}_tokens": used.prompt, f"{written}_tokens": used.completion}
    return {**made, **details, "total_tokens": used.prompt + used.completion}


def _output(reply: Text, n: int, status: str) -> list[Body]:
    items: list[Body] = [*reply.items]
    if reply.text or reply.refusal is not None or not (reply.calls or items):
        text = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        content = [text] if reply.refusal is None else [{"type": "refusal", "refusal": reply.refusal}]
        items.append({"id": f"msg_{n}", "type": "message", "role": "assistant", "status": status, "content": content})
    for i, call in enumerate(reply.calls):
        made = {"id": f"fc_{n}_{i}", "type": "function_call", "status": "completed", "call_id": _id(call, n, i)}
        items.append(made | call.function)
    return items


def _events(item: Body, at: Body) -> Iterator[Body]:
    begun = {name: type(item[name])() for name in ("arguments", "content") if name in item}
    yield {"type": "response.output_item.added", **at, "item": item | begun}
    if item["type"] == "function_call":
        yield from _written("function_call_arguments", "arguments", item, at)
    for i, part in enumerate(item["content"] if item["type"] == "message" else ()):
        here, key = {**at, "content_index": i}, part["type"].removeprefix("output_")
        yield {"type": "response.content_part.added", **here, "part": {**part, key: ""}}
        yield from _written(part["type"], key, part, here)
        yield {"type": "response.content_part.done", **here, "part": part}
    yield {"type": "response.output_item.done", **at, "item": item}


def _written(name: str, key: str, part: Body, at: Body) -> Iterator[Body]:
    for piece in _pieces(part[key]):
        yield {"type": f"response.{name}.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": f"response.{name}.done", **at, key: part[key], "logprobs": []}


def _id(call: Any, n: int, i: int) -> str:
    return f"call_{n}_{i}" if call.id is None else str(call.id)


def _pieces(text: str, size: int = 12) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
