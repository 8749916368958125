"""
A judgement of more than memory holds: one large file (in the long form a gigabyte), and more open sessions than are kept.
"""

import json
import subprocess
import sys

from pathlib import Path

import pytest

from guardrails.offline.judge.files.spill import OPEN


pytestmark = pytest.mark.slow

SCRIPT = """
import json, resource, sys
from guardrails import Policy
from guardrails.offline.judge.files.inputs import inputs
from guardrails.offline.judge.files.run import Work, judge_files
policy = Policy.load("default")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
(judgement,) = judge_files(Work([policy], inputs([sys.argv[1]]), limit=int(sys.argv[2])))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
total = judgement.total
print(json.dumps([total.calls, total.sessions, sum(total.denied.values()), grown >> 10, judgement.notices]))
"""


def judged(path: Path, limit: int = OPEN) -> tuple[int, int, int, int, list[str]]:
    """
    Calls, sessions, denials, MB that the process grew by, notices. At most *limit* sessions are kept open.
    """
    command = [sys.executable, "-c", SCRIPT, str(path), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    calls, sessions, denied, grown, notices = json.loads(done.stdout)
    return calls, sessions, denied, grown, notices


def line(session: int, n: int, result: str) -> bytes:
    call = {"session_id": f"s{session}", "tool": "Read", "arguments": {"n": n % 3}, "result": result}
    return json.dumps({**call, "ts": 1.8e9 + n / 250, "is_error": False}).encode() + b"\n"


def test_one_large_file_is_judged_in_bounded_memory(tmp_path: Path, long: bool) -> None:
    path, calls, size = tmp_path / "large.jsonl", 0, 1 << (30 if long else 28)
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(b"".join(line(session, calls, "x" * 4_000) for session in range(250)))
            calls += 250
    found = judged(path)
    assert found[:2] == (calls, 250)
    assert found[2] > 0.9 * calls, "all but the first two of each three equal calls"
    assert found[3] < 100
    path.unlink()


def test_more_sessions_than_are_kept_are_put_out_of_memory_and_that_is_said(tmp_path: Path, long: bool) -> None:
    path, limit, rounds = tmp_path / "many.jsonl", OPEN if long else OPEN // 10, 3
    sessions = limit + limit // 10 * 3
    with path.open("wb") as file:
        for n in range(rounds):
            file.writelines(line(session, 3 * n, "same") for session in range(sessions))
    calls, found, denied, grown, notices = judged(path, limit)
    assert (calls, found) == (rounds * sessions, sessions)
    assert denied == sessions, "the third equal call of each, whether it was kept or not"
    assert grown < 1_000
    assert any("sessions were put out of memory while others went on" in notice for notice in notices)
    path.unlink()
