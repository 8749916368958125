"""
A scripted OpenAI-compatible server on loopback, chat.completions and Responses, for tests and for the demo.

    def model(body, n):
        return Calls(call("grep", {"pattern": "error"})) if n < 3 else Text("done")

    with ScriptedOpenAI(model) as server:
        client = OpenAI(base_url=server.base_url, api_key="-", max_retries=0)
"""

import json
import threading

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR
from types import ModuleType
from typing import Any, Final, Self

from guardrails.core.values.errors import needs

from . import chat_completions, responses
from .replies import (
    Body,
    BrokenStream,
    Calls,
    Delayed,
    Fail,
    Failed,
    Raw,
    Reply,
    Script,
    ScriptedCall,
    Text,
    Usage,
    as_script,
    call,
    obeying,
    reasoning,
)


__all__ = [
    "Body",
    "BrokenStream",
    "Calls",
    "Delayed",
    "Fail",
    "Failed",
    "Raw",
    "Reply",
    "Script",
    "ScriptedCall",
    "ScriptedOpenAI",
    "Text",
    "Usage",
    "call",
    "obeying",
    "reasoning",
]

_JSON: Final = {"Content-Type": "application/json"}
_APIS: Final[dict[str, ModuleType]] = {api.PATH: api for api in (chat_completions, responses)}


class ScriptedOpenAI:
    """
    The server: a context manager that answers as *script* says, on a port that the system picks.

    *script* is a list of replies, or a function of the request and its number. Invalid requests are refused as the real
    API does, before the script is asked. A script that raises is answered with HTTP 400, which no client retries.
    """

    def __init__(self, script: Script | Sequence[Reply]) -> None:
        self._script = as_script(script)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._bodies: list[Body] = []
        self._refused: list[str] = []
        self._stored: dict[str, list[Body]] = {}
        self._valid = 0
        self._server: _Server | None = None

    def __enter__(self) -> Self:
        self._stopping.clear()
        self._server = _Server(("127.0.0.1", 0), _Requests)
        self._server.scripted, self._server.connections = self, set()
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        server, self._server = self._server, None
        if server is not None:
            self._stopping.set()
            server.shutdown()
            self._thread.join()
            # Idle connections end, so that their threads can be waited for.
            for connection in tuple(server.connections):
                with suppress(OSError):
                    connection.shutdown(SHUT_RDWR)
            server.server_close()

    @property
    def base_url(self) -> str:
        """
        The `base_url` for an OpenAI client. RuntimeError while the server does not run.
        """
        if self._server is None:
            raise RuntimeError("the scripted server is not running")
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def requests(self) -> list[Body]:
        """
        The bodies of all requests so far, refused ones too, in order of arrival.
        """
        with self._lock:
            return list(self._bodies)

    @property
    def refused(self) -> list[str]:
        """
        Why requests were refused as invalid, in order.
        """
        with self._lock:
            return list(self._refused)

    @property
    def transport(self) -> Any:
        """
        The same script without a socket: a transport for the HTTP client of an OpenAI client, at any address.
        """
        with needs("openai", "a transport"):
            import httpx2

        def handle(request: httpx2.Request) -> httpx2.Response:
            answer = self.answer(request.url.path, request.read())
            return httpx2.Response(answer.status, headers=dict(answer.headers), content=_body(answer, httpx2))

        return httpx2.MockTransport(handle)

    def answer(self, path: str, text: bytes) -> "Answer":
        """
        Returns the answer to a request of *text* to *path*.
        """
        api = _APIS.get(path.partition("?")[0])
        if api is None:
            return _failure(Fail(404, message=f"Invalid URL (POST {path})"))
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return _failure(Fail(400, message="We could not parse the JSON body of your request."))
        reply, n = self._reply(api, body)
        while isinstance(reply, Delayed):
            self._stopping.wait(reply.seconds)
            reply = reply.reply
        if isinstance(reply, Raw):
            return Answer(reply.status, {"Content-Type": reply.content_type}, [reply.data])
        broken, said = isinstance(reply, BrokenStream), reply.reply if isinstance(reply, BrokenStream) else reply
        made = said if isinstance(said, Fail) or body.get("stream") else api.whole(body, said, n)
        if isinstance(made, Fail):
            return _failure(made)
        if body.get("stream"):
            frames = [frame.encode() for frame in api.frames(body, said, n)]
            kept = frames[: reply.after] if isinstance(reply, BrokenStream) else frames
            return Answer(200, {"Content-Type": "text/event-stream"}, kept, broken)
        whole = json.dumps(made).encode()
        return Answer(200, _JSON, [whole[: len(whole) // 2] if broken else whole], broken)

    def _reply(self, api: ModuleType, body: Body) -> tuple[Reply, int]:
        with self._lock:
            refusal: Fail | None = api.problem(body, self._stored)
            self._bodies.append(body)
            if refusal is not None:
                self._refused.append(refusal.message)
                return refusal, self._valid
            n = self._valid
            self._valid += 1
        try:
            reply = self._script(body, n)
        except Exception as error:  # noqa: BLE001 (a failing script must reach the test that wrote it)
            return Fail(400, message=f"the script failed: {error!r}"), n
        if isinstance(reply, (Text, Calls)):
            with self._lock:
                self._stored |= api.stored_as(body, reply, n, self._stored)
        return reply, n


@dataclass(frozen=True, slots=True)
class Answer:
    """
    An HTTP response; *broken*: the connection is lost after its pieces.
    """

    status: int
    headers: Mapping[str, str]
    pieces: list[bytes]
    broken: bool = False


def _failure(failure: Fail) -> Answer:
    return Answer(failure.status, {**_JSON, **failure.headers}, [json.dumps(failure.body).encode()])


def _body(answer: Answer, httpx2: Any) -> Iterator[bytes]:
    yield from answer.pieces
    if answer.broken:
        raise httpx2.RemoteProtocolError("the connection is lost")


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = False
    scripted: ScriptedOpenAI
    connections: set[Any]

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """
        Say nothing: what ends here is a client that hung up.
        """


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        """
        Answer one request; each has a connection of its own.
        """
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.server.scripted.answer(self.path, text)
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Connection": "close", "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in filter(None, answer.pieces):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if not answer.broken:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        """
        Say nothing: the log is `ScriptedOpenAI.requests`.
        """
