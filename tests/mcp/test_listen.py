"""
The command `guardrails mcp --listen` before a server over HTTP, and whose a request is.
"""

import asyncio
import contextlib
import json
import queue
import socket
import threading
import time

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tables import table


pytest.importorskip("mcp")

import httpx2
import jwt

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from guardrails.mcp.calls import NOTES, RUN
from guardrails.mcp.command import main, options_of
from guardrails.mcp.listen import listening

from .far import Far
from .server import TOOLS


pytestmark = pytest.mark.system
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
ACCEPT = "application/json, text/event-stream"
STATELESS = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
WAIT_S = 60
QUOTAS = "scopes:\n  user: {budget: {max_calls: 2}}\n  tenant: {budget: {max_calls: 3}}\n"


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
        given = {"Accept": ACCEPT} | {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"http://127.0.0.1:{self.port}/mcp"
        made = httpx2.request(method, url, json=message, headers=given, timeout=WAIT_S, trust_env=False)
        events = [line.removeprefix("data: ") for line in made.text.splitlines() if line.startswith("data: ")]
        body = events[-1] if events else made.text
        return made.status_code, dict(made.headers), json.loads(body) if body[:1] == "{" else body

    def call(self, name: str, arguments: Any = None, meta: Any = None, **headers: str) -> Any:
        """
        The result of a call of a stateless client.
        """
        said = {"name": name, "arguments": arguments or {}, "_meta": {VERSION: STATELESS, **(meta or {})}}
        asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": said}
        status, _, answer = self.ask(asked, MCP_Protocol_Version=STATELESS, **headers)
        assert (status, answer["id"]) == (200, 7), answer
        return answer["result"]

    def refused(self, n: int, **headers: str) -> bool:
        """
        Whether the call with this number was refused.
        """
        return bool(self.call("echo", {"n": n}, **headers).get("isError"))

    def raw(self, data: bytes) -> bytes:
        """
        The first line of what is answered to *data*.
        """
        with socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S) as client:
            client.sendall(data)
            return client.makefile("rb").readline()


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
    assert (status, hello["result"]["serverInfo"]["name"]) == (200, "far")
    assert far.seen.get_nowait()[1]["authorization"] == "Bearer k"
    mine = {"Mcp_Session_Id": headers["mcp-session-id"], "Authorization": "Bearer k"}
    tools = one.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **mine)[2]["result"]["tools"]
    assert NOTES in tools[0]["outputSchema"]["properties"]
    assert len(tools) == len(TOOLS)
    call = {"name": "search", "arguments": {"of": ["a", "b"]}}
    ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    found = [one.ask(ask, **mine)[2]["result"].get("isError", False) for _ in range(3)]
    assert found == [False, False, True]
    assert one.ask({"jsonrpc": "2.0", "method": "notifications/x"}, **mine)[0] == 202
    for other in ({**mine, "Authorization": "Bearer z"}, {**mine, "Mcp_Session_Id": "no-such"}):
        assert one.ask(ask, **other)[0] == 404
    assert one.ask(ask, Mcp_Session_Id=headers["mcp-session-id"])[0] == 404
    assert one.ask(None, "DELETE", **mine)[0] == 200
    assert one.ask(ask, **mine)[0] == 404


def test_open_calls_are_answered_when_the_server_knows_the_session_no_longer(listen: Listen, far: Far) -> None:
    one, answers = listen(), queue.Queue[Any]()
    session = one.ask(HELLO)[1]["mcp-session-id"]
    one.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, Mcp_Session_Id=session)

    def call(name: str, id_: int) -> None:
        params = {"name": name, "arguments": {"n": id_}}
        asked = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}
        answers.put(one.ask(asked, Mcp_Session_Id=session)[2])

    threads = [threading.Thread(target=call, args=("hang", id_)) for id_ in (2, 3)]
    for thread in threads:
        thread.start()
    posts = iter(lambda: far.seen.get(timeout=WAIT_S)[0], None)
    for _ in range(4):
        assert "POST" in posts
    call("lost", 4)
    for thread in threads:
        thread.join()
    found = {answer["id"]: answer for answer in answers.queue}
    assert found.keys() == {2, 3, 4}
    assert all(found[id_]["result"]["content"][0]["text"].startswith("[guardrails:connection]") for id_ in (2, 3))


def test_a_header_of_the_operator_stands_in_the_place_of_a_clients(listen: Listen, far: Far) -> None:
    listen("--header=Authorization: Bearer own", "--header=User-Agent: own").ask(HELLO, Authorization="Bearer k")
    headers = far.seen.get_nowait()[1]
    assert (headers["authorization"], headers["user-agent"]) == ("Bearer own", "own")


def test_clients_that_use_the_same_ids_do_not_meet_and_a_run_that_is_named_is_one(listen: Listen, far: Far) -> None:
    one = listen(rules="extends: default\ntools: [{match: hang, timeout: 100ms}]\n")
    found: list[Any] = []

    def ask(n: int) -> None:
        found.extend(json.loads(one.call("echo", {"n": n})["content"][0]["text"]) == {"n": n} for _ in range(5))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Strangers have nothing in common: the fifth equal call is nobody's repeat.
    assert found == [True] * 20
    assert one.call("hang")["content"][0]["text"].startswith("[guardrails:timeout]")
    results = [one.call("search", {"of": ["a", "b"]}, meta={RUN: "r"}) for _ in range(3)]
    assert results[2]["isError"]


def test_users_have_quotas_by_the_headers_that_say_who_they_are(listen: Listen, tmp_path: Path) -> None:
    names = ("--identity-header=X-User", "--tenant-header=X-Tenant", f"--store={tmp_path / 's.db'}")
    one = listen(*names, rules=QUOTAS)
    assert [one.refused(n, X_User="a", X_Tenant="t") for n in range(3)] == [False, False, True]
    assert [one.refused(n, X_User="b", X_Tenant="t") for n in range(2)] == [False, True]
    assert not one.refused(9, X_User="b", X_Tenant="u")
    assert [one.ask(HELLO, **said)[0] for said in ({}, {"X_User": "a"})] == [401, 401]


OURS = "https://tools.example.com"


@table(
    ("headers", "status"),
    [
        ({"Host": "evil.example.com"}, 403),
        ({"Host": "[evil"}, 403),
        ({"Host": "Tools.example.com"}, 200),
        *(({"Origin": one}, 403) for one in ("http://evil.example.com", "null", "file://localhost", "http://[evil")),
        ({"Origin": OURS}, 200),
        ({"Origin": "http://tools.example.com"}, 403),
        ({"Origin": "http://page.example.com:8080"}, 200),
        ({"Origin": "http://page.example.com"}, 403),
    ],
)
def test_names_and_origins_are_compared_whole(listen: Listen, far: Far, headers: dict[str, str], status: int) -> None:
    one = listen("--allow-host=Tools.Example.com,http://page.example.com:8080")
    before = far.seen.qsize()
    assert one.ask(HELLO, **headers)[0] == status
    assert (far.seen.qsize() == before) is (status == 403)
    may, shown, _ = one.ask(None, "OPTIONS", **headers, Access_Control_Request_Headers="x-y")
    assert may == (204 if status == 200 else 403)
    if may == 204:
        assert shown["access-control-allow-headers"] == "x-y"
        assert shown["access-control-allow-origin"] == headers.get("Origin", "")


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
    listen: Listen, far: Far, lines: list[str], status: int
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
    for host, status in (("localhost", b" 408 "), ("evil", b" 403 ")):
        with socket.create_connection(("127.0.0.1", one.port), timeout=WAIT_S) as client:
            client.sendall(f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n{{".encode())
            assert status in client.makefile("rb").read(), "it is answered, and its place is free again"


def test_more_connections_than_a_hundred_are_turned_away(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrails.mcp.listen.MAX_CONNECTIONS", 2)
    one = listen()
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", one.port)))
        assert one.ask(HELLO)[0] == 503


# Signed tokens

US = f"{OURS}/mcp"
KEY, OTHER = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))


def pem(key: Any) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return str(key.public_key().public_bytes(serialization.Encoding.PEM, form).decode())


def token(key: Any = KEY, algorithm: str = "ES256", kid: str | None = None, **claims: Any) -> str:
    said = {"sub": "ann", "org": "acme", "aud": US, "exp": time.time() + 86_400, **claims}
    said = {name: value for name, value in said.items() if value is not None}
    return f"Bearer {jwt.encode(said, key, algorithm, headers={} if kid is None else {'kid': kid})}"


@pytest.fixture
def signed(listen: Listen, tmp_path: Path) -> Listen:
    def begin(*argv: str, keys: str = pem(KEY)) -> Front:
        (tmp_path / "keys").write_text(keys)
        given = (f"--token-key={tmp_path / 'keys'}", f"--token-audience={US}", "--tenant-claim=org")
        return listen(*given, f"--store={tmp_path / 's.db'}", *argv, rules=QUOTAS)

    return begin


def test_users_and_tenants_have_quotas_and_sessions_by_the_claims_of_their_tokens(signed: Listen, far: Far) -> None:
    one = signed()
    assert [one.refused(n, Authorization=token()) for n in range(3)] == [False, False, True]
    assert [one.refused(n, Authorization=token(sub="bob")) for n in range(2)] == [False, True]
    assert not one.refused(9, Authorization=token(sub="bob", org="other"))
    assert not any("authorization" in headers for _, headers in far.seen.queue), "it was made for us"
    session = one.ask(HELLO, Authorization=token())[1]["mcp-session-id"]
    ping = {"jsonrpc": "2.0", "method": "notifications/x"}
    for bearer, status in ((token(exp=time.time() + 9_999), 202), (token(sub="bob"), 404)):
        assert one.ask(ping, Mcp_Session_Id=session, Authorization=bearer)[0] == status


WRONG = {
    "none": None,
    "no bearer": "Basic YTpi",
    "no token": "Bearer not.a.token",
    "another's key": token(OTHER),
    "no signature": token(None, "none"),
    "a secret that is the public key": token("x" * 64, "HS256"),
    "over": token(exp=time.time() - 60),
    "without an end": token(exp=None),
    "for others": token(aud="https://other.example.com"),
    "for nobody": token(aud=None),
    "without a user": token(sub=None),
    "a tenant that is no text": token(org={"a": 1}),
    "not yet": token(nbf=time.time() + 43_200),
}
ISSUER = "https://login.example.com"


def test_who_shows_no_valid_token_is_a_stranger(signed: Listen, far: Far) -> None:
    one, issued = signed(), signed(f"--token-issuer={ISSUER}", "--header=Authorization: Bearer own")
    strangers = [(one, said) for said in WRONG.values()]
    strangers += [(issued, token()), (issued, token(iss="https://evil.example.com"))]
    for front, said in strangers:
        for message, method in ((HELLO, "POST"), (None, "GET")):
            headers = {} if said is None else {"Authorization": said}
            status, told, body = front.ask(message, method, **headers)
            assert (status, told["www-authenticate"]) == (401, "Bearer"), said
            assert body.startswith("this needs a token")
    assert far.seen.empty()
    assert issued.ask(HELLO, Authorization=token(iss=ISSUER))[0] == 200
    assert far.seen.get_nowait()[1]["authorization"] == "Bearer own"


KEYS: dict[str, Any] = {
    "ES256": OTHER,
    "RS256": rsa.generate_private_key(65537, 2048),
    "PS512": rsa.generate_private_key(65537, 2048),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def test_of_a_set_of_public_keys_of_any_kind_the_one_counts_that_the_token_names(signed: Listen) -> None:
    listed = [json.loads(jwt.get_algorithm_by_name(kind).to_jwk(key.public_key())) for kind, key in KEYS.items()]
    one = signed(keys=json.dumps({"keys": [{**key, "kid": kind} for key, kind in zip(listed, KEYS, strict=True)]}))
    right = [token(key, kind, kind) for kind, key in KEYS.items()]
    wrong = [token(OTHER, kid="ES384"), token(OTHER, kid="none"), token(OTHER), token(kid="ES256")]
    assert [one.ask(HELLO, Authorization=said)[0] for said in (*right, *wrong)] == [200] * 5 + [401] * 4


@table(
    "text",
    ["", "no key", "{}", '{"keys": []}', "-----BEGIN PUBLIC KEY-----\n"],
)
def test_keys_that_are_none_are_told_before_anybody_is_listened_to(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    argv = ["--url=http://127.0.0.1:9/mcp", "--listen=0", f"--token-key={path}", f"--token-audience={US}"]
    assert main(argv) == 2
    assert "--token-key" in capfd.readouterr().err
