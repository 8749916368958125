"""
The web tools: against servers that are slow, lie, redirect and flood.
"""

import gzip
import json
import shutil
import socket
import ssl
import subprocess
import zlib

from pathlib import Path
from typing import Any

import pytest

from guardrails import Envelope, __version__
from guardrails.agent.builtin import SearchEndpoint, Web
from guardrails.agent.builtin import web as module
from guardrails.agent.builtin.addresses import Network


pytestmark = pytest.mark.system


def fetch(url: str, offset: int = 0, timeout: float = 5, **settings: Any) -> Envelope:
    settings.setdefault("allow", ["127.0.0.1"])
    said = Web(timeout=timeout, **settings).tools["web_fetch"](url, offset)
    assert isinstance(said, Envelope)
    return said


def test_a_page_is_fetched_as_text(server: Any) -> None:
    html = b"<html><head><title>A &amp; B</title><script>x()</script></head><body><p>One<p>Two <b>bold</b></body>"
    server.pages["/"] = server.page(html, kind="text/html; charset=utf-8")
    said = fetch(server.url("/"))
    assert said.value["title"] == "A & B"
    assert said.value["text"] == "One\nTwo bold"
    assert said.is_complete


def test_a_long_page_is_read_in_parts(server: Any) -> None:
    text = "".join(f"{n}\n" for n in range(10_000))
    server.pages["/"] = server.page(text.encode())
    offset, read = 0, ""
    while True:
        said = fetch(server.url("/"), offset)
        read += said.value["text"]
        if said.is_complete:
            break
        offset = said.value["next_offset"]
    assert read == text
    assert fetch(server.url("/"), 10**6).error_type == "validation"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("404 Not Found", "not_found"),
        ("500 Oops", "server_error"),
        ("429 Slow", "rate_limit"),
        ("403 No", "permission"),
    ],
)
def test_a_status_is_an_error_of_its_kind(server: Any, status: str, kind: str) -> None:
    server.pages["/"] = server.page(b"x", "Retry-After: 7", status=status)
    said = fetch(server.url("/"))
    assert said.error_type == kind
    assert said.http_status == int(status[:3])
    assert said.retry_after_ms == 7_000


def test_private_addresses_are_refused_unless_allowed(server: Any) -> None:
    server.pages["/"] = server.page(b"secret")
    assert fetch(server.url("/"), allow=()).error_type == "permission"
    assert fetch(server.url("/", "localhost"), allow=()).error_type == "permission"
    assert server.asked == []
    assert fetch(server.url("/")).ok


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("http://169.254.169.254/latest/meta-data", "permission"),
        ("http://10.0.0.1/", "permission"),
        ("file:///etc/passwd", "validation"),
        ("http://user:pw@127.0.0.1/", "validation"),
        ("/loop", "other"),
    ],
)
def test_each_redirect_is_judged_again(server: Any, target: str, kind: str) -> None:
    server.pages["/loop"] = server.page(b"", f"Location: {target}", status="302 Found")
    assert fetch(server.url("/loop")).error_type == kind


def test_a_redirect_is_followed_and_told(server: Any) -> None:
    server.pages["/a"] = server.page(b"", "Location: b?x=1", status="301 Moved")
    server.pages["/b?x=1"] = server.page(b"here")
    said = fetch(server.url("/a"))
    assert said.value["text"] == "here"
    assert said.value["url"].endswith("/b?x=1")


def test_a_name_is_resolved_once_and_its_address_pinned(server: Any) -> None:
    server.pages["/"] = server.page(b"pinned")
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    network = Network(["127.0.0.1"], resolve=rebinding)
    said = fetch(server.url("/", "name.example"), network=network)
    assert said.value["text"] == "pinned"
    assert asked == ["name.example"]
    assert f"Host: name.example:{server.port}".encode() in server.asked[0]


def test_a_body_without_end_is_cut(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BODY_BYTES", 100_000)

    def flood(connection: socket.socket, asked: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while not server.closing.is_set():
            connection.sendall(b"x" * 65_536)

    server.pages["/"] = flood
    said = fetch(server.url("/"), 90_000)
    assert said.value["characters"] == 100_000
    assert said.is_complete is False


@pytest.mark.parametrize("packed", [gzip.compress(b"0" * 50_000_000, mtime=0), zlib.compress(b"0" * 50_000_000)])
def test_a_small_body_that_unpacks_to_a_flood_is_cut(
    server: Any, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BODY_BYTES", 100_000)
    server.pages["/"] = server.page(packed, "Content-Encoding: gzip")
    said = fetch(server.url("/"), 90_000)
    assert said.value["characters"] == 100_000
    assert said.is_complete is False


def test_an_endpoint_that_is_down_is_a_connection_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert fetch(f"http://127.0.0.1:{port}/").error_type == "connection"
    assert fetch(f"https://127.0.0.1:{port}/").error_type == "connection"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a/",
        "a",
        "",
        "http://",
        "http://a b/",
        "http://a\r\nX: y/",
        "http://a:99999/",
        "http://[::1/",
        "http://" + "a" * 5_000,
    ],
)
def test_what_is_no_url_is_told(url: str) -> None:
    assert fetch(url).error_type == "validation"


def test_binary_pages_are_no_text(server: Any) -> None:
    server.pages["/"] = server.page(b"\x89PNG", kind="image/png")
    assert fetch(server.url("/")).error_type == "validation"
    server.pages["/"] = server.page(b"a\0b")
    assert fetch(server.url("/")).error_type == "validation"
    server.pages["/"] = server.page("é".encode("latin-1"), kind="text/plain; charset=latin-1")
    assert fetch(server.url("/")).value["text"] == "é"
    server.pages["/"] = server.page(b"x", kind="text/plain; charset=klingon")
    assert fetch(server.url("/")).value["text"] == "x"


def search(server: Any, answer: Any, **settings: Any) -> Envelope:
    server.pages["/s?q=two%20words&n=5"] = server.page(
        answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    )
    endpoint = SearchEndpoint(url=server.url("/s?q={query}&n={count}"), headers={"X-Key": "k"}, **settings)
    said = Web(search=endpoint, timeout=5).tools["web_search"]("two words")
    assert isinstance(said, Envelope)
    return said


def test_a_search_gives_titles_addresses_and_snippets(server: Any) -> None:
    hits = [{"title": "T", "url": "http://a/", "content": "c", "more": 1}] * 9
    said = search(server, {"results": hits})
    assert said.value == [{"title": "T", "url": "http://a/", "snippet": "c"}] * 5
    assert said.total_matches == 9
    assert b"X-Key: k" in server.asked[0]
    assert f"User-Agent: toolcall-guardrails/{__version__}\r\n".encode() in server.asked[0]


def test_a_key_is_not_sent_to_another_host(server: Any, other_server: Any) -> None:
    other_server.pages["/"] = server.page(b'{"results": []}')
    server.pages["/s?q=two%20words&n=5"] = server.page(b"", f"Location: {other_server.url('/')}", status="302 Found")
    endpoint = SearchEndpoint(url=server.url("/s?q={query}&n={count}"), headers={"X-Key": "k"})
    assert Web(search=endpoint, timeout=5).tools["web_search"]("two words").value == []
    assert b"X-Key" not in other_server.asked[0]


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


@pytest.mark.parametrize(
    ("host", "trusted", "expected"),
    [("name.example", True, None), ("name.example", False, "connection"), ("other.example", True, "connection")],
)
def test_a_certificate_must_be_valid_for_the_name(
    server: Any, certificate: Path, host: str, trusted: bool, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.secure_by(context)
    server.pages["/"] = server.page(b"secure")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    network = Network(["127.0.0.1"], resolve=lambda *_: ["127.0.0.1"])
    said = fetch(f"https://{host}:{server.port}/", network=network)
    assert said.error_type == expected
    assert said.ok is (expected is None)
    if expected:
        assert "certificate is not valid" in str(said.error_message)


def test_a_redirect_to_an_address_without_encryption_is_refused(
    server: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.secure_by(context)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    server.pages["/"] = server.page(b"", "Location: http://name.example/", status="302 Found")
    network = Network(["127.0.0.1"], resolve=lambda *_: ["127.0.0.1"])
    assert fetch(f"https://name.example:{server.port}/", network=network).error_type == "permission"
