"""
The fuzzer finds what is planted, and the language agrees with bash and dash on what it generates.
"""

import pytest

from tests.shellfuzz.fuzz import Result, fuzz, report
from tests.shellfuzz.jailed.conditions import NAMES
from tests.shellfuzz.stage import NoJailError


@pytest.fixture(scope="module", autouse=True)
def jail() -> None:
    """
    Skips these tests, and says why, where no jail can be made.
    """
    try:
        fuzz(count=0)
    except NoJailError as error:
        pytest.skip(f"the fuzzer does not start here: {error}")


def sorts(result: Result) -> set[str]:
    return {finding["sort"] for finding in result.findings}


def clean(result: Result, count: int) -> None:
    assert result.findings == [], report(result)
    assert result.counts["commands"] == count
    assert result.counts["accepted"] + result.counts["refused"] == count
    assert result.proven == len(NAMES)


def test_what_is_read_runs_as_in_bash_and_dash() -> None:
    clean(fuzz(count=150, seed=1), 150)


@pytest.mark.slow
def test_two_thousand_commands_run_as_in_bash_and_dash() -> None:
    result = fuzz(count=2_000, seed=17, jobs=2)
    clean(result, 2_000)
    assert min(result.counts["the same in bash"], result.counts["the same in dash"]) > 300
    assert len(result.refused) > 15


def test_a_reader_that_agrees_with_bash_gives_no_finding() -> None:
    texts = ("ls a.txt", "ls *.txt | cat", "nosuch", "ls;grep x\nrm -- a.txt", "ls $x")
    result = fuzz(count=len(texts), texts=texts, subject="agrees")
    clean(result, len(texts))
    assert result.counts["the same in bash"] == result.counts["the same in dash"] == 4


@pytest.mark.parametrize(
    ("fault", "text", "sort", "small"),
    [
        ("drops", "cat b.txt | head -n a.txt; ls", "differs from bash", "head -n"),
        ("adds", "ls -la b.txt a.txt | cat", "differs from bash", "ls a.txt"),
        ("codes", "ls b.txt; nosuch", "differs from bash", "nosuch"),
        ("makes", "ls", "differs from bash", ""),
        ("prints", "ls", "differs from bash", ""),
        ("variables", "ls b.txt", "differs from bash", "cat"),
        ("accepts", "ls 'a b' `cat`", "differs from bash", None),
        ("writes", "git status | cat b.txt", "left", "t"),
        ("reads", "git status | cat a.txt", "left", "ls a.txt"),
        ("raises", "ls a.txt; cat b.txt", "raised", "b"),
        ("judges", "ls a.txt; cat b.txt", "unjudged", "ls"),
        ("hangs", "ls *", "slow", "*"),
    ],
)
def test_a_planted_fault_is_found_and_made_small(fault: str, text: str, sort: str, small: str | None) -> None:
    result = fuzz(count=1, texts=(text,), subject=fault)
    assert sorts(result) == {sort}
    (finding,) = result.findings
    assert len(finding["small"]) <= len(finding["text"])
    if small is not None:
        assert len(finding["small"]) <= len(ascii(small)) + 3, finding["small"]


@pytest.mark.parametrize(("fault", "count"), [("drops", 250), ("adds", 250), ("accepts", 10), ("raises", 10)])
def test_a_planted_fault_is_found_among_generated_commands(fault: str, count: int) -> None:
    assert fuzz(count=count, subject=fault).found


def test_findings_stand_in_the_report_as_reprs() -> None:
    said = report(fuzz(count=1, texts=("ls 'a b'\n`cat x`",), subject="accepts"))
    assert "findings: 1" in said
    assert "\\n" in said or "`" in said


def test_a_seed_gives_the_same_commands_in_one_jail_and_in_two() -> None:
    one, two = (fuzz(count=60, seed=3, jobs=jobs, subject="agrees") for jobs in (1, 2))
    assert (one.counts["commands"], one.refused) == (two.counts["commands"], two.refused)
