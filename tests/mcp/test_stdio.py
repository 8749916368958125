"""
The command `guardrails mcp` before a server process, and before a server over HTTP.
"""

import json
import os
import signal
import subprocess

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from guardrails import __version__
from tests.tables import table

from .far import Far
from .process import ENVIRONMENT, PROXY, SERVER, Process, tap, words
from .server import TOOLS


pytest.importorskip("mcp")
pytestmark = pytest.mark.system

Policy = Callable[[str], str]
CLOSED = "[guardrails:connection]"


def alive(group: int) -> list[str]:
    """
    The processes of a *group* that run, and are not only unburied.
    """
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, own = file.read_text().rpartition(")")[2].split()[:3]
            found += [file.parent.name] if int(own) == group and state != "Z" else []
    return found


def group_of(one: Process) -> int:
    """
    The group of the processes of the server behind a proxy, once it is ready.
    """
    return int(one.popen.stderr.readline().split()[1])


def test_it_greets_lists_calls_and_ends_with_its_client_and_passes_on_messages_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Process(*tap(*SERVER), SERVER_LOG=str(log)) as one:
        assert one.ask("initialize")["result"]["serverInfo"]["name"] == "s"
        assert len(one.ask("tools/list")["result"]["tools"]) == len(TOOLS)
        made = {"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}}
        assert one.call("add", {"a": 1, "b": 2}) == made
        assert words(one.call("add", {"a": 1})).startswith("[guardrails:validation.arguments]")
        before = len(log.read_bytes().splitlines())
        one.send(b'no JSON at all\n\xff\xfe\n[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n')
        one.ask("ping", id_=9)
        assert [json.loads(line)["id"] for line in log.read_bytes().splitlines()[before:]] == [9]
        assert one.end() == 0
        assert b"ready" in one.popen.stderr.read()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
@table("does", [("forks",), ("forks", "stubborn")])
def test_a_server_is_ended_with_all_it_started(does: tuple[str, ...]) -> None:
    with Process(*tap(*SERVER, *does)) as one:
        group = group_of(one)
        assert len(alive(group)) == 3, "the one that ends all with it, the server, and its own"
        assert one.end() == 0
        assert alive(group) == []


@table("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_server_too_also_one_that_hangs(policy: Policy, number: signal.Signals) -> None:
    with Process(*tap(*SERVER, policy=policy("tools: [{match: hang, timeout: 100ms}]"))) as one:
        assert words(one.call("hang")).startswith("[guardrails:timeout]")
        group = group_of(one)
        one.popen.send_signal(number)
        assert one.popen.wait() == 128 + number
        assert alive(group) == []


def test_what_a_client_asked_before_it_closed_is_answered_and_what_it_asked_of_a_server_that_dies() -> None:
    with Process(*tap(*SERVER)) as one:
        one.say("initialize")
        one.say("tools/call", {"name": "hang", "arguments": {"seconds": 2.5}}, 2)
        assert one.end() == 0
        assert words(json.loads(one.popen.stdout.read().splitlines()[1])["result"]) == "late"
    with Process(*tap(*SERVER)) as one:
        assert words(one.call("search", {"query": "die"})).startswith(CLOSED)
        assert one.popen.wait() == 1
        assert one.popen.stdout.read() == b""


def test_a_proxy_that_is_killed_in_mid_call_leaves_the_call_counted(policy: Policy, tmp_path: Path) -> None:
    command = tap(*SERVER, policy=policy("budget: {max_calls: 2}"), store=tmp_path / "s.db", session="s")
    log = tmp_path / "log"
    with Process(*command, SERVER_LOG=str(log)) as one:
        one.say("tools/call", {"name": "hang", "arguments": {}})
        while not log.exists() or b"hang" not in log.read_bytes():
            assert one.popen.poll() is None
    with Process(*command) as other:
        assert [bool(other.call("echo", {"n": n}).get("isError")) for n in range(2)] == [False, True]


USES = json.loads(Path(__file__).with_name("wrong_uses.json").read_text())


@table(("argv", "code", "said"), USES)
def test_a_wrong_use_is_told_and_no_server_started(tmp_path: Path, argv: list[str], code: int, said: str) -> None:
    (tmp_path / "bad.yaml").write_text("version: 1\nbudgit: {}\n")
    (tmp_path / "scoped.yaml").write_text("version: 1\nscopes: {user: {budget: {max_calls: 1}}}\n")
    given: Any = {"env": {**os.environ, **ENVIRONMENT}, "stdin": subprocess.DEVNULL, "capture_output": True}
    done = subprocess.run((*PROXY, *argv), cwd=tmp_path, text=True, check=False, **given)
    assert (done.returncode, said in done.stderr, "usage" in done.stdout) == (code, True, code == 0)
    assert not (tmp_path / "started").exists()


# A server over HTTP


def test_a_server_far_away_is_greeted_listed_and_called(far: Far) -> None:
    with Process(*tap(url=far.url, header="X-Key: ${KEY}"), KEY="k") as one:
        one.start()
        assert json.loads(words(one.call("echo", {"n": 1}, 5))) == {"n": 1}
        assert "[guardrails:validation.arguments]" in words(one.call("add", {"a": 1}))
        assert one.ask("no/such")["error"]["message"] == "a bad one"
        assert words(one.call("gone")).startswith(CLOSED)
        assert one.end() == 0
    asked = [far.seen.get_nowait() for _ in range(far.seen.qsize())]
    methods = [method for method, _ in asked if method != "GET"]
    assert methods == ["POST"] * (len(methods) - 1) + ["DELETE"]
    shown = {"x-key": "k", "user-agent": f"guardrails-mcp/{__version__}"}
    later = shown | {"mcp-session-id": "s-1", "mcp-protocol-version": "2025-06-18"}
    (_, first), *others = asked
    assert ("mcp-session-id" not in first, first | shown) == (True, first)
    assert [headers | later for _, headers in others] == [headers for _, headers in others]

    with Process(*tap(url=far.url)) as one:
        one.start()
        # A server that knows the session no longer ends the proxy, so that its client starts anew.
        assert one.ask("tools/call", {"name": "lost", "arguments": {}})["error"]["message"] == "Session terminated"
        assert one.popen.wait() == 1


def test_a_server_that_is_not_there_or_lets_nobody_in_is_told(far: Far) -> None:
    with Process(*tap(url="http://127.0.0.1:9/mcp")) as one:
        assert "cannot be reached" in one.ask("initialize")["error"]["message"]
        assert words(one.call("echo")).startswith(CLOSED)
        assert one.end() == 0
    with Process(*tap(url=far.url, header="Authorization: wrong")) as one:
        assert "error" in one.ask("tools/call", {"name": "echo"})


@table("to", ["http://127.0.0.1:{port}/mcp", "http://user:word@127.0.0.1:{port}/mcp", "//localhost:{port}/mcp"])
def test_no_key_is_carried_to_another_host(to: str, far: Far) -> None:
    with Far() as other, Process(*tap(url=far.url, header="Authorization: Bearer k")) as one:
        far.sends_to = to.format(port=other.server_port)
        assert "error" in one.ask("initialize")
        assert "error" in one.ask("tools/call", {"name": "echo"})
        assert one.end() == 0
        assert far.seen.qsize() >= 2
        assert other.seen.empty()
