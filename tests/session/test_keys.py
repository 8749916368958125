"""
Responses that are told again by their key, and change nothing.
"""

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Growth, MemorySink, MemoryStore, Policy, SessionError
from guardrails.core.guards.budget import held
from guardrails.core.packing import pack
from guardrails.core.state import KEYS
from tests.session.conftest import replays, state_of


POLICY = Policy([Budget(max_turns=9, max_cost_usd=1.0, max_tokens=9_000), Growth(max_tokens_per_minute=9_000)])


def charge(session: Any, key: Any = None) -> Any:
    usage = {"prompt_tokens": 90, "completion_tokens": 10}
    return session.charge(model="m", usage=usage, cost_usd=0.01, calls=1, key=key)


def test_a_response_that_is_told_again_by_its_key_changes_nothing(clock: Any) -> None:
    store, sink = MemoryStore(), MemorySink()
    session = POLICY.session("s", store=store, clock=clock, records=sink)
    session.begin_turn(1, key="resp_1")
    # As after a process that was killed between the two.
    session.begin_turn(1, key="resp_1")
    first = charge(session, "resp_1")
    before = state_of(store)
    clock.advance(3_600)
    again = POLICY.session("s", store=store, clock=clock, records=sink)
    assert charge(again, "resp_1") == first
    again.begin_turn(1, key="resp_1")
    assert state_of(store) == before
    assert [record["event"] for record in sink.records] == ["turn", "charge"]
    charge(again, "resp_2")
    assert (state_of(store).turn, state_of(store).tokens, state_of(store).cost) == (2, 200, 20_000)
    replays(POLICY, sink, store)


def test_a_request_is_freed_by_the_first_charge_only_and_a_step_that_runs_again_holds_nothing(clock: Any) -> None:
    store = MemoryStore()
    session = POLICY.session("s", store=store, clock=clock)
    session.request(tokens=500)
    charge(session, "resp_1")
    request = session.request(tokens=600)
    charge(session, "resp_1")
    assert held(state_of(store))[1] == 600
    session.charge(model="m", usage=None, calls=1, key="resp_1", request=request)
    for _ in range(3):
        with session.request(tokens=500):
            charge(session, "resp_1")
    assert (held(state_of(store))[1], state_of(store).tokens) == (0, 100)


@pytest.mark.parametrize("key", ["", 7, b"resp", ["resp"]])
def test_what_is_no_key_is_an_error_and_charges_nothing(key: Any, clock: Any) -> None:
    store = MemoryStore()
    session = POLICY.session("s", store=store, clock=clock)
    with pytest.raises(SessionError, match="`key` is the id of a response"):
        charge(session, key)
    with pytest.raises(SessionError, match="`key` is the id of a response"):
        session.begin_turn(key=key)
    assert state_of(store).n == 0


def test_a_bounded_number_of_keys_is_kept_in_little_room(clock: Any) -> None:
    store = MemoryStore()
    session = Policy([]).session("s", store=store, clock=clock)
    charge(session, "first")
    before = len(pack(state_of(store)))
    for number in range(KEYS - 1):
        charge(session, f"resp_{number}")
    assert len(pack(state_of(store))) - before <= 1_400
    charge(session, "first")
    assert state_of(store).turn == KEYS
    charge(session, "one more \ud800")
    charge(session, "first")
    assert state_of(store).turn == KEYS + 2


@given(st.lists(st.tuples(st.sampled_from(["turn", "charge"]), st.sampled_from("abc")), max_size=20))
def test_any_story_of_keys_charges_each_once_and_replays(story: list[tuple[str, str]]) -> None:
    store, sink, policy = MemoryStore(), MemorySink(), Policy([])
    session = policy.session("s", store=store, clock=lambda: 1_800_000_000.0, records=sink)
    for what, key in story:
        if what == "turn":
            session.begin_turn(1, key=key)
        else:
            charge(session, key)
    assert state_of(store).turn == len({key for _, key in story})
    assert state_of(store).tokens == 100 * len({key for what, key in story if what == "charge"})
    replays(policy, sink, store)
