"""
Models that repeat refused calls.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Denials, Duplicates, Loops, Policy, Retryable, ToolFilter
from guardrails.core.guards.base import Event, Facts
from guardrails.core.guards.denials import REMEMBERED
from guardrails.core.packing import pack, unpack
from guardrails.core.state import SessionState, end_turn
from tests.core.guards.calls import make, ok
from tests.tables import table


def test_what_cannot_be_signed_is_no_repeat(clock: Any) -> None:
    session, ends = make(clock, ToolFilter(deny=("no",)), Denials()), []
    for _ in range(10):
        session.begin_turn(calls=1)
        session.call("no", {"n": object()}, ok)
        ends.append(session.exhausted)
    assert ends == [None] * 9 + ["denials.max_turns_in_a_row"]


@given(st.lists(st.integers(0, 40), max_size=80))
def test_what_is_remembered_of_refusals_is_bounded_and_kept(numbers: list[int]) -> None:
    guard, state, mine = Denials(), SessionState(), None
    for number in numbers:
        if number == 0:
            end_turn(state, 0)
        else:
            values = {"sig": None if number == 1 else number - 20, "strike": True}
            mine = guard.event(Event("refusal", values), state, mine, Facts(0))
            assert max(map(len, mine[4:])) <= REMEMBERED
        state.own = {} if mine is None else {guard.key: mine}
        assert unpack(pack(state)) == state


GUARDS = (Loops(), Duplicates(rule="evidence", window=20), Denials(), Retryable())


@table("workers", [1, 4, 30])
def test_a_fan_out_by_threads_is_refused_nothing_for_what_its_siblings_brought(workers: int) -> None:
    session, together = Policy(GUARDS).session("s"), Barrier(workers)

    def fetch(page: int) -> str:
        if page < workers:
            together.wait()
        raise FileNotFoundError("404: no such page")

    guarded = session.wrap(fetch, returns="envelope")
    with ThreadPoolExecutor(workers) as pool:
        ends = list(pool.map(guarded, range(30)))
    assert [(end.code, end.error_type) for end in ends] == [(None, "not_found")] * 30
