"""
The kit that adapters share: the part of a budget that an agent gets which a call of a session runs.
"""

from typing import Any

from guardrails import Budget, Policy
from guardrails.integrations.hosting import open_share
from tests.tables import table


def test_an_agent_that_a_call_runs_has_a_part_of_what_is_left_and_gives_back_the_rest() -> None:
    session = Policy([Budget(max_calls=16)]).session("s")
    child, end = open_share(session)
    assert child.ledger.progress["calls_left"] == 2
    child.call("search", {"n": 1}, lambda _, __: "one")
    end()
    assert session.ledger.progress["calls_left"] == 15


@table("amounts", [{}, {"share": 0.5}, {"max_calls": 1}])
def test_where_nothing_is_left_there_is_no_part(amounts: dict[str, Any]) -> None:
    session = Policy([Budget(max_calls=1)]).session("s")
    session.call("search", {}, lambda _, __: "one")
    assert open_share(session, **amounts)[0] is session


def test_an_agent_too_many_has_a_part_in_which_it_makes_no_call() -> None:
    session = Policy([Budget(max_children=1, max_depth=1)]).session("s")
    first, second = (open_share(session)[0] for _ in range(2))
    below, _ = open_share(first)
    ends = [child.call("search", {}, lambda _, __: "one").code for child in (first, second, below)]
    assert ends == [None, "budget.max_children", "budget.max_children"]
