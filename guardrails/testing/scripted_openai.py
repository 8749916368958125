"""
A scripted OpenAI-compatible server on loopback, chat.completions and Responses, for tests and for the demo.

    def model(body, n):
        return Calls(call("grep", {"pattern": "error"})) if n < 3 else Text("done")

    with ScriptedOpenAI(model) as server:
        client = OpenAI(base_url=server.base_url, api_key="-", max_retries=0)
"""

import contextlib
import json
import socket
import threading

from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any, Final, Self

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
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._stopping.clear()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is None or thread is None:
            return
        self._stopping.set()
        server.shutdown()
        server.hang_up()
        server.server_close()
        thread.join()

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


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = False

    def __init__(self, scripted: ScriptedOpenAI) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.scripted = scripted
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()

    def hang_up(self) -> None:
        """
        End idle keep-alive connections, so that their threads can be joined.
        """
        with self._guard:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """
        Say nothing: what ends here is a client that hung up.
        """


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        """
        Answer one request.
        """
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        api = _APIS.get(self.path.partition("?")[0])
        if api is None:
            self._send(Fail(404, message=f"Invalid URL (POST {self.path})"))
            return
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            self._send(Fail(400, message="We could not parse the JSON body of your request."))
            return

        scripted = self.server.scripted
        reply, n = scripted._reply(api, body)  # noqa: SLF001 (one component in two classes, as http.server wants it)
        while isinstance(reply, Delayed):
            scripted._stopping.wait(reply.seconds)  # noqa: SLF001
            reply = reply.reply
        if isinstance(reply, Fail):
            self._send(reply)
        elif isinstance(reply, Raw):
            self._head(reply.status, {"Content-Type": reply.content_type, "Content-Length": str(len(reply.data))})
            self.wfile.write(reply.data)
        elif body.get("stream"):
            self._stream(api, body, reply, n)
        else:
            self._whole(api, body, reply, n)

    def _whole(self, api: ModuleType, body: Body, reply: Text | Calls | Failed | BrokenStream, n: int) -> None:
        if not isinstance(reply, BrokenStream):
            made: Body | Fail = api.whole(body, reply, n)
            if isinstance(made, Fail):
                self._send(made)
            else:
                self._send_json(200, made)
            return
        text = json.dumps(api.whole(body, reply.reply, n)).encode()
        self._head(200, {"Content-Type": "application/json", "Content-Length": str(len(text))})
        self.wfile.write(text[: len(text) // 2])
        self.close_connection = True

    def _stream(self, api: ModuleType, body: Body, reply: Text | Calls | Failed | BrokenStream, n: int) -> None:
        self._head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        broken = isinstance(reply, BrokenStream)
        for frame in _frames(api, body, reply, n):
            data = frame.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if broken:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _send(self, failure: Fail) -> None:
        self._send_json(failure.status, failure.body, dict(failure.headers))

    def _send_json(self, status: int, body: Body, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(body).encode()
        self._head(status, {"Content-Type": "application/json", "Content-Length": str(len(text))} | (headers or {}))
        self.wfile.write(text)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """
        Say nothing: the log is `ScriptedOpenAI.requests`.
        """


def _frames(api: ModuleType, body: Body, reply: Text | Calls | Failed | BrokenStream, n: int) -> Iterator[str]:
    if isinstance(reply, BrokenStream):
        yield from api.frames(body, reply.reply, n)[: reply.after]
    else:
        yield from api.frames(body, reply, n)
