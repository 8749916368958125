"""
`python -m benchmarks.hook` in short.
"""

import json

from pathlib import Path

import pytest

from benchmarks.hook.__main__ import CAP, main


def test_it_measures_all_ways_and_counts_what_is_let_through(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(["--rounds", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert set(found["ways"]) == {"resident warm", "resident cold", "in process"}
    assert found["ways"]["resident warm"]["cpu_over_bare_ms"] < found["ways"]["in process"]["cpu_over_bare_ms"]
    assert found["at_once"] == {"cold": [CAP], "warm": [CAP]}
