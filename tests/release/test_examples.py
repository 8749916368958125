"""
The programs in `examples/` do what their page says.
"""

import ast

from pathlib import Path

import pytest

from .examples import FOLDER, PRINTED, PROGRAMS, printed


NEEDS = {"agent_with_a_budget": "openai", "train_a_week": "duckdb"}
SLOW = {"train_a_week"}
IN_ITS_HOST = "langchain_agent"
"""Run by `tests/hosts/test_langchain_example.py`, where its host is installed."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in PROGRAMS if name != IN_ITS_HOST],
)
def test_a_program_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    assert printed(name, tmp_path) == PRINTED[name]


def test_there_are_six_and_the_page_tells_of_each() -> None:
    assert len(PROGRAMS) == 6
    assert set(PRINTED) == set(PROGRAMS)
    page = (FOLDER / "README.md").read_text()
    assert [name for name in PROGRAMS if f"| [{name}.py]({name}.py) | " not in page] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_short_and_says_what_it_is(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 60
    assert len((ast.get_docstring(ast.parse(text)) or "").splitlines()[0].split()) <= 25
