"""
The command `guardrails mcp` before a real server process.
"""

import json
import os
import signal
import subprocess
import sys
import threading

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.tables import table


pytestmark = pytest.mark.system


SERVER = (sys.executable, str(Path(__file__).parent / "server.py"))
PROXY = (sys.executable, "-m", "guardrails", "mcp")
WAIT_S = 30


class Process:
    """
    A proxy before the server that does what it is asked to.
    """

    def __init__(
        self,
        options: tuple[str, ...],
        command: tuple[str, ...],
        environment: dict[str, str] | None = None,
        whole: tuple[str, ...] | None = None,
    ) -> None:
        self.popen = subprocess.Popen(
            whole or (*PROXY, *options, *(("--", *command) if command else ())),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        self._timer = threading.Timer(WAIT_S, self.popen.kill)
        self._timer.start()
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        assert self.popen.stderr is not None
        self.stdin, self.stdout, self.stderr = self.popen.stdin, self.popen.stdout, self.popen.stderr

    def say(self, method: str, params: Any = None, id_: object = 1) -> None:
        """
        Ask the server.
        """
        self.send(json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}).encode() + b"\n")

    def send(self, data: bytes) -> None:
        """
        Send *data*.
        """
        self.stdin.write(data)
        self.stdin.flush()

    def ask(self, method: str, params: Any = None, id_: object = 1) -> Any:
        """
        What comes next after a question.
        """
        self.say(method, params, id_)
        return json.loads(self.stdout.readline())

    def call(self, name: str, arguments: Any = None, id_: object = 1) -> Any:
        """
        The result of a call.
        """
        return self.ask("tools/call", {"name": name, "arguments": arguments or {}}, id_)["result"]

    def end(self) -> int:
        """
        The exit code once its input is closed.
        """
        with suppress(OSError):
            self.stdin.close()
        return self.popen.wait()

    def stop(self) -> None:
        """
        End it, whatever it does.
        """
        self._timer.cancel()
        self.popen.kill()
        self.popen.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            with suppress(OSError):
                pipe.close()


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    made: list[Process] = []

    def begin(*options: str, command: tuple[str, ...] = SERVER, **environment: str) -> Process:
        made.append(Process(options, command, environment))
        return made[-1]

    yield begin
    for one in made:
        one.stop()


def alive(process: int) -> bool:
    """
    Whether *process* runs, and is not only unburied.
    """
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_it_greets_lists_calls_and_ends_with_its_client(start: Start) -> None:
    one = start()
    assert one.ask("initialize")["result"]["serverInfo"]["name"] == "s"
    assert len(one.ask("tools/list")["result"]["tools"]) > 5
    assert one.call("add", {"a": 1, "b": 2}) == {
        "content": [{"type": "text", "text": "3"}],
        "structuredContent": {"sum": 3},
    }
    assert one.call("add", {"a": 1})["content"][0]["text"].startswith("[guardrails:validation.arguments]")
    assert one.end() == 0
    assert b"ready" in one.stderr.read()


def test_a_line_that_is_no_message_is_not_passed_on_and_ends_nothing(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    one = start(SERVER_LOG=str(log))
    one.send(b'no JSON at all\n\xff\xfe\n[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n')
    assert one.ask("ping", id_=2)["id"] == 2
    assert one.end() == 0
    assert [json.loads(line)["id"] for line in log.read_bytes().splitlines()] == [2]


def test_a_server_that_dies_is_told_for_its_open_call(start: Start) -> None:
    one = start()
    made = one.call("die", {"code": 5})
    assert made["isError"] is True
    assert made["content"][0]["text"].startswith("[guardrails:connection]")
    assert one.popen.wait() == 1
    assert one.stdout.read() == b""


def test_a_server_that_hangs_is_told_when_its_time_is_up(start: Start, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ntools: [{match: hang, timeout: 100ms}]\n")
    one = start("--policy", str(policy))
    made = one.call("hang", {"seconds": 3600})
    assert made["content"][0]["text"].startswith("[guardrails:timeout]")
    one.popen.send_signal(signal.SIGTERM)
    assert one.popen.wait() == 128 + signal.SIGTERM


def test_a_server_that_does_not_end_is_killed_with_all_it_started(start: Start, tmp_path: Path) -> None:
    code = (
        "import os,signal,sys,time;signal.signal(signal.SIGTERM,signal.SIG_IGN);child=os.fork();"
        "child and (print(child,file=sys.stderr,flush=True));time.sleep(3600)"
    )
    one = start(command=(sys.executable, "-c", code))
    grandchild = int(one.stderr.readline())
    assert one.end() == 0
    assert not alive(grandchild)


def test_what_a_client_asked_before_it_closed_is_answered(start: Start) -> None:
    one = start()
    one.say("initialize")
    one.say("tools/call", {"name": "hang", "arguments": {"seconds": 2.5}}, 2)
    one.stdin.close()
    assert json.loads(one.stdout.read().splitlines()[1])["result"]["content"][0]["text"] == "late"
    assert one.popen.wait() == 0


def test_a_file_of_requests_is_answered(tmp_path: Path) -> None:
    calls = [{"name": "echo", "arguments": {"n": n}} for n in range(3)]
    asked = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": call} for n, call in enumerate(calls)]
    path = tmp_path / "asked"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in asked))
    with path.open() as file:
        done = subprocess.run((*PROXY, "--pins=none", "--", *SERVER), stdin=file, capture_output=True, check=True)
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == [0, 1, 2]


@table("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_server_too(start: Start, number: signal.Signals) -> None:
    code = "import os,sys;print(os.getpid(),file=sys.stderr,flush=True);sys.stdin.read()"
    one = start(command=(sys.executable, "-c", code))
    server = int(one.stderr.readline())
    one.popen.send_signal(number)
    assert one.popen.wait() == 128 + number
    assert not alive(server)


@table(
    ("argv", "code", "said"),
    [
        ((), 2, "say how to start the server"),
        (("--polcy", "x", "--", "true"), 2, "unrecognized arguments: --polcy"),
        (("--policy",), 2, "--policy: expected one argument"),
        (("--store", ".", "--", "true"), 2, "cannot be opened"),
        (("--", "no-such-command"), 2, "`no-such-command`: No such file or directory"),
        (("--listen", "99999", "--url", "http://x"), 2, "`99999` is no [HOST:]PORT"),
        (("--header", "X: ${NOT_SET}", "--url", "http://x"), 2, "'NOT_SET'"),
        (("--help",), 0, ""),
    ],
)
def test_a_wrong_command_line_is_told(argv: tuple[str, ...], code: int, said: str) -> None:
    done = subprocess.run((*PROXY, *argv), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert said in done.stderr
    assert ("usage" in done.stdout) is (code == 0)


@table(
    ("policy", "said"),
    [
        ("version: 1\nbudgit: {}\n", "budgit"),
        ("version: 1\nscopes: {user: {budget: {max_calls: 1}}}\n", "--user ID"),
    ],
)
def test_under_a_policy_that_is_wrong_no_server_is_started(tmp_path: Path, policy: str, said: str) -> None:
    path, started = tmp_path / "policy.yaml", tmp_path / "started"
    path.write_text(policy)
    done = subprocess.run(
        (*PROXY, "--policy", str(path), "--", "touch", str(started)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert not started.exists()


def test_a_proxy_that_is_killed_in_mid_call_leaves_the_call_counted(start: Start, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("version: 1\nbudget: {max_calls: 2}\n")
    options = ("--policy", str(tmp_path / "policy.yaml"), "--store", str(tmp_path / "s.db"), "--session", "s")
    one = start(*options, SERVER_LOG=str(tmp_path / "log"))
    one.say("tools/call", {"name": "hang", "arguments": {}})
    while not (tmp_path / "log").exists() or b"hang" not in (tmp_path / "log").read_bytes():
        assert one.popen.poll() is None
    one.popen.kill()
    one.popen.wait()
    other = start(*options)
    assert [bool(other.call("echo", {"n": n}).get("isError")) for n in range(2)] == [False, True]
