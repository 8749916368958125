"""
Sessions that run away.
"""

from typing import Any

from guardrails import Growth, Policy
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy(guards, **settings).session("s", clock=clock)


@table("policy", ["default", "strict"])
@table("told", ["requests", "responses", "both"])
def test_a4_the_incident_is_stopped_within_its_first_second(policy: str, told: str, clock: Any) -> None:
    """
    436 model requests at zero-second intervals, 224 a second, 436 million tokens in a minute.
    """
    session = Policy.load(policy).session("s", clock=clock)
    started, requests, tokens = clock.now, 0, 0
    while not session.exhausted and requests < 436:
        requests += 1
        if told != "responses":
            session.request()
        if told != "requests":
            session.charge(model="m", usage={"prompt_tokens": 1_000_000})
            tokens += 1_000_000
        clock.advance(1 / 224)
    assert clock.now - started < 1
    assert requests <= 30
    assert tokens <= 30_000_000
    assert session.tool_choice("required") == "none"
    assert session.exhausted in {
        "growth.max_requests_per_second",
        "growth.max_tokens_per_minute",
        "budget.max_tokens",
    }
    assert session.call("t", {}, ok).status == "limit_reached"


def test_a4_436_requests_at_zero_second_intervals_end_with_the_21st(clock: Any) -> None:
    session = Policy.load("default").session("s", clock=clock)
    seen = []
    for _ in range(436):
        session.request()
        seen.append(session.exhausted is not None)
    assert seen.index(True) == 20
    assert session.exhausted == "growth.max_requests_per_second"


def test_a4_tool_calls_that_come_too_fast_end_the_session(clock: Any) -> None:
    session = make(clock, Growth(max_calls_per_second=5))
    seen = [session.call("t", {"n": n}, ok) for n in range(8)]
    assert [envelope.ok for envelope in seen] == [True] * 5 + [False] * 3
    assert (seen[5].code, seen[5].status) == ("growth.max_calls_per_second", "limit_reached")
    clock.advance(60)
    assert session.call("t", {"n": 9}, ok).code == "growth.max_calls_per_second"


@table(("after_ms", "code"), [(333, "growth.max_calls_per_second"), (334, None)])
def test_room_for_a_call_comes_back_to_the_millisecond(after_ms: int, code: str | None, clock: Any) -> None:
    session = Policy([Growth(max_calls_per_second=3)]).session("s", clock=clock)
    assert all(session.call("t", {"n": n}, ok).ok for n in range(3))
    clock.advance(after_ms / 1000)
    assert session.call("t", {}, ok).code == code


def test_honest_work_at_the_limit_is_never_stopped(clock: Any) -> None:
    guard = Growth(max_calls_per_second=4, max_requests_per_second=2, max_tokens_per_minute=60_000)
    session = make(clock, guard)
    for number in range(120):
        if number % 2 == 0:
            session.request()
            session.charge(model="m", usage={"prompt_tokens": 500})
        assert session.call("t", {"n": number}, ok).ok
        clock.advance(0.26)
    assert not session.exhausted


def test_a_blown_fuse_stays_blown_until_someone_extends_the_session(clock: Any) -> None:
    session = make(clock, Growth(max_requests_per_second=1, max_tokens_per_minute=100))
    session.request()
    session.request()
    clock.advance(3_600)
    session.request()
    assert session.exhausted
    session.extend()
    clock.advance(1.1)
    session.request()
    assert not session.exhausted
    session.charge(model="m", usage={"prompt_tokens": 101})
    assert session.exhausted == "growth.max_tokens_per_minute"


def test_a_clock_that_stands_still_or_goes_back_does_not_open_the_cap(clock: Any) -> None:
    session = make(clock, Growth(max_calls_per_second=3))
    for number in range(3):
        assert session.call("t", {"n": number}, ok).ok
        clock.advance(-3_600)
    assert not session.call("t", {"n": 3}, ok).ok
