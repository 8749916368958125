"""
Records that anyone can make, to try training on.
"""

from pathlib import Path

import pytest

from benchmarks.retries.recorded import main
from guardrails.offline.learning.extract import extract
from guardrails.offline.learning.learn import learn
from guardrails.policy.feature_file import shipped_spec


def test_a_command_makes_records_that_a_model_can_be_trained_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "records.jsonl"
    assert main([str(log), "--sessions", "80", "--days", "2", "--model", str(tmp_path / "retry.json")]) == 0
    told = capsys.readouterr().out
    found = extract([log], tmp_path / "cells")
    failures = sum(cell.n + cell.unlabelled for cell in found.cells)
    assert f"in 80 sessions, {failures:,.0f} failed" in told
    assert sum(cell.logged for cell in found.cells) == failures
    assert sum(cell.skewed for cell in found.cells) == 0
    assert learn(shipped_spec(), found.cells).better
