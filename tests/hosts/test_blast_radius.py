"""
The blast radius of a stuck model: what the parent says of figures, and the figures of the hosts that are installed here.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.hosts import blast_radius, one
from tests.tables import table


def run(executions: int, ending: str = "answer", not_run: int = 0) -> dict[str, Any]:
    return {"executions": executions, "not_run": not_run, "ending": ending}


def host(name: str = "langchain", *, owes: Sequence[str] = ("executions", "cap", "answer"), **guarded: Any) -> Any:
    runs = {"stuck": run(2, not_run=4), "distinct": run(20), "honest": run(20)} | guarded
    return {"host": name, "owes": owes, "stories": {story: {"guarded": own} for story, own in runs.items()}}


def test_a_host_that_holds_what_it_owes_breaks_nothing() -> None:
    assert blast_radius.broken(host()) == []


@table(
    ("told", "said"),
    [
        (host(stuck=run(4)), "langchain: the same call ran 4 times"),
        (host(stuck=run(0)), "langchain: the same call ran 0 times"),
        (host(stuck=run(2, "ValueError")), "langchain, stuck: no final answer, but ValueError"),
        (host(distinct=run(20, "over")), "langchain, distinct: no final answer, but over"),
        (host(distinct=run(21)), "langchain: of a cap of 20, 21 calls ran"),
        (host("mcp", owes=(), stuck=run(9, "over")), "mcp: the same call ran 9 times"),
        (host(honest=run(19, not_run=1)), "langchain: of 20 honest calls 19 ran, and it ended with answer"),
    ],
)
def test_what_a_host_owes_and_does_not_hold_is_named(told: Any, said: str) -> None:
    assert blast_radius.broken(told) == [said]


@pytest.mark.system
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
