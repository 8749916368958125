"""
Sessions that run away.
"""

from typing import Any

from guardrails import Growth, Policy
from tests.core.guards.calls import admitted, make, ok, said
from tests.tables import table


@table("policy", ["default", "strict"])
@table("told", ["requests", "responses", "both"])
def test_a4_the_incident_is_stopped_within_its_first_second(policy: str, told: str, clock: Any) -> None:
    """
    436 model requests at zero-second intervals, 224 a second, 436 million tokens in a minute.
    """
    session = Policy.load(policy).session("s", clock=clock)
    started, requests = clock.now, 0
    while not session.exhausted and requests < 436:
        requests += 1
        if told != "responses":
            session.request()
        if told != "requests":
            session.charge(model="m", usage={"prompt_tokens": 1_000_000})
        clock.advance(1 / 224)
    assert (clock.now - started < 1, requests <= 30) == (True, True)
    assert session.tool_choice("required") == "none"
    ends = {"growth.max_requests_per_second", "growth.max_tokens_per_minute", "budget.max_tokens"}
    assert session.exhausted in ends
    assert session.call("t", {}, ok).status == "limit_reached"


def test_a4_436_requests_at_zero_second_intervals_end_with_the_21st(clock: Any) -> None:
    session = Policy.load("default").session("s", clock=clock)
    seen = [(session.request(), session.exhausted)[1] for _ in range(436)]
    assert seen == [None] * 20 + ["growth.max_requests_per_second"] * 416


def test_a4_tool_calls_that_come_too_fast_end_the_session(clock: Any) -> None:
    session = make(clock, Growth(max_calls_per_second=5))
    assert admitted(session, 8) == 5
    clock.advance(60)
    told = ("growth.max_calls_per_second", "limit_reached")
    assert said(session.call("t", {"n": 9}, ok), "code", "status") == told


@table(("after_ms", "code"), [(333, "growth.max_calls_per_second"), (334, None), (-3_600_000, "growth.max_calls_per_second")])  # fmt: skip
def test_room_for_a_call_comes_back_to_the_millisecond_and_never_by_a_clock_that_goes_back(
    after_ms: int, code: str | None, clock: Any
) -> None:
    session = make(clock, Growth(max_calls_per_second=3))
    assert admitted(session, 3) == 3
    clock.advance(after_ms / 1000)
    assert session.call("t", {}, ok).code == code


def test_honest_work_at_the_limit_is_never_stopped(clock: Any) -> None:
    session = make(clock, Growth(max_calls_per_second=4, max_requests_per_second=2, max_tokens_per_minute=60_000))
    for number in range(120):
        if number % 2 == 0:
            session.request()
            session.charge(model="m", usage={"prompt_tokens": 500})
        assert session.call("t", {"n": number}, ok).ok
        clock.advance(0.26)
    assert not session.exhausted


def test_a_blown_fuse_stays_blown_until_someone_extends_the_session(clock: Any) -> None:
    session = make(clock, Growth(max_requests_per_second=1, max_tokens_per_minute=100))
    for wait in (0, 3_600, 0):
        session.request()
        clock.advance(wait)
    assert session.exhausted
    session.extend()
    clock.advance(1.1)
    session.request()
    assert not session.exhausted
    session.charge(model="m", usage={"prompt_tokens": 101})
    assert session.exhausted == "growth.max_tokens_per_minute"
