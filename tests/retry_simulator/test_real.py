"""
The figures of real retries, on recordings small enough to be counted by hand.
"""

import gzip
import json

from pathlib import Path
from typing import Any

import pytest

from benchmarks.retries.real import LINEUP, Tally, cells_of, left_out, main, retries_of, tally
from guardrails.policy.feature_file import shipped_spec


def call(session: str, tool: str, arguments: Any, error: str | None = None, *, ts: float) -> dict[str, Any]:
    failed = {} if error is None else {"error_type": error}
    return {
        "source": "made",
        "session_id": session,
        "tool": tool,
        "arguments": arguments,
        "result": "no" if error else "done",
        "is_error": error is not None,
        **failed,
        "ts": ts,
        "duration_ms": 10,
    }


def work(session: str, start: float) -> list[dict[str, Any]]:
    """
    A test run that fails, fails again unrepaired, works after an edit; a search that times out and is given up; a page that
    is not there, twice.
    """
    story = [
        ("Bash", {"command": "make test"}, "exec_nonzero"),
        ("Bash", {"command": "make test"}, "exec_nonzero"),
        ("Edit", {"path": "a.py"}, None),
        ("Bash", {"command": "make test"}, None),
        ("search", {"q": session}, "timeout"),
        ("fetch", {"url": "x"}, "not_found"),
        ("fetch", {"url": "x"}, "not_found"),
    ]
    return [
        call(session, tool, arguments, error, ts=start + 2 * at) for at, (tool, arguments, error) in enumerate(story)
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("one", "two", "three"):
        lines = [line for at in range(8) for line in work(f"{name}-{at}", 1_700_000_000 + 100 * at)]
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    # Derived from the others: its lines are no calls of their own.
    (tmp_path / "errors_and_retries.jsonl.gz").write_bytes((tmp_path / "one.jsonl.gz").read_bytes())
    return tmp_path


def test_failures_and_their_retries_are_counted_by_source_and_kind(data: Path) -> None:
    sources = cells_of(data)
    assert sorted(sources) == ["one", "three", "two"]
    for cells in sources.values():
        assert tally(cells) == Tally(failures=8 * 5, retried=8 * 3, worked=8)
        assert tally(cells, transient=True) == Tally(failures=8, retried=0, worked=0)
        assert sum(row.worked for row in retries_of(cells)) == 8


def test_what_happened_in_between_tells_a_repaired_call_from_a_mere_repeat(data: Path) -> None:
    figures = left_out(shipped_spec(), cells_of(data))
    assert list(figures) == list(LINEUP)
    assert figures["regression"].log_loss < figures["rate per tool and error"].log_loss < figures["base rate"].log_loss
    assert figures["regression"].roc_auc > 0.99


def test_a_model_is_judged_on_sources_that_it_never_saw(data: Path) -> None:
    sources = cells_of(data)
    backwards = [cell._replace(s=cell.n - cell.s) for cell in sources["one"]]
    figures = left_out(shipped_spec(), {"one": backwards, "two": sources["two"]})
    assert figures["regression"].roc_auc < 0.5


def test_the_table_says_how_few_transient_failures_there_are(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(data)]) == 0
    told = capsys.readouterr().out
    assert "Only 24 of 120 failures" in told
    assert "regression without `between`" in told


def test_absent_recordings_are_told_of_and_are_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 0
    assert capsys.readouterr().err.startswith("skipped: ")
