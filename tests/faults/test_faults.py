"""
What the faults are made of: a proxy that does as it is told, losses that are as stated, a run that says what it leaves out.
"""

import socket
import sys
import threading

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from guardrails.core.state.state import SessionState
from tests.faults.__main__ import main
from tests.faults.grounds import GROUNDS
from tests.faults.history import NEW, Attempt, Operation
from tests.faults.invariants import LOST_NS, kept, never_over
from tests.faults.linear import Violation
from tests.faults.proxy import Proxy
from tests.faults.shop import USER_CALLS
from tests.faults.world import ROOT


@pytest.fixture
def echo() -> Iterator[int]:
    """
    The port of a server that says all again.
    """
    with socket.create_server(("127.0.0.1", 0)) as listens:

        def serve() -> None:
            while True:
                try:
                    client, _ = listens.accept()
                except OSError:
                    return
                # One that is cut may be reset.
                with client, suppress(OSError):
                    while data := client.recv(100):
                        client.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listens.getsockname()[1]
        listens.shutdown(socket.SHUT_RDWR)
        thread.join(5)


@pytest.fixture
def proxy(echo: int) -> Iterator[Proxy]:
    with closing(Proxy(echo, "seed")) as made:
        yield made


@pytest.fixture
def client(proxy: Proxy) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", proxy.port), 5) as made:
        made.sendall(b"hello")
        assert made.recv(100) == b"hello"
        yield made


def silent(client: socket.socket) -> bool:
    client.settimeout(0.1)
    try:
        client.recv(100)
    except TimeoutError:
        client.settimeout(5)
        return True
    return False


@pytest.mark.parametrize("how", ["paused", "unanswered"])
def test_what_is_held_back_arrives_later(proxy: Proxy, client: socket.socket, how: str) -> None:
    setattr(proxy, how, True)
    client.sendall(b"again")
    assert silent(client)
    setattr(proxy, how, False)
    assert client.recv(100) == b"again"


def test_a_connection_that_is_cut_is_at_its_end(proxy: Proxy, client: socket.socket) -> None:
    proxy.cut()
    assert ended(client)


def test_a_lossy_network_loses_the_answer(proxy: Proxy, client: socket.socket) -> None:
    proxy.lossy = 1.0
    client.sendall(b"again")
    assert ended(client)


def ended(client: socket.socket) -> bool:
    try:
        return client.recv(100) == b""
    except ConnectionResetError:
        return True


def step(name: str, answered: int, before: str, after: str) -> Operation:
    attempt = Attempt(before={"k": before}, after={"k": after})
    return Operation(name=name, asked_ns=0, answered_ns=answered, end="ok", attempts=[attempt], chosen=0)


def test_what_was_answered_just_before_a_loss_may_be_gone_and_is_counted() -> None:
    history = [step("a", 10, NEW, "1"), step("b", 20, "1", "2"), step("c", 30, "2", "2")]
    there, lost = kept(history, {"k": "1"}, [LOST_NS + 20])
    assert [operation.name for operation in there] == ["a"]
    assert lost == {"steps lost": 2, "ms before the loss at most": 2_000}


def test_what_was_answered_long_before_a_loss_must_be_there() -> None:
    history = [step("a", 10, NEW, "1"), step("b", 20, "1", "2")]
    for losses in ([LOST_NS + 21], [19]):
        with pytest.raises(Violation, match="a step is gone that was answered"):
            kept(history, {"k": "1"}, losses)


def ran(count: int) -> list[dict[str, Any]]:
    return [{"id": str(n), "tool": "look", "scopes": {"user": "u"}} for n in range(count)]


def test_a_call_too_many_is_found() -> None:
    never_over(ran(USER_CALLS), {})
    with pytest.raises(Violation, match=r"^over: 29 calls ran of the user `u`, who may make 28"):
        never_over(ran(USER_CALLS + 1), {})
    with pytest.raises(Violation, match=r"^over: `/user/u` has 29 calls of 28"):
        never_over([], {"/user/u": SessionState(calls=USER_CALLS + 1)})


def test_without_a_server_its_histories_are_skipped_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.stores.redis_server.PROGRAM", None)
    monkeypatch.setattr(sys, "argv", ["faults", "--store", "redis", "--minutes", "0"])
    assert main() == 0
    assert "--- redis is skipped: no redis-server or valkey-server here" in capsys.readouterr().out


def test_the_page_names_every_store_that_is_shown() -> None:
    page = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
    named = {"sqlite": "`SqliteStore`", "redis": "a Redis server"}
    assert [kind for kind in GROUNDS if named.get(kind, f"`{kind}`") not in page] == []
