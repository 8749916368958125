"""
Limits that are not within reach.
"""

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget
from guardrails.core.guards.base import Facts
from guardrails.core.state.admissions import admit
from guardrails.core.state.state import SessionState
from guardrails.core.state.totals import touch
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import ToolCall
from tests.tables import table


small = st.integers(0, 6)
limits = st.none() | small
budgets = st.builds(
    Budget,
    max_calls=limits,
    max_turns=limits,
    max_tokens=limits,
    max_cost_usd=st.none() | small.map(lambda micro: micro / 1e6),
    max_elapsed=st.none() | st.integers(1, 6).map(lambda ms: ms / 1000),
    final_answer_reserve_usd=small.map(lambda micro: micro / 1e6),
    on_unpriced=st.sampled_from(["deny", "warn"]),
)
states = st.builds(
    SessionState,
    started_ms=st.just(0),
    calls=small,
    turns=small,
    tokens=small,
    held_tokens=small,
    cost=small,
    held_cost=small,
    turn_admitted=st.integers(0, 1),
    limits=st.sampled_from([{}, {"max_calls": 1}]),
    reserved=st.sampled_from([{}, {"kid": {"max_calls": 3}}]),
    meters=st.sampled_from([{}, {"growth.tokens": -1}, {"budget.unpriced:m": -1}]),
)


@given(budgets, states, small, small)
def test_where_limits_are_far_a_call_is_neither_refused_by_them_nor_uses_one_up(
    budget: Budget, state: SessionState, now: int, cost: int
) -> None:
    far = budget.far()
    touch(state, now)
    call = ToolCall("t", {}, "c", b"", 1)
    if not far(state, now, cost):
        return
    assert budget.check(call, state, Facts(now, Tool(name="t"), cost)) is None
    admit(state, call, cost=cost, window=20)
    assert budget.spent(state, now) is None
    assert budget.turn_spent(state, now) is None
    state.held_cost -= cost
    state.cost += cost
    assert budget.spent(state, now) is None


@table(("calls", "expected"), [(0, True), (2, True), (3, False), (4, False)])
def test_the_last_call_is_not_far_from_its_limit(calls: int, expected: bool) -> None:
    budget = Budget(max_calls=4)
    far = budget.far()
    assert far(SessionState(started_ms=0, calls=calls), 0, 0) is expected
