"""
Models that repeat refused calls.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Denials, Duplicates, Loops, Policy, Rate, Retryable, ToolFilter, Validation
from guardrails.core.guards.base import Event, Facts
from guardrails.core.guards.denials import REMEMBERED
from guardrails.core.packing import pack, unpack
from guardrails.core.state import SessionState, end_turn
from tests.core.guards import calls
from tests.core.guards.calls import ok
from tests.tables import table


CAP = "denials.max_turns_in_a_row"
ONCE = Denials(max_turns_in_a_row=1)


def make(clock: Any, *guards: Any) -> Any:
    return calls.make(clock, ToolFilter(deny=("no",)), *guards)


def turn(session: Any, *asked: Any) -> list[Any]:
    session.begin_turn(calls=len(asked))
    return [session.call(tool, arguments, ok) for tool, arguments in asked]


def refused(*numbers: Any) -> list[Any]:
    return [("no", {"n": number}) for number in numbers]


SAME = refused(0)
RUNS: list[Any] = [("t", {})]


# Turns that are told


@table(("guards", "turns", "ends"), [
    ([Denials()], [SAME] * 4, 4),
    ([Denials()], [refused(number) for number in range(10)], 10),
    # What cannot be signed is no repeat.
    ([Denials()], [refused(object())] * 10, 10),
    # Five refusals of one parallel turn are one strike, and do not know of each other.
    ([Denials()], [refused(*range(5))] * 4, 4),
    ([ONCE], [SAME * 5] * 2, 2),
    # Work in between begins anew; turns without calls neither count nor reset.
    ([ONCE], [turn for n in range(30) for turn in ([*SAME, ("t", {"n": n})], [("t", {"n": -n}), *SAME])], None),
    ([Denials()], [SAME, SAME, SAME + RUNS] * 5, None),
    ([Denials()], [SAME, [], []] * 4, 10),
    # A wait is no strike, nor the first validation error of a call.
    ([ONCE, Rate(max_calls_per_minute=1)], [RUNS, *([("t", {"n": n % 2})] for n in range(15))], None),
    ([Denials(max_turns_in_a_row=2), Validation()], [[("t", text)] for text in ("{a", "{b", "{c", "{d", "{a", "{d")], 6),
    ([Denials(), Duplicates()], [RUNS] * 5, 5),
    *(([guard], [SAME] * 12, None) for guard in (Denials(max_turns_in_a_row=None), Denials(mode="observe"))),
])  # fmt: skip
def test_a4_turns_that_repeat_refused_calls_end_the_session(guards: Any, turns: Any, ends: Any, clock: Any) -> None:
    session, at = make(clock, *guards), None
    for number, asked in enumerate(turns, 1):
        turn(session, *asked)
        at = at or (number if session.exhausted else None)
    assert (at, session.exhausted) == (ends, ends and CAP)


def test_the_last_refusal_of_the_last_turn_tells_the_limit_and_further_calls_are_refused_for_it(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=2))
    for _ in range(2):
        turn(session, *SAME)
    first, last = turn(session, *SAME, *SAME)
    assert (first.limit_message, last.code) == (None, "tool_filter.deny")
    assert last.limit_message == "Every tool call of 2 turns in a row was refused. Stopping tool loop."
    assert turn(session, ("t", {}))[0].code == CAP


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


# Turns that nobody tells


@table(("guards", "asked", "seconds", "ends"), [
    *(([Denials()], SAME * 5, seconds, 5) for seconds in (0, 0.001, 5, 120)),
    # Calls that were made together are one turn, and a call that runs begins anew.
    ([ONCE], refused(*range(30)), 0.001, None),
    ([Denials()], [call for n in range(20) for call in (*SAME, ("t", {"n": n}))], 3, None),
])  # fmt: skip
def test_without_turns_repeated_refusals_end(guards: Any, asked: Any, seconds: float, ends: Any, clock: Any) -> None:
    session, codes = make(clock, *guards), []
    for tool, arguments in asked:
        codes.append(session.call(tool, arguments, ok).code)
        clock.advance(seconds)
    assert (codes.index(CAP) + 1 if CAP in codes else None) == ends


def test_whoever_asks_again_while_a_call_runs_is_not_ended(clock: Any) -> None:
    session = make(clock, ONCE, Duplicates())
    running = session.decide("t", {}, id="first")
    for number in range(20):
        assert session.decide("t", {}, id=f"again {number}").code == "call.in_flight"
        clock.advance(10)
    assert not session.exhausted
    assert session.complete(running, "found").ok


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


@table("apart", [0, 0.002, 1, 30])
def test_calls_that_are_made_one_by_one_are_turns_of_their_own(apart: float, clock: Any) -> None:
    session, seen = Policy(GUARDS).session("s", clock=clock), []
    session.decide("watch", {}, id="never ends")
    clock.advance(61)
    for page in range(7):
        decision = session.decide("fetch", {"page": page})
        seen.append([code for code, _ in decision.nudges])
        session.complete(decision, FileNotFoundError("404: no such page"))
        clock.advance(apart)
    assert seen == [[]] * 3 + [["loops.same_error"]] * 4
