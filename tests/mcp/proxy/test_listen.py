"""
The command `guardrails mcp --listen` before a server over streamable HTTP.
"""

import json
import threading

from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from guardrails.mcp.answers import BESIDE, RUN
from guardrails.mcp.proxy.ends.listen import Gate
from guardrails.mcp.proxy.options import Options
from tests.tables import table

from .server import TOOLS
from .test_remote import Server, far


pytestmark = pytest.mark.system


__all__ = ["far"]
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}


class Front:
    """
    A proxy that listens, as its clients see it.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def ask(self, message: Any, method: str = "POST", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """
        Status, headers and body of what is answered.
        """
        connection = HTTPConnection("127.0.0.1", self.gate.server_port, timeout=20)
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        body = message if isinstance(message, bytes | None) else json.dumps(message).encode()
        connection.request(method, "/mcp", body, {"Content-Type": "application/json", **said})
        response = connection.getresponse()
        found = response.status, dict(response.getheaders()), response.read()
        connection.close()
        return found

    def call(self, name: str, arguments: Any = None, id_: object = 7, meta: Any = None, **headers: str) -> Any:
        """
        The result of a call.
        """
        params = {"name": name, "arguments": arguments or {}, **({} if meta is None else {"_meta": meta})}
        status, told, body = self.ask(
            {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}, **headers
        )
        assert status == 200, body
        if told["Content-Type"].startswith("text/event-stream"):
            body = body.rpartition(b"data: ")[2]
        said = json.loads(body)
        assert said["id"] == id_
        return said["result"]


@pytest.fixture
def listen(far: Server, tmp_path: Path) -> Iterator[Callable[..., Front]]:
    made: list[tuple[Gate, threading.Thread]] = []

    def begin(policy: str | None = None, **options: Any) -> Front:
        if policy is not None:
            path = tmp_path / "policy.yaml"
            path.write_text(f"version: 1\n{policy}")
            options["policy"] = str(path)
        gate = Gate(Options(**{"listen": "0", "url": far.url, **options}), None)
        thread = threading.Thread(target=gate.serve_forever, args=(0.01,))
        thread.start()
        made.append((gate, thread))
        return Front(gate)

    yield begin
    for gate, thread in made:
        gate.shutdown()
        thread.join()
        gate.end()


Listen = Callable[..., Front]


def test_messages_pass_with_their_headers(listen: Listen, far: Server) -> None:
    one = listen()
    status, headers, body = one.ask(HELLO, Authorization="Bearer k", Origin="http://localhost:3000")
    assert status == 200
    assert headers["Mcp-Session-Id"] == "session-1"
    assert json.loads(body)["result"]["serverInfo"] == {"name": "far"}
    _, seen, sent = far.seen.get_nowait()
    assert sent == json.dumps(HELLO).encode()
    assert seen["Authorization"] == "Bearer k"
    assert seen["Host"] == f"127.0.0.1:{far.server_port}"
    assert one.ask({"jsonrpc": "2.0", "method": "notifications/x"})[0] == 202
    assert one.ask(None, "GET")[0] == 405
    assert one.ask(None, "DELETE")[0] == 200
    status, _, body = one.ask({"jsonrpc": "2.0", "id": 1, "method": "no/such"})
    assert status == 400
    assert b"a bad one" in body


def test_calls_are_guarded_and_lists_have_room(listen: Listen) -> None:
    one = listen()
    _, _, body = one.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    tools = json.loads(body)["result"]["tools"]
    assert BESIDE in tools[0]["outputSchema"]["properties"]
    assert len(tools) == len(TOOLS)
    assert "[guardrails:validation.arguments]" in one.call("add", {"a": 1}, Mcp_Session_Id="s")["content"][0]["text"]
    results = [one.call("search", {"of": ["a", "b"]}, Mcp_Session_Id="s") for _ in range(3)]
    assert [bool(result.get("isError")) for result in results] == [False, False, True]


def test_clients_that_use_the_same_ids_do_not_meet(listen: Listen) -> None:
    one = listen()
    found: list[Any] = []

    def ask(n: int) -> None:
        found.extend(json.loads(one.call("echo", {"n": n}, 1)["content"][0]["text"]) == {"n": n} for _ in range(10))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40


def test_strangers_have_nothing_in_common_and_a_run_that_is_named_is_one(listen: Listen) -> None:
    one = listen()
    assert not any(one.call("search", {"of": ["a", "b"]}).get("isError") for _ in range(5))
    results = [one.call("search", {"of": ["a", "b"]}, meta={RUN: "r"}) for _ in range(3)]
    assert results[2]["isError"]


def test_users_have_quotas_by_the_header_that_says_who_they_are(listen: Listen, tmp_path: Path) -> None:
    policy = "scopes:\n  user: {budget: {max_calls: 2}}\n  tenant: {budget: {max_calls: 3}}\n"
    headers = {"identity_header": "X-User", "tenant_header": "X-Tenant"}
    one = listen(policy, store=str(tmp_path / "s.db"), **headers)

    def refused(user: str, tenant: str, n: int) -> bool:
        return bool(one.call("echo", {"n": n}, X_User=user, X_Tenant=tenant).get("isError"))

    assert [refused("a", "t", n) for n in range(3)] == [False, False, True]
    assert [refused("b", "t", n) for n in range(2)] == [False, True]
    assert not refused("b", "u", 9)
    assert one.ask(HELLO)[0] == 401
    assert one.ask(HELLO, X_User="a")[0] == 401


@table("headers", [{"Host": "evil.example.com"}, {"Origin": "http://evil.example.com"}, {"Origin": "null"}])
def test_a_page_of_a_stranger_does_not_get_in(listen: Listen, far: Server, headers: dict[str, str]) -> None:
    one = listen()
    assert one.ask(HELLO, **headers)[0] == 403
    assert one.ask(None, "GET", **headers)[0] == 403
    assert far.seen.empty()
    assert listen(allow_host="evil.example.com").ask(HELLO, Host="evil.example.com")[0] == 200
    far.seen.get_nowait()


def test_a_call_that_outlives_its_time_is_answered(listen: Listen, far: Server) -> None:
    one = listen("tools: [{match: hang, timeout: 100ms}]\n")
    made = one.call("hang", Mcp_Session_Id="s")
    assert made["content"][0]["text"].startswith("[guardrails:timeout]")
    far.over.set()
    methods = {json.loads(body)["method"] for _, _, body in (far.seen.get(timeout=5), far.seen.get(timeout=5))}
    assert methods == {"tools/call", "notifications/cancelled"}
