"""
The command `guardrails mcp --url` before a server over streamable HTTP.
"""

import json
import queue
import threading

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from guardrails import __version__
from tests.tables import table

from .server import TOOLS, text
from .test_stdio import Start, start


pytestmark = pytest.mark.system


__all__ = ["start"]


class Handler(BaseHTTPRequestHandler):
    """
    Answers as JSON or as a stream, by what the tool is called.
    """

    protocol_version = "HTTP/1.1"
    server: "Server"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.put(("POST", dict(self.headers), body))
        if self.path == "/moved":
            self.send_response(307)
            self.send_header("Location", "/mcp")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.server.sends_to is not None:
            self.send_response(self.server.sends_by)
            self.send_header("Location", self.server.sends_to)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.headers.get("Authorization") == "wrong":
            self.plain(401, b"")
            return
        said = json.loads(body)
        method, id_ = said.get("method"), said.get("id")
        if method is None or id_ is None:
            self.plain(202, b"")
        elif method == "initialize":
            self.whole(id_, {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "far"}})
        elif method == "tools/list":
            self.whole(id_, {"tools": TOOLS})
        elif method == "tools/call":
            self.called(id_, said["params"])
        else:
            self.plain(400, b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"a bad one"}}')

    def called(self, id_: Any, params: Any) -> None:
        """
        Answer a call.
        """
        answer = {"jsonrpc": "2.0", "id": id_, "result": text(json.dumps(params["arguments"]))}
        if params["name"] == "stream":
            asks = b'event: message\r\ndata: {"jsonrpc": "2.0", "method":\r\ndata:  "ping", "id": 77}\r\n\r\n: still there\n\n'
            self.stream(asks + f"id: 1\ndata: {json.dumps(answer)}\n\n".encode())
        elif params["name"] == "broken":
            self.server.later = f"id: 9\ndata: {json.dumps(answer)}\n\n".encode()
            self.stream(b"id: 8\nretry: 10\ndata:\n\n")
        elif params["name"] == "hang":
            self.server.over.wait(20)
        elif params["name"] == "gone":
            self.stream(b"")
        else:
            self.plain(200, json.dumps(answer, indent=2).encode())

    def do_GET(self) -> None:
        self.server.seen.put(("GET", dict(self.headers), b""))
        if "last-event-id" in self.headers:
            self.stream(self.server.later)
        else:
            self.plain(405, b"")

    def do_DELETE(self) -> None:
        self.server.seen.put(("DELETE", dict(self.headers), b""))
        self.plain(200, b"")

    def whole(self, id_: Any, result: Any) -> None:
        """
        Answer a request with *result*.
        """
        self.plain(200, json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode())

    def plain(self, status: int, body: bytes) -> None:
        """
        Answer with *body*, which is JSON.
        """
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Mcp-Session-Id", "session-1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, body: bytes) -> None:
        """
        Answer with a stream, which ends after *body*.
        """
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True


class Server(ThreadingHTTPServer):
    """
    What was asked of it, in order.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: queue.Queue[tuple[str, dict[str, str], bytes]] = queue.Queue()
        self.later = b""
        self.sends_to: str | None = None
        """Where all of its clients are sent."""
        self.sends_by = 307
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"


@pytest.fixture
def far() -> Iterator[Server]:
    yield from served()


@pytest.fixture
def other() -> Iterator[Server]:
    yield from served()


def served() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_far_away_is_greeted_listed_and_called(start: Start, far: Server) -> None:
    one = start("--url", far.url, "--header", "X-Key: ${KEY}", command=(), KEY="k")
    assert one.ask("initialize")["result"]["serverInfo"] == {"name": "far"}
    one.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    assert len(one.ask("tools/list")["result"]["tools"]) == len(TOOLS)
    assert json.loads(one.call("echo", {"n": 1}, 5)["content"][0]["text"]) == {"n": 1}
    assert "[guardrails:validation.arguments]" in one.call("add", {"a": 1})["content"][0]["text"]
    assert one.end() == 0
    asked = [far.seen.get_nowait() for _ in range(far.seen.qsize())]
    assert [method for method, _, _ in asked if method != "GET"] == ["POST", "POST", "POST", "POST", "DELETE"]
    assert all(headers["X-Key"] == "k" for _, headers, _ in asked)
    assert {headers["User-Agent"] for _, headers, _ in asked} == {f"guardrails-mcp/{__version__}"}
    assert "mcp-session-id" not in asked[0][1]
    assert {headers["mcp-session-id"] for _, headers, _ in asked[1:]} == {"session-1"}
    assert {headers["mcp-protocol-version"] for _, headers, _ in asked[1:]} == {"2025-06-18"}


def test_a_stream_that_breaks_off_is_taken_up_where_it_was(start: Start, far: Server) -> None:
    one = start("--url", far.url, command=())
    assert one.call("broken", {"n": 2})["content"][0]["text"] == '{"n": 2}'
    [last] = [headers["last-event-id"] for method, headers, _ in list(far.seen.queue) if method == "GET"]
    assert last == "8"


def test_a_call_whose_stream_ends_is_told(start: Start, far: Server) -> None:
    one = start("--url", far.url, command=())
    made = one.call("gone")
    assert made["isError"] is True
    assert made["content"][0]["text"].startswith("[guardrails:connection]")


def test_what_the_server_refuses_is_told(start: Start, far: Server) -> None:
    one = start("--url", far.url, command=())
    assert one.ask("no/such")["error"]["message"] == "a bad one"
    other = start("--url", far.url, "--header", "Authorization: wrong", command=())
    assert "error" in other.ask("tools/call", {"name": "echo"})


def test_a_server_that_is_not_there_is_told(start: Start) -> None:
    one = start("--url", "http://127.0.0.1:9/mcp", command=())
    assert "cannot be reached" in one.ask("initialize")["error"]["message"]
    assert one.call("echo")["content"][0]["text"].startswith("[guardrails:connection]")
    assert one.end() == 0


@table("by", [303, 307])
@table("to", ["http://127.0.0.1:{port}/mcp", "http://user:word@127.0.0.1:{port}/mcp", "//localhost:{port}/mcp"])
def test_no_key_is_carried_to_another_host(by: int, to: str, start: Start, far: Server, other: Server) -> None:
    far.sends_to, far.sends_by = to.format(port=other.server_port), by
    one = start("--url", far.url, "--header", "Authorization: Bearer k", "--header", "X-Key: k", command=())
    assert "error" in one.ask("initialize")
    assert "error" in one.ask("tools/call", {"name": "echo"})
    assert one.end() == 0
    assert far.seen.qsize() >= 2
    assert other.seen.empty()


def test_the_client_of_the_sdk_carries_no_key_to_another_host_either(far: Server, other: Server) -> None:
    pytest.importorskip("mcp")
    import asyncio

    from guardrails.mcp import McpServer, McpTools

    far.sends_to = other.url
    headers = {"Authorization": "Bearer k", "X-Key": "k"}

    async def connect() -> dict[str, str]:
        async with McpTools([McpServer(name="far", url=far.url, headers=headers, connect_timeout=5)]) as tools:
            return tools.problems

    assert list(asyncio.run(connect())) == ["far"]
    assert not far.seen.empty()
    assert other.seen.empty()


def test_the_client_of_the_sdk_reaches_a_server_of_the_sdk() -> None:
    pytest.importorskip("mcp")
    import asyncio
    import socket
    import sys

    import uvicorn

    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.server import MCPServer

    server = MCPServer("far")

    @server.tool()
    def look_up(a: int, b: int) -> int:
        """
        Add.
        """
        return a + b

    async def run() -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            serving = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error", lifespan="on"))
            task = asyncio.create_task(serving.serve([listener]))
            argv = ["-m", "guardrails", "mcp", "--url", f"http://127.0.0.1:{port}/mcp"]
            async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=argv))) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["look_up"]
                results = [await client.call_tool("look_up", {"a": 40, "b": 2}) for _ in range(4)]
            serving.should_exit = True
            await task
        assert results[0].structured_content == {"result": 42}
        assert results[3].is_error

    asyncio.run(run())
