"""
`python -m benchmarks.hook` in short.
"""

import json

import pytest

from benchmarks.hook import CAP, main


pytestmark = pytest.mark.system


def test_it_measures_and_counts_what_is_let_through(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--rounds", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["hook"]["cpu_over_bare_ms"] > 0
    assert found["at_once"] == [CAP]
