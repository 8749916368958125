"""
Commands that only read, and those that may do more, by the rules of their programs.
"""

import shlex

from pathlib import Path

import pytest
import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.commands.programs import NAMES, prepared, program_of, reads_only
from guardrails.core.commands.programs.files import program
from guardrails.core.commands.programs.rules import Rules


HERE = Path(__file__).parent
CASES = yaml.safe_load((HERE / "cases.yaml").read_text())
GTFOBINS = yaml.safe_load((HERE / "gtfobins.yaml").read_text())


def listed(said: str) -> list[str]:
    return [text for of in CASES.values() for text in of[said]] + [
        text for texts in GTFOBINS[said].values() for text in texts
    ]


@pytest.mark.parametrize("text", listed("reads"))
def test_what_only_reads_is_known(text: str) -> None:
    assert reads_only(shlex.split(text)) is None


@pytest.mark.parametrize("text", listed("refused"))
def test_what_may_do_more_is_refused_with_a_reason(text: str) -> None:
    refused = reads_only(shlex.split(text))
    assert refused is not None
    assert refused.reason
    assert not refused.reason.endswith(".")
