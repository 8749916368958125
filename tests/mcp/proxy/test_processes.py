"""
What happens to processes: proxies that share a session, are killed, get a signal, or have a server that does not start.
"""

import json
import os
import signal
import threading
import time

from pathlib import Path

import pytest

from tests.mcp.proxy.lines import ROUGH, Lines, request, tap, words
from tests.mcp.proxy.test_hard_calls import CAPPED, FORMS, LOOSE, denied, file


pytestmark = pytest.mark.slow  # a start of two processes each


def test_two_proxies_of_one_session_share_one_budget_exactly(tmp_path: Path) -> None:
    given = {"policy": file(tmp_path, CAPPED % 5), "store": tmp_path / "s.db", "session": "shared"}
    with Lines(*tap(*ROUGH, **given)) as one, Lines(*tap(*ROUGH, **given)) as other:
        both = (one.start(), other.start())
        for lines in both:
            lines.send(*(FORMS["plain"] % (n, n) for n in range(8)))
        found = [reply["result"] for lines in both for reply in lines.replies(*range(8)).values()]
    ran = [one for one in found if not denied(one)]
    assert len(ran) == 5


def test_a_proxy_that_is_killed_in_mid_call_leaves_the_call_counted_and_the_store_sound(tmp_path: Path) -> None:
    given = {"policy": file(tmp_path, CAPPED % 3), "store": tmp_path / "s.db", "session": "killed"}
    with Lines(*tap(*ROUGH, **given), ROUGH_LOG=str(tmp_path / "seen")) as lines:
        lines.start()
        assert not denied(lines.call("count"))
        lines.send(request("tools/call", {"name": "slow", "arguments": {"seconds": 5}}, id="open"))
        while b"slow" not in (tmp_path / "seen").read_bytes():
            time.sleep(0.02)
        lines.process.kill()
        lines.process.wait(10)
    with Lines(*tap(*ROUGH, **given)) as lines:
        lines.start()
        assert [denied(lines.call("count", n=n)) for n in range(3)] == [False, True, True]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_proxy_and_its_server(sent: signal.Signals, tmp_path: Path) -> None:
    with Lines(*tap(*ROUGH, policy=file(tmp_path, LOOSE)), ROUGH_PID=str(tmp_path / "pid")) as lines:
        lines.start()
        lines.send(request("tools/call", {"name": "hang"}, id="open"))
        server = int((tmp_path / "pid").read_text())
        lines.process.send_signal(sent)
        lines.process.wait(15)
        end = time.monotonic() + 5
        while alive(server) and time.monotonic() < end:
            time.sleep(0.05)
        assert not alive(server)
    assert b"guardrails/mcp" not in b"".join(lines.errors)  # The server's own traceback is its own.


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("command", [("no-such-program-anywhere",), ("/",), ("",)])
def test_a_server_that_cannot_be_started_is_told_on_stderr(command: tuple[str, ...]) -> None:
    with Lines(*tap(*command)) as lines:
        with pytest.raises(EOFError):
            lines.next()
        code = lines.close()
        told = b"".join(lines.errors)
    assert code
    assert b"Traceback" not in told
    assert told.strip()


def test_a_server_that_ends_at_once_ends_the_proxy_with_its_code() -> None:
    with Lines(*tap("sh", "-c", "exit 7")) as lines:
        with pytest.raises(EOFError):
            lines.next()
        assert lines.close() == 7


def test_an_open_call_is_answered_after_the_client_has_closed_its_side(tmp_path: Path) -> None:
    """
    Shells pipe a few lines in and read what comes: the answers must not be lost.
    """
    with Lines(*tap(*ROUGH, policy=file(tmp_path, LOOSE))) as lines:
        lines.start()
        lines.send(request("tools/call", {"name": "slow", "arguments": {"seconds": 0.3}}, id="open"))
        assert lines.process.stdin
        lines.process.stdin.close()
        assert words(json.loads(lines.reply("open"))["result"]) == "at last"


def test_a_client_that_does_not_read_does_not_stop_what_it_writes(tmp_path: Path) -> None:
    """
    Ten megabytes of answers wait while the client still writes: neither side may hang.
    """
    with Lines(*tap(*ROUGH, policy=file(tmp_path, LOOSE))) as lines:
        lines.start()
        sender = threading.Thread(
            target=lines.send,
            args=[
                request("tools/call", {"name": "echo", "arguments": {"x": "y" * 9_000, "n": n}}, id=n)
                for n in range(1_000)
            ],
        )
        sender.start()
        sender.join(30)
        assert not sender.is_alive()
        assert len(lines.replies(*range(1_000))) == 1_000


def test_calls_of_a_server_that_reads_nothing_any_more_are_answered_at_their_deadlines(tmp_path: Path) -> None:
    policy = file(tmp_path, LOOSE + "tools:\n  - {match: [echo], timeout: 1s}\n")
    with Lines(*tap(*ROUGH, policy=policy)) as lines:
        lines.start()
        assert words(lines.call("stop_reading")) == "deaf now"
        small = [request("tools/call", {"name": "echo", "arguments": {"n": n}}, id=n) for n in range(3)]
        lines.send(*small)
        # More than a pipe holds: whoever writes this waits.
        big = request("tools/call", {"name": "echo", "arguments": {"x": "y" * 200_000}}, id=3)
        sender = threading.Thread(target=lines.send, args=[big], daemon=True)
        sender.start()
        found = lines.replies(*range(4))
        assert all(reply["result"]["isError"] for reply in found.values())
        lines.process.terminate()
        lines.process.wait(10)
        sender.join(10)
