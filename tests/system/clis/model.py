"""
A scripted model on loopback that speaks the wires of three CLIs: Anthropic Messages, OpenAI Responses and Gemini.

    with Model() as model:
        model.says([Calls(call("Bash", {"command": "ls"})), Text("done")])
        subprocess.run([...], env={"ANTHROPIC_BASE_URL": model.url, ...})
    model.asked[-1].results
"""

import json
import threading
import time

from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from guardrails.testing.scripted_openai import WIRES, Body, Calls, Delayed, Text

from .wires import generate, items, messages
from .wires.asked import Asked


Said = Text | Calls
Script = Callable[[Asked], "Said | Delayed"]
TITLE: Final = "ok"
"""What the model says where it has no tools: such a request is for a title or a summary."""

ANSWER: Final = "That is all I have found."
"""Its final answer."""


def as_script(script: "Script | Sequence[Said | Delayed]") -> Script:
    """
    *script* as a function; of a list, the reply of each turn of a conversation, and the last again beyond its end.
    """
    if callable(script):
        return script
    replies = list(script)
    return lambda asked: replies[min(asked.turn, len(replies) - 1)]


class Model:
    """
    The server, a context manager. Which reply comes depends on the conversation that a request carries, not on how many
    requests came before: a request sent twice and a conversation taken up again are answered alike.
    """

    def __init__(self) -> None:
        self._script = as_script([Text(TITLE)])
        self.answer = ANSWER
        """What it says where it may call none of its tools, whatever its script."""
        self._lock = threading.Lock()
        self._asked: list[Asked] = []
        self.faults: list[str] = []
        """Of requests that could not be answered, why; a test fails if there are any."""

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def says(self, script: "Script | Sequence[Said | Delayed]") -> None:
        """
        Follow *script* from now on.
        """
        self._script = as_script(script)

    @property
    def url(self) -> str:
        """
        Where it listens, without a path.
        """
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def asked(self) -> list[Asked]:
        """
        The requests so far in which the model had tools, in order of arrival.
        """
        with self._lock:
            return list(self._asked)

    def reply(self, asked: Asked) -> tuple[Said, int]:
        """
        What it says, and the number of the request.
        """
        if not asked.tools:
            return Text(TITLE), 0
        with self._lock:
            self._asked.append(asked)
            n = len(self._asked)
        said = Text(self.answer) if asked.silenced else self._script(asked)
        if isinstance(said, Delayed):
            time.sleep(said.seconds)
            assert isinstance(said.reply, Text | Calls)
            said = said.reply
        return said, n


class _Server(ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True

    def __init__(self, model: Model) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.model = model

    def handle_error(self, request: Any, client_address: Any) -> None:
        """
        Say nothing: what ends here is a client that hung up.
        """


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_HEAD(self) -> None:
        """
        Say that somebody is here.
        """
        self._head(200, "text/plain", 0)

    def do_GET(self) -> None:
        """
        Offer nothing: no lists of models, no settings.
        """
        self._json(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        """
        Answer one request.
        """
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        try:
            self._answer(path, query, json.loads(text))
        except OSError:
            raise
        except Exception as error:  # whatever a script raises must reach the test that wrote it
            self.server.model.faults.append(f"{path}: {error!r}")
            self._json(400, {"error": {"type": "invalid_request_error", "message": repr(error)}})

    def _answer(self, path: str, query: str, body: Body) -> None:
        model, stream = self.server.model, bool(body.get("stream"))
        if path == messages.PATH:
            said, n = model.reply(messages.read(body))
            self._send(stream, messages.whole, messages.frames, body, said, n)
        elif path == items.PATH:
            said, n = model.reply(items.read(body))
            self._send(stream, WIRES[items.PATH].whole, WIRES[items.PATH].frames, body, said, n)
        elif path.endswith(("enerateContent",)):
            said, n = model.reply(generate.read(body))
            self._send("alt=sse" in query, generate.whole, generate.frames, body, said, n)
        elif path == messages.COUNT:
            self._json(200, {"input_tokens": len(json.dumps(body)) // 4})
        elif path.endswith(":countTokens"):
            self._json(200, {"totalTokens": len(json.dumps(body)) // 4})
        else:
            self._json(404, {"error": {"message": "not found"}})

    def _send(
        self,
        stream: bool,
        whole: Callable[[Body, Said, int], Body],
        frames: Callable[[Body, Said, int], Iterable[str]],
        *reply: Any,
    ) -> None:
        if not stream:
            self._json(200, whole(*reply))
            return
        text = "".join(frames(*reply)).encode()
        self._head(200, "text/event-stream", len(text))
        self.wfile.write(text)

    def _json(self, status: int, body: Body) -> None:
        text = json.dumps(body).encode()
        self._head(status, "application/json", len(text))
        self.wfile.write(text)

    def _head(self, status: int, kind: str, size: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """
        Say nothing: the log is `Model.asked`.
        """
