"""
The web tools: against servers that are slow, lie, redirect and flood.
"""

import gzip
import ipaddress
import json
import shutil
import socket
import ssl
import subprocess
import time
import zlib

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrails import Envelope, __version__
from guardrails.agent.builtin import Web
from guardrails.agent.builtin import web as module
from guardrails.agent.builtin.web import is_public, page_text
from tests.tables import table


pytestmark = pytest.mark.system
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
BITS = [
    *(b"HTTP/1.1 200 OK", b"HTTP/1.1 302 Found", b"HTTP/1.1 100 Continue", b"HTTP/1.1 999 \xff\x1b[2J", b"HTTP/0.9"),
    *(b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\0", b"\x85", b" ", b":", b"Transfer-Encoding: chunked", b"-1\r\n", b"0\r\n"),
    *(b"ffffffffffffffffff\r\n", b"5;x\r\n", b"Content-Length: -5", b"Content-Length: 9e9", b"Content-Length: 5"),
    *(b"Location: http://[", b"Location: //[::1", b"Location: http:///", b"Location: \xff", b"Location: http://a:b/"),
    *(b"Content-Type: text/html; charset=idna", b'Content-Type: ;;;=""', b"Content-Encoding: gzip", b"\x1f\x8b\x08"),
    *(b"Content-Type: text/plain; charset=utf-16", b"\xff\xfe\x00\xd8", b"<a ", b"&#99999999999;", b"Retry-After: \xb2"),
]  # fmt: skip


def fetch(url: str, offset: int = 0, timeout: float = 5, allow: Any = ("127.0.0.1",)) -> Envelope:
    said = Web(timeout=timeout, allow=allow).tools["web_fetch"](url, offset)
    assert isinstance(said, Envelope)
    return said


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """
    Let every name have the *answers* in turn; the names that were asked for.
    """
    asked: list[str] = []
    system = socket.getaddrinfo

    def resolve(host: str, port: int, *more: Any, **named: Any) -> list[Any]:
        if not host.endswith(".example"):
            return system(host, port, *more, **named)
        asked.append(host)
        return system(answers[min(len(asked), len(answers)) - 1], port, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


def test_d10_web_fetch_reads_a_page_as_text(server: Any) -> None:
    html = b"<html><head><title>A &amp; B</title><script>x()</script></head><body><p>One<p>Two <b>bold</b></body>"
    server.pages["/"] = server.page(html, kind="text/html; charset=utf-8")
    said = fetch(server.url("/"))
    assert (said.value["text"], said.is_complete) == ("A & B\n\nOne\nTwo bold", True)
    assert f"User-Agent: toolcall-guardrails/{__version__}\r\n".encode() in server.asked[0]


@table(
    "source, text",
    [
        ("<style>p{}</style>a<!-- <p>x</p> -->b<SCRIPT>1 < 2</SCRIPT >c", "abc"),
        ("<head><title>t</title><body>x", "t\n\nx"),
        ("a<br>b<div>c</div><span>d</span>e", "a\nb\nc\nde"),
        ("1 < 2 &amp; 3 &#9999999; <a href='x'>l</a> <", "1 < 2 & 3 \ufffd l <"),
        ("<script>never ends <p>x", ""),
    ],
)
def test_html_is_read_as_lines_of_text(source: str, text: str) -> None:
    assert page_text(source) == text


@pytest.mark.parametrize("piece", ["<a ", "<!--", "<script", "<script>", "<p a='", "&#", "<", "<title>", "a"])
def test_a_page_takes_time_by_its_length_alone(piece: str) -> None:
    started = time.process_time()
    page_text("<a" + piece * (2_000_000 // len(piece)))
    assert time.process_time() - started < 5


def test_a_long_page_is_read_in_parts(server: Any) -> None:
    text = "".join(f"{n}\n" for n in range(10_000))
    server.pages["/"] = server.page(text.encode())
    offset, read = 0, ""
    while not (said := fetch(server.url("/"), offset)).is_complete:
        read, offset = read + said.value["text"], said.value["next_offset"]
    assert read + said.value["text"] == text
    assert fetch(server.url("/"), 10**6).error_type == "validation"


@table(
    "status, kind",
    [("404 No", "not_found"), ("500 Oops", "server_error"), ("429 Slow", "rate_limit"), ("403 No", "permission")],
)
def test_a_status_is_an_error_of_its_kind(server: Any, status: str, kind: str) -> None:
    server.pages["/"] = server.page(b"x", "Retry-After: 7", status=status)
    said = fetch(server.url("/"))
    assert (said.error_type, said.http_status, said.retry_after_ms) == (kind, int(status[:3]), 7_000)


# Which machines may be reached


@table(
    "address, public",
    [
        *((address, True) for address in ("93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")),
        *((address, False) for address in ("0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.2", "169.254.169.254")),
        *((address, False) for address in ("172.16.0.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "255.255.255.255")),
        *((address, False) for address in ("168.63.129.16", "::", "::1", "fe80::1", "fec0::1", "fc00::1", "ff02::1")),
        *(
            (address, False)
            for address in ("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::", "2001::1", "::7f00:1")
        ),
        *((address, False) for address in ("2001:db8::1", "100::1")),
    ],
)
def test_an_address_is_public_if_it_and_what_it_leads_to_are(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public, address


def test_private_addresses_are_refused_unless_allowed(server: Any) -> None:
    server.pages["/"] = server.page(b"secret")
    for host in (
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0",
    ):
        assert fetch(server.url("/", host), allow=()).error_type == "permission", host
    for host in ("[::1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[::]", "[fec0::1]"):
        assert fetch(server.url("/", host), allow=()).error_type == "permission", host
    assert server.asked == []
    assert fetch(server.url("/")).ok
    assert fetch(server.url("/"), allow=["127.0.0.0/8", "else.example"]).ok
    assert fetch(server.url("/", "localhost"), allow=["localhost"]).ok


@table(
    "target, kind",
    [
        ("http://169.254.169.254/latest/meta-data", "permission"),
        ("http://10.0.0.1/", "permission"),
        ("file:///etc/passwd", "validation"),
        ("http://user:pw@127.0.0.1/", "validation"),
        ("http://[", "connection"),
        ("http://a:b/", "other"),
        ("javascript:x", "other"),
        ("/" + "x" * 9_000, "validation"),
        ("/loop", "other"),
    ],
)
def test_each_redirect_is_judged_again(server: Any, target: str, kind: str) -> None:
    server.pages["/loop"] = server.page(b"", f"Location: {target}", status="302 Found")
    assert fetch(server.url("/loop")).error_type in (kind, "not_found"), target


def test_a_redirect_is_followed_and_told(server: Any) -> None:
    server.pages["/a"] = server.page(b"", "Location: b?x=1", status="301 Moved")
    server.pages["/b?x=1"] = server.page(b"here")
    said = fetch(server.url("/a"))
    assert (said.value["text"], said.value["url"]) == ("here", server.url("/b?x=1"))


def test_a_name_is_resolved_once_and_its_address_pinned(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server.pages["/"] = server.page(b"pinned")
    asked = resolving(monkeypatch, "127.0.0.1", "169.254.169.254")
    assert fetch(server.url("/", "name.example")).value["text"] == "pinned"
    assert asked == ["name.example"]
    assert f"Host: name.example:{server.port}".encode() in server.asked[0]


def test_an_address_that_takes_no_connection_is_passed_over(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server.pages["/"] = server.page(b"there")
    system = socket.getaddrinfo
    both = [
        *system("127.0.0.2", server.port, type=socket.SOCK_STREAM),
        *system("127.0.0.1", server.port, type=socket.SOCK_STREAM),
    ]
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *more, **named: both if host == "two.example" else system(host, *more, **named),
    )
    assert fetch(server.url("/", "two.example"), allow=["two.example"]).value["text"] == "there"
    both.pop()
    assert fetch(server.url("/", "two.example"), allow=["two.example"]).error_type == "connection"


def test_proxies_of_the_environment_are_not_asked(
    server: Any, other_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, other_server.url("/"))
    server.pages["/"] = server.page(b"direct")
    assert fetch(server.url("/")).value["text"] == "direct"
    assert other_server.asked == []


@table(
    "url",
    ["ftp://a/", "a", "", "http://", "http://a\r\nX: y/", "http://a:99999/", "http://[::1/", "http://" + "a" * 5_000],
)
def test_a_text_that_is_no_url_is_told(url: str) -> None:
    assert fetch(url).error_type in ("validation", "not_found"), url


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """
    Key and certificate of `name.example`, signed by itself.
    """
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    file, config = tmp_path / "both.pem", tmp_path / "openssl.cnf"
    config.write_text("[req]\ndistinguished_name = named\n[named]\n")  # the machine's own may be missing
    made = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=name.example"]
    made += ["-config", str(config), "-addext", "subjectAltName=DNS:name.example"]
    made += ["-keyout", str(file), "-out", str(tmp_path / "certificate.pem")]
    subprocess.run(made, check=True, capture_output=True)
    with file.open("a") as both:
        both.write((tmp_path / "certificate.pem").read_text())
    return file


def test_a_certificate_must_be_valid_for_the_name_and_encryption_is_kept(
    server: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.secure_by(context)
    server.pages["/"] = server.page(b"secure")
    server.pages["/plain"] = server.page(b"", "Location: http://name.example/", status="302 Found")
    resolving(monkeypatch, "127.0.0.1")
    untrusted = fetch(f"https://name.example:{server.port}/")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert fetch(f"https://name.example:{server.port}/").ok
    for said in (untrusted, fetch(f"https://other.example:{server.port}/")):
        assert said.error_type == "connection"
        assert "certificate is not valid" in str(said.error_message)
    assert fetch(f"https://name.example:{server.port}/plain").error_type == "permission"


# Servers that want it to hang, to fill memory, or to say their words as its own


def sends(head: bytes, piece: bytes, every: float = 0) -> Callable[[Any], Callable[[socket.socket, bytes], None]]:
    """
    A server that says *head*, and then *piece* for ever.
    """

    def answer(server: Any) -> Callable[[socket.socket, bytes], None]:
        def say(connection: socket.socket, asked: bytes) -> None:
            connection.sendall(head)
            while not server.closing.wait(every):
                connection.sendall(piece)

        return say

    return answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (sends(b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 60_000 + b"\r\n"), "connection"),
        (sends(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001), "timeout"),
        (sends(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 0.01), "timeout"),
        (sends(HEAD + b"\r\n", b"x", 0.01), "timeout"),
        # Packed blocks of nothing.
        (sends(HEAD + b"Content-Encoding: deflate\r\n\r\n\x78\x9c", b"\x00\x00\x00\xff\xff" * 10_000), "timeout"),
    ],
)
def test_what_never_ends_is_given_up_in_time(server: Any, answer: Any, expected: str) -> None:
    server.pages["/"] = answer(server)
    limit = 0.7 if expected == "timeout" else 20
    started = time.monotonic()
    assert fetch(server.url("/"), timeout=limit).error_type == expected
    assert time.monotonic() - started < limit + 5


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"\r\n", b"x" * 65_536),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"8000\r\n" + b"x" * 0x8000 + b"\r\n"),
        (b"Content-Length: 99999999999\r\n\r\n", b"x" * 50_000),
    ],
)
def test_a_flood_is_cut_however_it_is_framed(
    server: Any, head: bytes, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BODY_BYTES", 300_000)
    server.pages["/"] = sends(HEAD + head, piece)(server)
    said = fetch(server.url("/"), timeout=20)
    assert said.ok
    assert said.is_complete is False
    assert said.value["characters"] <= 300_000


@pytest.mark.parametrize("kind", ["gzip", "deflate"])
def test_a_small_body_that_unpacks_to_a_flood_is_cut(
    server: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BODY_BYTES", 100_000)
    packed = {"gzip": gzip.compress, "deflate": zlib.compress}[kind](b"0" * 50_000_000)
    server.pages["/"] = server.page(packed, f"Content-Encoding: {kind}")
    said = fetch(server.url("/"), 90_000)
    assert (said.value["characters"], said.is_complete) == (100_000, False)


def test_an_endpoint_that_is_down_is_a_connection_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert fetch(f"http://127.0.0.1:{port}/").error_type == "connection"


def test_binary_pages_are_no_text_and_any_charset_gives_some(server: Any) -> None:
    server.pages["/"] = server.page(b"\x89PNG", kind="image/png")
    assert fetch(server.url("/")).error_type == "validation"
    server.pages["/"] = server.page(b"a\0b")
    assert fetch(server.url("/")).error_type == "validation"
    server.pages["/"] = server.page("é".encode("latin-1"), kind="text/plain; charset=latin-1")
    assert fetch(server.url("/")).value["text"] == "é"
    server.pages["/"] = server.page('<meta charset="sjis">日'.encode("sjis"), kind="text/html")
    assert fetch(server.url("/")).value["text"] == "日"
    for charset in (
        "klingon",
        "hex",
        "rot13",
        "zlib",
        "idna",
        "punycode",
        "undefined",
        "unicode_escape",
        "mbcs",
        "\x1b",
        "",
    ):
        server.pages["/"] = server.page(b"text \xff\xed\xa0\x80 \\ud800 xn--", kind=f"text/plain; charset={charset}")
        said = fetch(server.url("/"))
        assert said.ok, charset
        said.value["text"].encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.sampled_from(BITS), max_size=25).map(b"".join))
def test_whatever_a_server_says_gives_an_envelope(server: Any, answer: bytes) -> None:
    server.pages["/"] = answer
    said = fetch(server.url("/"), timeout=3)
    assert said.ok or str(said.error_message).isprintable()
    json.dumps([said.value, said.error_message], ensure_ascii=False).encode()


# Search


def search(server: Any, answer: bytes) -> Envelope:
    server.pages["/s?q=two%20words&n=5"] = server.page(answer)
    said = Web(search=server.url("/s?q={query}&n={count}"), timeout=5).tools["web_search"]("two words")
    assert isinstance(said, Envelope)
    return said


def test_d10_web_search_gives_titles_addresses_and_snippets(server: Any) -> None:
    hits = [{"title": "T", "url": "http://a/", "content": "c", "more": 1}] * 9
    said = search(server, json.dumps({"results": hits}).encode())
    assert said.value == [{"title": "T", "url": "http://a/", "snippet": "c"}] * 5
    assert said.total_matches == 9
    own = Web(search=lambda query, count: [{"title": query, "url": "u"}, "odd"]).tools["web_search"]("x")
    assert own.value == [{"title": "x", "url": "u", "snippet": ""}]


@table("answer", [b"<html>", b"[]", b'{"results": 1}', b"[" * 100_000])
def test_a_service_that_lists_nothing_is_a_server_error(server: Any, answer: bytes) -> None:
    assert search(server, answer).error_type == "server_error"


def test_a_search_service_leads_nowhere_else(server: Any, other_server: Any) -> None:
    server.pages["/s"] = server.page(b"", f"Location: {other_server.url('/')}", status="302 Found")
    assert Web(search=server.url("/s"), timeout=5).tools["web_search"]("x").error_type == "other"
    assert other_server.asked == []
