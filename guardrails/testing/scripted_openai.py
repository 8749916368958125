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
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from guardrails.core.values.errors import needs

from .wires import WIRES


Body = dict[str, Any]
"""The parsed JSON of a request."""


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

    __slots__ = ()

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
    headers: Mapping[str, str] = field(default_factory=dict)
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

    __slots__ = ()

    def __init__(
        self, status: int, headers: Mapping[str, str] | None = None, message: str = "scripted failure"
    ) -> None:
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
    HTTP 400, which no client retries.
    """

    base_url: str
    """For an OpenAI client, while the server runs."""

    def __init__(self, script: Script | Sequence[Reply]) -> None:
        self.requests: list[Body] = []
        """The bodies of all requests so far, in order of arrival."""
        self._script = _as_script(script)
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        self._stopping.clear()
        self._server = _Server(("127.0.0.1", 0), partial(_Requests, self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
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

    def handle_error(self, request: Any, client_address: Any) -> None:
        """
        Say nothing: what ends here is a client that hung up.
        """


class _Requests(BaseHTTPRequestHandler):
    def __init__(self, scripted: ScriptedOpenAI, *connection: Any) -> None:
        self._scripted = scripted
        super().__init__(*connection)

    def do_POST(self) -> None:
        """
        Answer one request; each has a connection of its own.
        """
        answer = self._scripted.answer(self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
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
