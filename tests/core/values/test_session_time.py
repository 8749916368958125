"""
Clocks that are wrong once, or were set.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Growth, Policy, Rate, Retryable
from guardrails.core.state import LEAP_MS, STEP_BACK_MS, read_clock
from guardrails.sinks import MemorySink
from tests.core.guards.calls import gives, ok
from tests.replaying import replay
from tests.tables import table


DAY = 86_400
YEAR = 365.25 * DAY
NOW = 1_800_000_000.0
ABSURD = [-5.0, 0.0, NOW + 2 * YEAR, NOW - 2 * YEAR, NOW - 7_200]
GUARDS = (
    Budget(max_elapsed=3_600, max_calls=50, max_cost_usd=1),
    Rate(max_calls_per_minute=30),
    Growth(max_calls_per_second=20, max_requests_per_second=10, max_tokens_per_minute=1_000_000),
    Retryable(),
)


class Clock:
    """
    Seconds that go on by one from reading to reading, and say something else where told.
    """

    def __init__(self) -> None:
        self.now = NOW
        self.wrong: Any = ()

    def __call__(self) -> Any:
        self.now += 1
        return self.wrong[0] if self.wrong else self.now


fails = gives(TimeoutError("no answer"))
EVENTS: dict[str, Any] = {
    "request": lambda session: session.request(),
    "begin_turn": lambda session: session.begin_turn(),
    "charge": lambda session: session.charge(model="m", usage={"prompt_tokens": 5}, cost_usd=0),
    "priced": lambda session: session.charge(model="gpt-5-mini", usage={"prompt_tokens": 5}),
    "call": lambda session: session.call("t", {"n": "wrong"}, ok),
    "failure": lambda session: session.call("t", {"n": "fails"}, fails),
    "decide": lambda session: session.decide("t", {"n": "open"}),
    "look": lambda session: (session.exhausted, session.ledger.progress, session.digest(), session.tool_choice("auto")),
}


@table("on_error", ["deny", "allow"])
@table("event", EVENTS)
@table("wrong", ABSURD)
def test_one_absurd_reading_ends_no_session(wrong: float, event: str, on_error: Any) -> None:
    clock, sink, policy = Clock(), MemorySink(), Policy(GUARDS, on_error=on_error)
    session = policy.session("s", clock=clock, records=sink)
    session.request()
    assert session.call("t", {"n": 0}, ok).ok
    clock.wrong = (wrong,)
    EVENTS[event](session)
    clock.wrong = ()
    for n in range(20):
        clock.now += 9
        session.request()
        session.charge(model="m", usage={"prompt_tokens": 5}, cost_usd=0)
        assert session.call("t", {"n": n + 1}, ok).ok
    assert session.call("t", {"n": "fails"}, fails).error_type == "timeout"
    clock.now += 60
    assert session.call("t", {"n": "fails"}, ok).ok
    assert not session.exhausted
    clock.now += 3_601
    assert session.call("t", {"n": "late"}, ok).code == "budget.max_elapsed"
    session.close()
    assert all(call.same for call in replay(policy.chain, sink.records))


READINGS = st.one_of(st.integers(0, 1 << 53), st.integers(1_800_000_000_000, 1_800_000_100_000))


@given(st.lists(READINGS, max_size=30))
def test_time_never_goes_back_nor_leaps_and_reading_twice_is_reading_once(readings: list[int]) -> None:
    latest, behind = 1_800_000_000_000, 0
    for said in readings:
        now, corrected = read_clock(latest, behind, said)
        assert latest <= now <= latest + LEAP_MS
        again = read_clock(now, corrected, said)
        assert again[0] - now <= STEP_BACK_MS
        latest, behind = now, corrected
