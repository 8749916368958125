import os
import signal
import time

from pathlib import Path

import pytest

from guardrails.sinks import JsonLines, ReadReport, read
from tests.sinks.conftest import PATIENCE_S, numbers, python, run


pytestmark = pytest.mark.system


FORK = """
import os, sys, warnings
from guardrails.sinks import JsonLines

warnings.simplefilter("ignore")
sink = JsonLines(sys.argv[1], flush_interval_ms=3_600_000)
for n in range(10):
    sink.put({"who": "parent", "n": n}, 10)
if (child := os.fork()) == 0:
    assert sink.flush()
    assert (sink.written, sink.dropped, sink.failed) == (0, 0, 0)
    for n in range(5):
        sink.put({"who": "child", "n": n}, 10)
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
for n in range(10, 20):
    sink.put({"who": "parent", "n": n}, 10)
"""


def test_a_forked_child_writes_its_own_records_and_not_the_parents(path: Path) -> None:
    run(FORK, path)

    records = list(read(path))
    assert [record["n"] for record in records if record["who"] == "child"] == list(range(5))
    assert [record["n"] for record in records if record["who"] == "parent"] == list(range(20))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_of_multiprocessing_loses_nothing(path: Path, method: str) -> None:
    script = """
import multiprocessing, sys, warnings
from guardrails.sinks import JsonLines

warnings.simplefilter("ignore")

def child(path):
    sink = JsonLines(path, flush_interval_ms=3_600_000)
    sink.put({"who": "child"}, 10)

if __name__ == "__main__":
    sink = JsonLines(sys.argv[1], flush_interval_ms=3_600_000)
    sink.put({"who": "parent"}, 10)
    process = multiprocessing.get_context(sys.argv[2]).Process(target=child, args=sys.argv[1:2])
    process.start()
    process.join()
    sys.exit(process.exitcode)
"""
    # A spawned child imports the main module again, so that has to be a file.
    program = path.with_suffix(".py")
    program.write_text(script)
    run("import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')", program, path, method)

    assert sorted(numbers(path, "who")) == ["child", "parent"]


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("raise RuntimeError", 1),
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
        ("threading.Thread(target=later).start()", 0),
        ("atexit.register(put, range(10, 20))", 0),
    ],
    ids=["end", "exit", "exception", "interrupt", "thread", "atexit"],
)
def test_a_clean_exit_loses_nothing(path: Path, ending: str, code: int) -> None:
    script = f"""
import atexit, os, signal, sys, threading
from guardrails.sinks import JsonLines

def put(numbers):
    for n in numbers:
        sink.put({{"n": n}}, 10)

def later():
    threading.main_thread().join()
    put(range(10, 20))

sink = JsonLines(sys.argv[1], flush_interval_ms=3_600_000)
put(range(10))
{ending}
"""
    run(script, path, code=code)

    assert numbers(path) == list(range(20 if "thread" in ending or "atexit" in ending else 10))


ECHO = """
import os, sys
from guardrails.sinks import JsonLines

sink = JsonLines(sys.argv[1], flush_interval_ms=20)
for n, _ in enumerate(iter(lambda: os.read(0, 1), b"")):
    sink.put({"n": n, "text": "x" * 500}, 500)
    os.write(1, b".")
"""


def test_a_kill_takes_no_more_than_the_last_interval(path: Path) -> None:
    # The interval is 20 ms; the rest is for a machine that is busy with something else.
    most_s = 0.5
    process = python(ECHO, path)
    assert process.stdin is not None
    assert process.stdout is not None
    asked, answers = process.stdin.fileno(), process.stdout.fileno()

    def put() -> None:
        os.write(asked, b".")
        assert os.read(answers, 1) == b"."

    for _ in range(50):
        put()
    acknowledged = time.monotonic()
    while not path.exists() or path.read_bytes().count(b"\n") < 50:
        assert time.monotonic() - acknowledged < most_s
    while (safe := path.read_bytes().count(b"\n")) == 50:
        put()
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    with JsonLines(path) as sink:
        sink.put({"n": -1}, 10)

    report = ReadReport()
    kept = [record["n"] for record in read(path, report)]
    assert kept[-1] == -1
    assert kept[:-1] == list(range(len(kept) - 1))
    assert len(kept) - 1 >= safe > 50
    assert report.broken in ([], [report.lines - 1])
