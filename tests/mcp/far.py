"""
A server over HTTP that notes what it is asked.
"""

import json
import queue
import threading

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from .server import TOOLS, called, reply


class Far(ThreadingHTTPServer):
    """
    What was asked of it, in order, and where it sends its clients.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: queue.Queue[tuple[str, dict[str, str]]] = queue.Queue()
        """Methods, and headers with small names."""
        self.sends_to: str | None = None
        self.over = threading.Event()
        """It answers nobody afterwards."""
        self.free = threading.Event()
        """It hangs until then."""

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.over.set()
        self.free.set()
        self.shutdown()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Far

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        self.note()
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        members, name = {}, (said.get("params") or {}).get("name")
        if name == "hang":
            self.server.free.wait(20)
        else:
            members = reply(said, TOOLS)
        if self.server.over.is_set():
            self.close_connection = True
        elif self.server.sends_to is not None:
            self.answer(307, b"", Location=self.server.sends_to)
        elif self.headers.get("Authorization") == "wrong":
            self.answer(401, b"")
        elif name == "hang":
            self.tell(said["id"], result=called("late", {}))
        elif name == "lost":
            self.answer(404, b"")
        elif name == "gone":
            self.answer(200, b"", kind="text/event-stream")
        elif not members:
            self.answer(202, b"")
        elif "error" in members:
            self.answer(400, b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"a bad one"}}')
        else:
            self.tell(said["id"], **members)

    def do_GET(self) -> None:
        self.note()
        self.answer(405, b"")

    def do_DELETE(self) -> None:
        self.note()
        self.answer(200, b"")

    def note(self) -> None:
        headers = {name.lower(): ", ".join(self.headers.get_all(name, [])) for name in self.headers}
        self.server.seen.put((self.command, headers))

    def tell(self, id_: Any, **members: Any) -> None:
        self.answer(200, json.dumps({"jsonrpc": "2.0", "id": id_, **members}).encode())

    def answer(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        own = {"Content-Type": kind, "Mcp-Session-Id": "s-1", "Content-Length": str(len(body))}
        for name, value in {**own, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
