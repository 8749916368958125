"""
The blast radius of a stuck model: what the parent says of figures, and the figures of the hosts that are installed here.
"""

import json

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from benchmarks.hosts import blast_radius, one
from benchmarks.hosts.blast_radius import svg, tables


def run(executions: int, ending: str = "answer", *, not_run: int = 0, requests: int = 7) -> dict[str, Any]:
    return {
        "executions": executions,
        "not_run": not_run,
        "requests": requests,
        "tokens": 1_234_567,
        "ending": ending,
        "seconds": 1.5,
    }


def host(name: str = "langchain", *, owes: Sequence[str] = ("executions", "cap", "answer"), **stories: Any) -> Any:
    told = {
        "stuck": {"bare": run(4_999, "GraphRecursionError"), "guarded": run(2, not_run=4)},
        "distinct": {"bare": run(500, "over", requests=501), "guarded": run(20)},
        "honest": {"bare": run(20), "guarded": run(20)},
    }
    for story, own in stories.items():
        told[story] = {**told[story], **own}
    return {"host": name, "version": "1.0", "owes": list(owes), "stories": told}


@pytest.fixture
def environments(tmp_path: Path) -> Path:
    return tmp_path / "environments"


def installed(environments: Path, name: str, *says: Any, code: int = 0) -> None:
    """
    An environment whose python says one thing to `stories`, and the other to `overhead`.
    """
    python = environments / name / "bin" / "python"
    python.parent.mkdir(parents=True)
    lines = [f"echo noise; echo '{json.dumps(one)}'" for one in says] or ["echo it is out of order >&2"] * 2
    python.write_text(f'#!/bin/sh\nif [ "$4" = stories ]; then {lines[0]}; else {lines[-1]}; fi\nexit {code}\n')
    python.chmod(0o755)


COST = {"bare_us": 2_000, "added_us": 500, "ratio": 0.25, "rounds": 1}


def test_a_host_that_holds_what_it_owes_breaks_nothing() -> None:
    assert blast_radius.broken(host()) == []


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (host(stuck={"guarded": run(4)}), "langchain: the same call ran 4 times"),
        (host(stuck={"guarded": run(0)}), "langchain: the same call ran 0 times"),
        (host(stuck={"guarded": run(2, "ValueError")}), "langchain, stuck: no final answer, but ValueError"),
        (host(distinct={"guarded": run(20, "over")}), "langchain, distinct: no final answer, but over"),
        (host(distinct={"guarded": run(21)}), "langchain: of a cap of 20, 21 calls ran"),
        (host("mcp", owes=(), stuck={"guarded": run(9, "over")}), "mcp: the same call ran 9 times"),
        (
            host(honest={"guarded": run(19, not_run=1)}),
            "langchain: of 20 honest calls 19 ran, and it ended with answer",
        ),
    ],
)
def test_what_a_host_owes_and_does_not_hold_is_named(told: Any, said: str) -> None:
    assert blast_radius.broken(told) == [said]


def test_a_host_without_a_model_owes_no_final_answer() -> None:
    over = {"guarded": run(2, "over", not_run=298)}
    assert blast_radius.broken(host("mcp", owes=("executions", "cap"), stuck=over)) == []
    assert blast_radius.broken(host("late", owes=(), stuck={"guarded": run(9, "over")})) == []


def test_the_table_says_what_was_cut_short() -> None:
    row = tables([host()]).splitlines()[2]
    assert "| 4,999 | 2 |" in row
    assert "| `GraphRecursionError` | an answer |" in row
    cut = tables([host(stuck={"bare": run(300, "over", requests=301)})]).splitlines()[2]
    assert "| over 300 | 2 | over 300 | 7 | over 1.2 M | 1.2 M | nothing: it goes on |" in cut


def test_the_chart_has_words_for_all_that_it_draws() -> None:
    drawn = ET.fromstring(svg([host(), host("a<b", stuck={"guarded": run(0)})]))  # noqa: S314  our own text
    words = [element.text for element in drawn.iter() if element.tag.endswith("text")]
    assert {"langchain", "a<b", "2", "4,999, GraphRecursionError", "10,000"} <= set(words)


def test_hosts_that_are_not_installed_are_skipped_and_named(
    environments: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(environments, "langchain", host(), COST)
    file, drawn = tmp_path / "out.json", tmp_path / "out.svg"
    options = ["--environments", str(environments), "--json", str(file), "--svg", str(drawn)]
    assert blast_radius.main("langchain", "pydantic-ai", *options) == 0
    said = capsys.readouterr()
    assert "| langchain | over 500 | 20 | an answer | 20 | 20 | 2.0 ms | 0.50 ms | 25% |" in said.out
    assert "pydantic_ai: skipped, not installed: python3 dev.py hosts pydantic_ai" in said.err
    assert json.loads(file.read_text())[0]["overhead"] == COST
    assert drawn.read_text().startswith("<svg")


def test_a_host_that_fails_or_breaks_what_it_owes_is_no_success(
    environments: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(environments, "langchain", host(stuck={"guarded": run(5)}), COST)
    installed(environments, "pydantic_ai", code=1)
    assert blast_radius.main("langchain", "pydantic_ai", "--environments", str(environments)) == 1
    said = capsys.readouterr().err
    assert "pydantic_ai: it is out of order" in said
    assert "langchain: the same call ran 5 times" in said


def test_without_any_host_there_is_nothing_to_say(environments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed(environments, "langchain", code=one.NOT_INSTALLED)
    assert blast_radius.main("langchain", "--environments", str(environments)) == 2
    assert "no host is installed" in capsys.readouterr().err


def test_the_page_keeps_what_stands_around_the_tables() -> None:
    text = f"before\n{blast_radius.BEGIN}old\n{blast_radius.END}after\n"
    assert blast_radius.page(text, "new\n") == f"before\n{blast_radius.BEGIN}new\n{blast_radius.END}after\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # what a host warns of is a matter of its own tests
@pytest.mark.parametrize("name", blast_radius.hosts())
def test_a_host_that_is_installed_here_holds_what_it_owes(name: str) -> None:
    driver = one.driver_of(name)
    if driver is None:
        pytest.skip(f"{name} is not installed")
    told = one.stories(name, driver, calls=60, seconds=60)
    assert blast_radius.broken(told) == []
    assert told["stories"]["stuck"]["bare"]["executions"] > blast_radius.SAME
    assert one.overhead(driver, rounds=1)["bare_us"] > 0
