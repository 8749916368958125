"""
The web tools: against servers that are slow, lie, redirect and flood.
"""

import gzip
import ipaddress
import json
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
import time
import zlib

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrails import __version__
from guardrails.agent.builtin import Web
from guardrails.agent.builtin import web as module
from guardrails.agent.builtin.web import is_public, page_text
from tests.tables import table


pytestmark = pytest.mark.system
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
Answer = bytes | Callable[[socket.socket, threading.Event], None]


class Server(socketserver.ThreadingTCPServer):
    """
    Says the answers of *pages* by path, byte by byte; keeps what it was asked.
    """

    daemon_threads = True
    context: ssl.SSLContext | None = None

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[bytes] = []
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", 0), None)  # type: ignore[arg-type]
        self.port = int(self.server_address[1])

    def finish_request(self, request: Any, _: Any) -> None:
        if self.context is not None:
            request = self.context.wrap_socket(request, server_side=True)
        with request:
            self.asked.append(request.recv(65_536))
            answer = self.pages.get(self.asked[-1].split()[1].decode(), page(b"none", status="404 Not Found"))
            answer(request, self.closing) if callable(answer) else request.sendall(answer)

    def handle_error(self, *_: Any) -> None:
        pass

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


def page(body: bytes, *headers: str, status: str = "200 OK", kind: str = "text/plain") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def to(place: str) -> bytes:
    return page(b"", f"Location: {place}", status="302 Found")


def sends(head: bytes, piece: bytes, every: float = 0) -> Answer:
    """
    A server that says *head*, and then *piece* for ever.
    """

    def answer(connection: socket.socket, closing: threading.Event) -> None:
        connection.sendall(head)
        while not closing.wait(every):
            connection.sendall(piece)

    return answer


def _serving() -> Iterator[Server]:
    with Server() as made, ThreadPoolExecutor(1) as pool:
        pool.submit(made.serve_forever, 0.01)
        yield made
        made.closing.set()
        made.shutdown()


server, other_server = pytest.fixture(_serving, name="server"), pytest.fixture(_serving, name="other_server")


def fetch(url: str, offset: int = 0, timeout: float = 5, allow: Any = ("127.0.0.1",)) -> Any:
    return Web(timeout=timeout, allow=allow).tools["web_fetch"](url, offset)


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """
    Let names in `.example` have the *answers* in turn; the names that were asked for.
    """
    asked: list[str] = []
    system = socket.getaddrinfo

    def resolve(host: str, port: int, *more: Any, **named: Any) -> list[Any]:
        if not host.endswith(".example"):
            return system(host, port, *more, **named)
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [entry for address in found for entry in system(address, port, *more, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


# Pages


PAGES = json.loads(Path(__file__).with_name("pages.json").read_text())
"""Types, bodies in Latin-1, and the beginning of what is read; Python has charsets that are no text."""


@table("kind, body, expected", PAGES)
def test_d10_web_fetch_reads_a_page_as_text(server: Server, kind: str, body: str, expected: str | None) -> None:
    server.pages["/"] = page(body.encode("latin-1"), kind=kind)
    said = fetch(server.url("/"))
    if expected is None:
        assert said.error_type == "validation"
    else:
        assert (said.value["text"][: len(expected)], said.is_complete) == (expected, True)
    said.to_json().encode()
    assert f"User-Agent: toolcall-guardrails/{__version__}\r\n".encode() in server.asked[0]


def test_a_page_that_a_server_refuses_says_why_and_when(server: Server) -> None:
    for status, more, expected in (
        *(("429 Slow", ["Retry-After: 7"], ("rate_limit", 429, 7_000)), ("403 No", [], ("permission", 403, None))),
    ):
        server.pages["/"] = page(b"x", *more, status=status)
        said = fetch(server.url("/"))
        assert (said.error_type, said.http_status, said.retry_after_ms) == expected


def test_a_long_page_is_read_in_parts(server: Server) -> None:
    server.pages["/"] = page(text := b"".join(b"%d\n" % n for n in range(10_000)))
    pages = [fetch(server.url("/"))]
    while not pages[-1].is_complete:
        pages.append(fetch(server.url("/"), pages[-1].value["next_offset"]))
    assert "".join(said.value["text"] for said in pages).encode() == text


def test_a_page_takes_time_by_its_length_alone() -> None:
    for piece in ("<a ", "<!--", "<script", "<script>", "<p a='", "&#", "<", "a"):
        started = time.process_time()
        page_text("<a" + piece * (2_000_000 // len(piece)))
        assert time.process_time() - started < 60, piece


# Which machines may be reached


def test_an_address_is_public_if_it_and_what_it_leads_to_are() -> None:
    public = "93.184.216.34 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808"
    private = "0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.2 169.254.169.254 172.16.0.1 192.168.1.1 198.18.0.1 224.0.0.1 :: ::1"
    private += " 255.255.255.255 168.63.129.16 fe80::1 fec0::1 fc00::1 ff02::1 2001:db8::1 100::1"
    private += " ::ffff:10.0.0.1 64:ff9b::a00:1 2002:7f00:1:: 2001::1 ::7f00:1"
    both = f"{public} {private}".split()
    assert [one for one in both if is_public(ipaddress.ip_address(one))] == public.split()


def test_private_addresses_are_refused_unless_allowed(server: Server) -> None:
    server.pages["/"] = page(b"secret")
    hosts = "127.0.0.1 localhost 127.1 2130706433 0x7f000001 0 [::1] [::ffff:127.0.0.1] [::] [64:ff9b::127.0.0.1]"
    for host in hosts.split():
        assert fetch(server.url("/", host), allow=()).error_type == "permission", host
    assert server.asked == []
    for host, allow in (("127.0.0.1", ["127.0.0.0/8", "else.example"]), ("localhost", ["localhost"])):
        assert fetch(server.url("/", host), allow=allow).ok


@table("target, kind", [
    ("http://169.254.169.254/latest/meta-data", "permission"), ("http://user:pw@10.0.0.1/", "permission"),
    ("file:///etc/passwd", "validation"), ("http://[", "not_found"), ("http://a:b/", "other"),
    ("javascript:x", "other"), ("/loop", "other"), ("b?x=1", None),
])  # fmt: skip
def test_each_redirect_is_judged_again(server: Server, target: str, kind: str | None) -> None:
    server.pages |= {"/loop": to(target), "/b?x=1": page(b"here")}
    said = fetch(server.url("/loop"))
    assert said.error_type == kind
    assert kind or said.value["url"] == server.url("/b?x=1")
    for url in ("ftp://a/", "a", "", "http://", "http://a\r\nX: y/", "http://a:99999/", "http://" + "a" * 99):
        assert fetch(url).error_type in ("validation", "not_found"), url


def test_a_name_is_resolved_once_for_all_addresses(server: Server, other_server: Server, monkeypatch: Any) -> None:
    # Proxies of the environment are not asked.
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, other_server.url("/"))
    server.pages["/"] = page(b"pinned")
    asked = resolving(monkeypatch, ["127.0.0.2", "127.0.0.1"], ["127.0.0.2"])
    for expected in (None, "connection"):
        assert fetch(server.url("/", "name.example"), allow=["127.0.0.0/8"]).error_type == expected
    assert (asked, other_server.asked) == (["name.example"] * 2, [])
    assert f"Host: name.example:{server.port}".encode() in server.asked[0]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_certificate_must_be_valid_for_the_name(server: Server, tmp_path: Path, monkeypatch: Any) -> None:
    file, config = tmp_path / "both.pem", tmp_path / "openssl.cnf"
    config.write_text("[req]\ndistinguished_name = named\n[named]\n")  # the machine's own may be missing
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=name.example -addext subjectAltName=DNS:name.example"
    done = subprocess.run([*made.split(), "-config", config, "-keyout", "-"], check=True, capture_output=True)
    file.write_bytes(done.stdout)
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.context.load_cert_chain(file)
    server.pages["/"] = page(b"secure")
    resolving(monkeypatch, ["127.0.0.1"])
    untrusted = fetch(f"https://name.example:{server.port}/")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    assert fetch(f"https://name.example:{server.port}/").ok
    for said in (untrusted, fetch(f"https://other.example:{server.port}/")):
        assert (said.error_type, "its certificate is not valid" in str(said.error_message)) == ("connection", True)


# Servers that want it to hang, to fill memory, or to say their words as its own


@table("answer, expected", [
    (sends(b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 60_000 + b"\r\n"), "connection"),
    (sends(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001), "timeout"), (sends(CHUNKED, b"1\r\nx\r\n", 0.01), "timeout"),
    (sends(HEAD + b"\r\n", b"x", 0.01), "timeout"),
    # All steps share one limit.
    (lambda connection, closing: closing.wait(0.3) or connection.sendall(to("/")), "timeout"),
    # Packed blocks of nothing.
    (sends(HEAD + b"Content-Encoding: deflate\r\n\r\n\x78\x9c", b"\x00\x00\x00\xff\xff" * 10_000), "timeout"),
])  # fmt: skip
def test_what_never_ends_is_given_up_in_time(server: Server, answer: Answer, expected: str) -> None:
    server.pages["/"] = answer
    limit = 0.7 if expected == "timeout" else 60
    started = time.monotonic()
    assert fetch(server.url("/"), timeout=limit).error_type == expected
    assert time.monotonic() - started < limit + 60


@table("answer", [
    sends(HEAD + b"\r\n", b"x" * 65_536), sends(CHUNKED, b"8000\r\n" + b"x" * 0x8000 + b"\r\n"),
    sends(HEAD + b"Content-Length: 99999999999\r\n\r\n", b"x" * 50_000),
    page(gzip.compress(b"0" * 50_000_000, mtime=0), "Content-Encoding: gzip"),
    page(zlib.compress(b"0" * 50_000_000), "Content-Encoding: deflate"),
])  # fmt: skip
def test_a_flood_is_cut_however_it_is_framed_or_packed(server: Server, answer: Answer, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MAX_BODY_BYTES", 100_000)
    server.pages["/"] = answer
    said = fetch(server.url("/"), 90_000, timeout=100)
    assert (said.value["characters"], said.is_complete) == (100_000, False)


def test_the_body_of_a_redirect_is_not_read(server: Server) -> None:
    head = b"HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n"
    server.pages |= {"/": sends(head, b"x" * 65_536), "/b": page(b"here")}
    assert fetch(server.url("/"), timeout=60).value["text"] == "here"


BITS = [
    *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n", b"HTTP/1.1 999 \xff\x1b[2J\r\n", b"\r\n", b"\0", b"\x85:"),
    *(b"Transfer-Encoding: chunked\r\n", b"-1\r\n", b"5;x\r\n", b"Content-Length: 9e9\r\n", b"Location: http://[\r\n"),
    *(b"Content-Type: text/html; charset=idna\r\n", b"Content-Encoding: gzip\r\n", b"\x1f\x8b\x08", b"&#99999999999;"),
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.sampled_from(BITS), max_size=25).map(b"".join))
def test_whatever_a_server_says_gives_an_envelope(server: Server, answer: bytes) -> None:
    server.pages["/"] = answer
    said = fetch(server.url("/"), timeout=3)
    assert said.ok or str(said.error_message).isprintable()
    said.to_json().encode()


# Search


def test_d10_web_search_gives_titles_addresses_and_snippets(server: Server, other_server: Server) -> None:
    def search(answer: bytes) -> Any:
        server.pages["/s?q=two%20words&n=5"] = answer
        return Web(search=server.url("/s?q={query}&n={count}"), timeout=5).tools["web_search"]("two words")

    hits = [{"title": "T", "url": "http://a/", "content": "c", "more": 1}] * 9
    said = search(page(json.dumps({"results": hits}).encode()))
    assert said.value == [{"title": "T", "url": "http://a/", "snippet": "c"}] * 5
    assert said.total_matches == 9
    for answer in (b"<html>", b"[]", b'{"results": 1}', b"[" * 100_000):
        assert search(page(answer)).error_type == "server_error"
    # It leads nowhere else.
    assert search(to(other_server.url("/"))).error_type == "other"
    assert other_server.asked == []
    own = Web(search=lambda query, count: [{"title": query, "url": "u"}, "odd"]).tools["web_search"]("x")
    assert own.value == [{"title": "x", "url": "u", "snippet": ""}]
