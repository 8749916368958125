"""
The profile of the chain runs, and says all that it is to say.
"""

from typing import Any

from benchmarks.chain_profile import main


def test_the_profile_prints_each_part_and_each_guard(capsys: Any) -> None:
    main(rounds=1)
    said = capsys.readouterr().out
    for row in (
        "fresh call",
        "refused duplicate",
        "as nested closures",
        "tenacity",
        "agentguard47",
        "signature, 100 KB",
        "sign: an id",
        "is it small enough",
        "line of the end",
        "summary",
    ):
        assert row in said
