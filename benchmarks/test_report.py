"""
What `guardrails report` costs a recorded call, beside reading it.
"""

import gzip
import json
import time

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality.holdout import main
from guardrails import Budget, Policy, Summary
from guardrails.offline.judge.files.inputs import inputs
from guardrails.offline.quality.run import count_files
from guardrails.offline.readers import Report, open_calls


SESSIONS = 50
CALLS = 40
RUNS = 7


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """
    Calls of six tools; a third of them repeat an earlier one, and one in ten fails.
    """
    path = tmp_path / "calls.jsonl"
    policy = Policy([Budget(max_calls=1_000), Summary()])
    for number in range(SESSIONS):

        def execute(tool: str, arguments: Any) -> Any:
            if arguments["n"] % 10 == 0:
                raise TimeoutError("no answer")
            return {"found": arguments["n"], "text": "x" * 200}

        with policy.session(f"s{number}", records=path) as session:
            for n in range(CALLS):
                session.call(f"tool_{n % 6}", {"n": n if n % 3 else n % 6}, execute)
    return path


def read(path: Path) -> int:
    return sum(1 for _ in open_calls(str(path), Report()))


def best(block: Callable[[], object]) -> float:
    """
    Processor time, the best of several runs.
    """
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        block()
        times.append(time.process_time() - start)
    return min(times)


def test_a_recorded_call_is_read(records: Path, measure: Any) -> None:
    assert read(records) == SESSIONS * CALLS
    measure(lambda: read(records), SESSIONS * CALLS)


def test_a_recorded_call_is_read_and_counted(records: Path, measure: Any) -> None:
    files, policy = inputs([str(records)]), Policy.load("default")

    def count() -> int:
        return count_files(policy, files).quality.calls

    assert count() == SESSIONS * CALLS
    ratio = best(count) / best(lambda: read(records))
    measure(count, SESSIONS * CALLS, note=f"{ratio:.2f} x reading alone")


def test_suggestions_are_judged_on_sessions_that_they_never_saw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = [
        {"source": "mine", "session_id": f"s{n}", "call_index": i, "tool": "look", "arguments": {}, "result": "same"}
        for n in range(200)
        for i in range(2)
    ]
    with gzip.open(tmp_path / "mine.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({**call, "is_error": False}) + "\n" for call in calls)
    main(tmp_path, ["default"], folds=2)
    _, row, *more = capsys.readouterr().out.splitlines()
    assert row.split()[:11] == ["default", "mine", "0", ">", "0", "0", ">", "200", "of", "200", "0"]
    assert "2 x look: duplicates {'rule': 'always', 'window': 1}" in row
    assert more == []


def test_without_recorded_data_there_is_nothing_to_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(tmp_path / "missing", None)
    assert "nothing to judge" in capsys.readouterr().out
