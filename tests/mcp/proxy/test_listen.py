"""
The command `guardrails mcp --listen` before a server over streamable HTTP.
"""

import asyncio
import contextlib
import json
import queue
import socket
import threading

from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.tables import table


pytest.importorskip("mcp")

from guardrails.mcp.command import options_of
from guardrails.mcp.listen import listening
from guardrails.mcp.wire import BESIDE, RUN

from .server import TOOLS
from .test_remote import Server, far


pytestmark = pytest.mark.system


__all__ = ["far"]
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
ACCEPT = "application/json, text/event-stream"
STATELESS = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
WAIT_S = 30


class Front:
    """
    A proxy that listens, as its clients see it.
    """

    def __init__(self, *argv: str) -> None:
        ready: queue.Queue[Any] = queue.Queue()
        options = options_of([*argv, "--listen=0", "--pins=none"])

        async def whole() -> None:
            await listening(options, lambda *it: ready.put(it))

        self.thread = threading.Thread(target=lambda: asyncio.run(whole()))
        self.thread.start()
        self.server, self.port = ready.get(timeout=WAIT_S)

    def end(self) -> None:
        self.server.should_exit = True
        self.thread.join()

    def ask(self, message: Any, method: str = "POST", **headers: str) -> tuple[int, dict[str, str], Any]:
        """
        Status, headers and message of what is answered.
        """
        connection = HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        given = {"Content-Type": "application/json", "Accept": ACCEPT}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, "/mcp", None if message is None else json.dumps(message).encode(), given)
        response = connection.getresponse()
        found, body = {name.lower(): value for name, value in response.getheaders()}, response.read()
        connection.close()
        events = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: ")]
        body = events[-1] if events else body
        return response.status, found, json.loads(body) if body[:1] == b"{" else body.decode()

    def call(self, name: str, arguments: Any = None, meta: Any = None, **headers: str) -> Any:
        """
        The result of a call of a stateless client.
        """
        said = {"name": name, "arguments": arguments or {}, "_meta": {VERSION: STATELESS, **(meta or {})}}
        asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": said}
        status, _, answer = self.ask(asked, MCP_Protocol_Version=STATELESS, **headers)
        assert (status, answer["id"]) == (200, 7), answer
        return answer["result"]

    def raw(self, data: bytes) -> bytes:
        """
        The first line of what is answered to *data*.
        """
        with socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S) as client:
            client.sendall(data)
            return client.makefile("rb").readline()


Listen = Callable[..., Front]


@pytest.fixture
def listen(far: Server, tmp_path: Path) -> Iterator[Listen]:
    made: list[Front] = []

    def begin(*argv: str, policy: str | None = None) -> Front:
        if policy is not None:
            path = tmp_path / "policy.yaml"
            path.write_text(f"version: 1\n{policy}")
            argv = (*argv, f"--policy={path}")
        made.append(Front(f"--url={far.url}", *argv))
        return made[-1]

    yield begin
    for one in made:
        one.end()


def test_a_session_is_one_conversation_and_is_its_owners(listen: Listen, far: Server) -> None:
    one = listen()
    status, headers, hello = one.ask(HELLO, Authorization="Bearer k", Origin="http://localhost:3000")
    assert (status, hello["result"]["serverInfo"]) == (200, {"name": "far"})
    assert far.seen.get_nowait()[1]["authorization"] == "Bearer k"
    mine = {"Mcp_Session_Id": headers["mcp-session-id"], "Authorization": "Bearer k"}
    _, _, listed = one.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **mine)
    tools = listed["result"]["tools"]
    assert BESIDE in tools[0]["outputSchema"]["properties"]
    assert len(tools) == len(TOOLS)
    ask = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "search", "arguments": {"of": ["a", "b"]}},
    }
    found = [one.ask(ask, **mine)[2]["result"].get("isError", False) for _ in range(3)]
    assert found == [False, False, True]
    assert one.ask({"jsonrpc": "2.0", "method": "notifications/x"}, **mine)[0] == 202
    for other in ({"Authorization": "Bearer z"}, {"Mcp_Session_Id": "no-such"}):
        assert one.ask(ask, **{**mine, **other})[0] == 404
    assert one.ask(ask, Mcp_Session_Id=headers["mcp-session-id"])[0] == 404
    assert one.ask(None, "DELETE", **mine)[0] == 200
    assert one.ask(ask, **mine)[0] == 404


def test_clients_that_use_the_same_ids_do_not_meet(listen: Listen) -> None:
    one = listen()
    found: list[Any] = []

    def ask(n: int) -> None:
        found.extend(json.loads(one.call("echo", {"n": n})["content"][0]["text"]) == {"n": n} for _ in range(5))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20


def test_strangers_have_nothing_in_common_and_a_run_that_is_named_is_one(listen: Listen) -> None:
    one = listen()
    assert not any(one.call("search", {"of": ["a", "b"]}).get("isError") for _ in range(5))
    results = [one.call("search", {"of": ["a", "b"]}, meta={RUN: "r"}) for _ in range(3)]
    assert results[2]["isError"]


def test_users_have_quotas_by_the_header_that_says_who_they_are(listen: Listen, tmp_path: Path) -> None:
    policy = "scopes:\n  user: {budget: {max_calls: 2}}\n  tenant: {budget: {max_calls: 3}}\n"
    names = ("--identity-header=X-User", "--tenant-header=X-Tenant", f"--store={tmp_path / 's.db'}")
    one = listen(*names, policy=policy)

    def refused(user: str, tenant: str, n: int) -> bool:
        return bool(one.call("echo", {"n": n}, X_User=user, X_Tenant=tenant).get("isError"))

    assert [refused("a", "t", n) for n in range(3)] == [False, False, True]
    assert [refused("b", "t", n) for n in range(2)] == [False, True]
    assert not refused("b", "u", 9)
    assert one.ask(HELLO)[0] == 401
    assert one.ask(HELLO, X_User="a")[0] == 401


@table(
    "headers",
    [
        {"Host": "evil.example.com"},
        *({"Origin": one} for one in ("http://evil.example.com", "null", "file://localhost")),
    ],
)
def test_a_page_of_a_stranger_does_not_get_in(listen: Listen, far: Server, headers: dict[str, str]) -> None:
    one = listen()
    assert one.ask(HELLO, **headers)[0] == 403
    assert one.ask(None, "GET", **headers)[0] == 403
    assert far.seen.empty()


def test_names_and_origins_that_are_allowed_are_compared_whole(listen: Listen) -> None:
    one = listen("--allow-host=tools.example.com,http://page.example.com:8080")
    assert one.ask(HELLO, Host="tools.example.com")[0] == 200
    asked = (
        "https://tools.example.com",
        "http://tools.example.com",
        "http://page.example.com:8080",
        "http://page.example.com",
    )
    assert [one.ask(HELLO, Origin=origin)[0] for origin in asked] == [200, 403, 200, 403]
    status, headers, _ = one.ask(
        None, "OPTIONS", Origin="https://tools.example.com", Access_Control_Request_Headers="x-y"
    )
    assert (status, headers["access-control-allow-headers"]) == (204, "x-y")
    assert headers["access-control-allow-origin"] == "https://tools.example.com"


@table(
    ("lines", "status"),
    [
        (["Host: evil.example.com", "Content-Length: 2"], 400),
        (["Origin: http://localhost", "Origin: http://evil.example.com", "Content-Length: 2"], 400),
        (["Authorization: Bearer a", "Authorization: Bearer b", "Content-Length: 2"], 400),
        (["X-User: a", "X-User: b", "Content-Length: 2"], 400),
        (["Content-Length: 2", "Content-Length: 3"], 400),
        (["Content-Length: -2"], 400),
        (["Content-Length: 0x2"], 400),
        (["Content-Length: 2", "Transfer-Encoding: chunked"], 400),
        (["Transfer-Encoding: gzip, chunked"], 400),
        (["X-User: a", "Content-Length: 99999999"], 413),
        (["X-User: a", "Content-Length: 2"], 400),
        (["Content-Length: 2"], 401),
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(
    listen: Listen, far: Server, lines: list[str], status: int
) -> None:
    head = ["POST /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Accept: {ACCEPT}", *lines]
    answer = listen("--identity-header=X-User").raw("\r\n".join([*head, "", "{}"]).encode())
    assert answer.split()[1] == str(status).encode(), answer
    assert far.seen.empty()


def test_a_head_and_a_body_have_to_come_in_time(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrails.mcp.listen.HEAD_S", 0.05)
    monkeypatch.setattr("guardrails.mcp.listen.BODY_S", 0.05)
    one = listen()
    assert one.raw(b"POST /mcp HTTP/1.1\r\nHost: loc") == b""
    assert b" 408 " in one.raw(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")


def test_more_connections_than_a_hundred_are_turned_away(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrails.mcp.listen.MAX_CONNECTIONS", 2)
    one = listen()
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", one.port)))
        assert one.ask(HELLO)[0] == 503


def test_a_call_that_outlives_its_time_is_answered(listen: Listen, far: Server) -> None:
    one = listen(policy="tools: [{match: hang, timeout: 100ms}]\n")
    assert one.call("hang")["content"][0]["text"].startswith("[guardrails:timeout]")
    far.over.set()
