"""
The command `guardrails mcp --listen` before a server over HTTP, and whose a request is.
"""

import asyncio
import contextlib
import json
import queue
import signal
import socket
import threading
import time

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.tables import table


pytest.importorskip("mcp")

import httpx2
import jwt

from cryptography.hazmat.primitives.asymmetric import ec

from guardrails.mcp.calls import NOTES, RUN
from guardrails.mcp.command import main, options_of
from guardrails.mcp.proxy import listening
from tests.docs.pages import DOCS, blocks

from .far import Far
from .process import Process, tap
from .server import TOOLS


pytestmark = pytest.mark.system
ACCEPT = "application/json, text/event-stream"
STATELESS = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
WAIT_S = 150
TABLES = json.loads(Path(__file__).with_name("listen.json").read_text())
QUOTAS = "scopes:\n  user: {budget: {max_calls: 2}}\n  tenant: {budget: {max_calls: 3}}\n"


def request(method: str, params: Any = None, id_: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}


HELLO, NOTE = request("initialize"), {"jsonrpc": "2.0", "method": "notifications/x"}


def ask(port: int, message: Any, method: str = "POST", **headers: str) -> tuple[int, dict[str, str], Any]:
    """
    Status, headers and message of what is answered on *port*.
    """
    given = {"Accept": ACCEPT} | {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"http://127.0.0.1:{port}/mcp"
    made = httpx2.request(method, url, json=message, headers=given, timeout=WAIT_S, trust_env=False)
    events = [line.removeprefix("data: ") for line in made.text.splitlines() if line.startswith("data: ")]
    body = events[-1] if events else made.text
    return made.status_code, dict(made.headers), json.loads(body) if body[:1] == "{" else body


class Front:
    """
    A proxy that listens, as its clients see it.
    """

    def __init__(self, *argv: str) -> None:
        ready: queue.Queue[Any] = queue.Queue()
        options = options_of([*argv, "--listen=0", "--pins=none"])

        self.thread = threading.Thread(target=lambda: asyncio.run(listening(options, lambda *it: ready.put(it))))
        self.thread.start()
        self.server, self.port = ready.get(timeout=WAIT_S)

    def end(self) -> None:
        self.server.should_exit = True
        self.thread.join()

    def ask(self, message: Any, method: str = "POST", **headers: str) -> tuple[int, dict[str, str], Any]:
        return ask(self.port, message, method, **headers)

    def call(self, name: str, arguments: Any = None, meta: Any = None, **headers: str) -> Any:
        """
        The result of a call of a stateless client.
        """
        said = {"name": name, "arguments": arguments or {}, "_meta": {VERSION: STATELESS, **(meta or {})}}
        status, _, answer = self.ask(request("tools/call", said, 7), MCP_Protocol_Version=STATELESS, **headers)
        assert (status, answer["id"]) == (200, 7), answer
        return answer["result"]

    def refused(self, n: int, **headers: str) -> bool:
        """
        Whether the call with this number was refused.
        """
        return bool(self.call("echo", {"n": n}, **headers).get("isError"))

    def raw(self, *lines: str, body: str = "{}") -> bytes:
        """
        All that is answered to a head of *lines* and a *body*, until the connection ends or one is complete.
        """
        with socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S) as client:
            client.sendall("\r\n".join([*lines, "", body]).encode())
            return client.recv(65_536)


Listen = Callable[..., Front]


@pytest.fixture
def listen(far: Far, policy: Callable[[str], str]) -> Iterator[Listen]:
    made: list[Front] = []

    def begin(*argv: str, rules: str | None = None) -> Front:
        chosen = () if rules is None else (f"--policy={policy(rules)}",)
        made.append(Front(f"--url={far.url}", *argv, *chosen))
        return made[-1]

    yield begin
    for one in made:
        one.end()


def test_a_session_is_one_conversation_and_is_its_owners(listen: Listen, far: Far) -> None:
    one = listen()
    status, headers, hello = one.ask(HELLO, Authorization="Bearer k", Origin="http://localhost:3000")
    assert (status, hello["result"]["serverInfo"]["name"]) == (200, "s")
    assert headers["access-control-allow-origin"] == "http://localhost:3000"
    assert far.seen.get_nowait()[1]["authorization"] == "Bearer k"
    mine = {"Mcp_Session_Id": headers["mcp-session-id"], "Authorization": "Bearer k"}
    tools = one.ask(request("tools/list"), **mine)[2]["result"]["tools"]
    assert NOTES in tools[0]["outputSchema"]["properties"]
    assert len(tools) == len(TOOLS)
    call = request("tools/call", {"name": "search", "arguments": {"of": ["a", "b"]}}, 2)
    assert [one.ask(call, **mine)[2]["result"].get("isError", False) for _ in range(3)] == [False, False, True]
    assert one.ask(NOTE, **mine)[0] == 202
    for other in (
        {**mine, "Authorization": "Bearer z"},
        {**mine, "Mcp_Session_Id": "no"},
        {**mine, "Authorization": ""},
    ):
        assert one.ask(call, **other)[0] == 404
    assert [one.ask(None, "DELETE", **mine)[0], one.ask(call, **mine)[0]] == [200, 404]
    # A header of the operator stands in the place of a client's.
    listen("--header=Authorization: Bearer own", "--header=User-Agent: own").ask(HELLO, Authorization="Bearer k")
    last = [*far.seen.queue][-1][1]
    assert (last["authorization"], last["user-agent"]) == ("Bearer own", "own")


@contextlib.contextmanager
def open_calls(far: Far, posts: int, *works: Callable[[], Any]) -> Iterator[queue.Queue[Any]]:
    """
    Does *works* at once, each in a thread, until the server has got as many *posts*; the queue gets what comes of them.
    """
    answers = queue.Queue[Any]()
    with ThreadPoolExecutor() as threads:
        for work in works:
            threads.submit(work).add_done_callback(lambda one: answers.put(one.result()[2]))
        methods = iter(lambda: far.seen.get(timeout=WAIT_S)[0], None)
        for _ in range(posts):
            assert "POST" in methods
        yield answers


def test_open_calls_are_answered_when_the_server_knows_the_session_no_longer(listen: Listen, far: Far) -> None:
    one = listen()
    mine = {"Mcp_Session_Id": one.ask(HELLO)[1]["mcp-session-id"]}
    one.ask(request("tools/list"), **mine)
    hangs = [request("tools/call", {"name": "hang", "arguments": {"n": n}}, n) for n in (2, 3)]
    with open_calls(far, 4, *(partial(one.ask, hang, **mine) for hang in hangs)) as answers:
        assert one.ask(request("tools/call", {"name": "lost"}, 4), **mine)[2]["error"]
    found = {answer["id"]: answer["result"]["content"][0]["text"] for answer in answers.queue}
    assert found.keys() == {2, 3}
    assert all(words.startswith("[guardrails:connection]") for words in found.values())


def test_a_signal_ends_it_once_open_calls_are_answered_also_before_a_stream_that_has_no_end(far: Far) -> None:
    with Process(*tap(url=far.url, listen=0)) as one:
        port = int(one.popen.stderr.readline().split()[-1])
        mine = {"Mcp_Session_Id": ask(port, HELLO)[1]["mcp-session-id"]}
        hang = partial(ask, port, request("tools/call", {"name": "hang"}, 2), **mine)
        with open_calls(far, 3, hang, partial(ask, port, None, "GET", **mine)) as answers:
            one.popen.send_signal(signal.SIGTERM)
            # The stream of notifications ends at once, and the call once it is answered.
            assert answers.get(timeout=WAIT_S) == ""
            far.free.set()
            assert answers.get(timeout=WAIT_S)["result"]
        assert one.popen.wait() in (0, -signal.SIGTERM)


def test_strangers_have_nothing_in_common_and_a_run_that_is_named_is_one(listen: Listen, far: Far) -> None:
    one = listen(rules="extends: default\ntools: [{match: hang, timeout: 100ms}]\n")
    # The fifth equal call is nobody's repeat.
    assert [json.loads(one.call("echo", {"n": 1})["content"][0]["text"]) for _ in range(5)] == [{"n": 1}] * 5
    assert one.call("hang")["content"][0]["text"].startswith("[guardrails:timeout]")
    assert [one.call("search", {"of": ["a", "b"]}, meta={RUN: "r"}) for _ in range(3)][2]["isError"]


OURS = "https://tools.example.com"


@table(("headers", "status"), TABLES["origins"])
def test_names_and_origins_are_compared_whole(listen: Listen, far: Far, headers: dict[str, str], status: int) -> None:
    one = listen("--allow-host=Tools.Example.com,http://page.example.com:8080")
    before = far.seen.qsize()
    assert (one.ask(HELLO, **headers)[0], far.seen.qsize() == before) == (status, status == 403)
    before = far.seen.qsize()
    question = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "x-y"}
    may, shown, _ = one.ask(None, "OPTIONS", **headers, **question)
    assert far.seen.qsize() == before, "it is answered here"
    if status == 403 or "Origin" not in headers:
        assert may == (403 if status == 403 else 405)
    else:
        shown_to = shown["access-control-allow-origin"], "x-y" in shown["access-control-allow-headers"]
        assert (may, *shown_to) == (200, headers["Origin"], True)


@table(("lines", "status"), TABLES["heads"])
def test_a_request_that_reads_in_two_ways_is_refused(listen: Listen, far: Far, lines: list[str], status: int) -> None:
    head = ["POST /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Accept: {ACCEPT}", *lines]
    answer = listen("--identity-header=X-User").raw(*head)
    assert answer.split()[1] == str(status).encode(), answer
    assert far.seen.empty()


def test_a_request_comes_in_time_and_connections_are_limited(listen: Listen, far: Far, monkeypatch: Any) -> None:
    monkeypatch.setattr("guardrails.mcp.proxy.MAX_CONNECTIONS", 2)
    one = listen()
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", one.port)))
        assert one.ask(HELLO)[0] == 503
    monkeypatch.setattr("guardrails.mcp.proxy.REQUEST_S", 0.05)
    two = listen()
    head = ("POST /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Accept: {ACCEPT}")
    for lines in ((head[0], "Host: loc"), (*head, "Content-Length: 9"), (head[0], "Host: evil", "Content-Length: 9")):
        answer = two.raw(*lines, body="{")
        assert answer == b"" or b" 403 " in answer, "its place is free again"
    assert far.seen.empty()


def test_users_have_quotas_by_the_headers_that_say_who_they_are(listen: Listen, tmp_path: Path) -> None:
    names = ("--identity-header=X-User", "--tenant-header=X-Tenant", f"--store={tmp_path / 's.db'}")
    one = listen(*names, rules=QUOTAS)
    assert [one.refused(n, X_User="a", X_Tenant="t") for n in range(3)] == [False, False, True]
    assert [one.refused(n, X_User="b", X_Tenant="t") for n in range(2)] == [False, True]
    assert not one.refused(9, X_User="b", X_Tenant="u")
    assert [one.ask(HELLO, **said)[0] for said in ({}, {"X_User": "a"})] == [401, 401]


# Tokens, by the verifier of the page

KEY, OTHER = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
RIGHT: dict[str, Any] = {"sub": "ann", "azp": "app", "org": "acme", "iss": "https://login.example.com"}
RIGHT |= {"aud": f"{OURS}/mcp", "exp": time.time() + 86_400}


def bearer(signer: Any = KEY, kind: Any = "ES256", kid: Any = "1", **claims: Any) -> str:
    said = {name: value for name, value in {**RIGHT, **claims}.items() if value is not None}
    return f"Bearer {jwt.encode(said, signer, kind, headers={'kid': kid})}"


WRONG = [
    *(bearer().replace("Bearer", "Basic"), bearer(OTHER), bearer(None, "none"), bearer("x" * 64, "HS256")),
    *(bearer(kid="2"), bearer(exp=1), bearer(aud=OURS), bearer(iss=OURS), bearer(org={})),
    *(bearer(**{name: None}) for name in RIGHT),
]
"""No bearer, another's key, no signature, a secret that all know, a key that is not there, over, for others, of others, a tenant that is no text."""


def test_users_have_quotas_and_sessions_by_their_tokens(listen: Listen, far: Far, tmp_path: Path) -> None:
    [code] = [one.text for one in blocks(DOCS / "mcp-proxy.md", "python") if "verify_token" in one.text]
    (tmp_path / "tokens.py").write_text(code)
    public = json.loads(jwt.get_algorithm_by_name("ES256").to_jwk(KEY.public_key()))
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [{**public, "kid": "1"}]}))
    one = listen(f"--tokens={tmp_path / 'tokens.py'}", f"--store={tmp_path / 's.db'}", rules=QUOTAS)
    for status, headers, _ in (
        *(one.ask(HELLO, Authorization=shown) for shown in WRONG), one.ask(HELLO), one.ask(None, "GET"),
    ):  # fmt: skip
        assert (status, headers.get("www-authenticate")) == (401, "Bearer")
    assert far.seen.empty()
    assert [one.refused(n, Authorization=bearer()) for n in range(3)] == [False, False, True]
    assert [one.refused(n, Authorization=bearer(sub="bob")) for n in range(2)] == [False, True]
    assert not one.refused(9, Authorization=bearer(sub="bob", org="other"))
    assert not any("authorization" in headers for _, headers in far.seen.queue), "it was made for us"
    session = one.ask(HELLO, Authorization=bearer())[1]["mcp-session-id"]
    for shown, status in ((bearer(exp=time.time() + 9_999), 202), (bearer(sub="bob"), 404)):
        assert one.ask(NOTE, Mcp_Session_Id=session, Authorization=shown)[0] == status


@table("text", ["", "1 / 0"])
def test_a_file_without_a_verifier_is_told_before_anybody_is_listened_to(tmp_path: Path, capfd: Any, text: str) -> None:
    path = tmp_path / "tokens.py"
    assert main(["--url=http://127.0.0.1:9/mcp", "--listen=0", f"--tokens={path}x"]) == 2
    path.write_text(text)
    assert main(["--url=http://127.0.0.1:9/mcp", "--listen=0", f"--tokens={path}"]) == 2
    assert "tokens.py" in capfd.readouterr().err
