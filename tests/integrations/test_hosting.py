"""
What adapters share: the part that an agent gets which a call of a session runs.
"""

from typing import Any

from guardrails import Budget, Policy
from guardrails.core.values.errors import StoreError
from guardrails.integrations.hosting import share_of
from guardrails.stores.memory import MemoryStore
from tests.tables import table


class Failing(MemoryStore):
    """
    A store that fails from the time it is told to.
    """

    fails = False

    def update(self, keys: Any, step: Any) -> Any:
        if self.fails:
            raise StoreError("disk I/O error")
        return super().update(keys, step)


def test_an_agent_that_a_call_runs_has_a_part_of_what_is_left_and_gives_back_the_rest() -> None:
    session = Policy([Budget(max_calls=16)]).session("s")
    child = share_of(session)
    assert child is not None
    assert child.ledger.progress["calls_left"] == 2
    child.call("search", {"n": 1}, lambda _, __: "one")
    child.close()
    assert session.ledger.progress["calls_left"] == 15


@table("amounts", [{}, {"share": 0.5}, {"max_calls": 1}])
def test_where_nothing_is_left_there_is_no_part(amounts: dict[str, Any]) -> None:
    session = Policy([Budget(max_calls=1)]).session("s")
    session.call("search", {}, lambda _, __: "one")
    assert share_of(session, **amounts) is None


def test_an_agent_too_many_has_a_part_in_which_it_makes_no_call() -> None:
    session = Policy([Budget(max_children=1, max_depth=1)]).session("s")
    first, second = share_of(session), share_of(session)
    assert first is not None
    assert second is not None
    below = share_of(first)
    assert below is not None
    ends = [child.call("search", {}, lambda _, __: "one").code for child in (first, second, below)]
    assert ends == [None, "budget.max_children", "budget.max_depth"]


def test_where_the_store_fails_there_is_no_part() -> None:
    store = Failing()
    session = Policy([Budget(max_calls=16)]).session("s", store=store)
    store.fails = True
    assert share_of(session) is None
    store.fails = False
    assert share_of(session) is not None
