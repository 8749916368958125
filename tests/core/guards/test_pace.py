"""
Sessions that run away, calls spaced out, and one tool again and again.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Growth, Policy, Rate, Streak, Tool, ToolFilter
from guardrails.core.chain import Rule
from guardrails.core.guards.rate import gcra
from tests.core.guards.calls import admitted, gives, make, ok, said
from tests.tables import table


NOW = 1_800_000_000_000
TOO_FAST = "growth.max_calls_per_second"


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
    assert (session.exhausted or "").startswith(("growth.max_", "budget.max_tokens"))
    assert session.call("t", {}, ok).status == "limit_reached"


def test_a4_436_requests_at_zero_second_intervals_end_with_the_21st(clock: Any) -> None:
    session = Policy.load("default").session("s", clock=clock)
    seen = [(session.request(), session.exhausted)[1] for _ in range(436)]
    assert seen == [None] * 20 + ["growth.max_requests_per_second"] * 416


@table(("after_ms", "code"), [(333, TOO_FAST), (334, None), (-3_600_000, TOO_FAST)])
def test_room_for_a_call_comes_back_to_the_millisecond(after_ms: int, code: str | None, clock: Any) -> None:
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
    session = make(clock, Growth(max_requests_per_second=1, max_tokens_per_minute=100, max_calls_per_second=5))
    assert admitted(session, 8) == 5
    clock.advance(60)
    assert said(session.call("t", {"n": 9}, ok), "code", "status") == (TOO_FAST, "limit_reached")
    session.extend()
    for wait in (0, 3_600, 0):
        session.request()
        clock.advance(wait)
    assert session.exhausted == "growth.max_requests_per_second"
    session.extend()
    clock.advance(1.1)
    session.request()
    assert not session.exhausted
    session.charge(model="m", usage={"prompt_tokens": 101})
    assert session.exhausted == "growth.max_tokens_per_minute"


# Rates


def test_a4_a_call_that_comes_too_soon_is_refused_with_the_exact_wait(clock: Any) -> None:
    session = make(clock, Rate(max_calls_per_second=3))
    assert admitted(session, 3) == 3
    told = ("denied", "rate.max_calls_per_second", True, 334)
    assert said(session.call("t", {"n": 3}, ok), "status", "code", "retryable", "retry_after_ms") == told
    assert not session.exhausted
    clock.advance(0.335)
    assert [session.call("t", {"n": n}, ok).ok for n in (3, 4)] == [True, False]
    both = make(clock, Rate(max_calls_per_second=2, max_calls_per_minute=2))
    assert admitted(both, 2) == 2
    assert said(both.call("t", {}, ok), "code", "retry_after_ms") == ("rate.max_calls_per_minute", 30_000)


def test_per_tool_rates_by_glob_count_each_tool_by_itself(clock: Any) -> None:
    rules = [Rule(match="search_*", guards={"rate": {"max_calls_per_second": 1}})]
    session = make(clock, Rate(max_calls_per_second=50), rules=rules)
    assert [admitted(session, 5, tool=tool) for tool in ("search_web", "search_mail", "read")] == [1, 1, 5]
    assert session.call("search_web", {}, ok).code == "rate.max_calls_per_second"


@given(
    limit=st.integers(1, 50),
    period=st.sampled_from([1_000, 60_000]),
    gaps=st.lists(st.integers(0, 2_000), min_size=1, max_size=80),
)
def test_any_period_holds_at_most_two_limits_and_waits_are_exact(limit: int, period: int, gaps: list[int]) -> None:
    meter, now, starts = 0, NOW, []
    for gap in gaps:
        now += gap
        after, wait = gcra(meter, now, limit, period)
        if wait == 0:
            meter = after
            starts.append(now)
        else:
            assert gcra(meter, now + wait, limit, period)[1] == 0 < gcra(meter, now + wait - 1, limit, period)[1]
    for start in starts:
        assert sum(start <= at < start + period for at in starts) <= 2 * limit


def test_a_level_that_was_kept_under_another_limit_begins_anew() -> None:
    assert gcra(NOW * 600, NOW, 5, 60_000) == (NOW * 5 + 60_000, 0)
    assert gcra(NOW * 600 + 1, NOW, 600, 60_000) == (NOW * 600 + 60_001, 0)


# Streaks


POLLED = [Tool(name="p", repeats="allow"), Tool(name="a"), Tool(name="x"), Tool(name="b")]


@table(("guards", "settings", "story", "ran"), [
    ([Streak(max_same=3)], {}, "aaaaabaaaab", "aaa..baaa.b"),
    ([Streak(max_failures=2)], {}, "AAAAbAaAAA", "AA..bAaAA."),
    # A refused call of another tool resets nothing.
    ([Streak(max_same=2), ToolFilter(deny=("x",))], {}, "aaxxaxba", "aa....ba"),
    ([Streak(max_same=1)], {"tools": POLLED}, "ppppaap", "ppppa.p"),
    ([Streak(max_same=2)], {"rules": [Rule(match="r*", guards={"streak": {"max_same": 4}})]}, "rrrrrwww", "rrrr.ww."),
])  # fmt: skip
def test_a4_what_one_tool_does_in_a_row_is_capped(guards: Any, settings: Any, story: str, ran: str, clock: Any) -> None:
    """
    One call a letter, a capital one fails.
    """
    session, seen = make(clock, *guards, **settings), ""
    for number, letter in enumerate(story):
        execute = gives(ValueError("no")) if letter.isupper() else ok
        seen += letter if session.call(letter.lower(), {"n": number}, execute).code is None else "."
    assert (seen, session.exhausted) == (ran, None)


def test_a_refusal_says_how_many_and_what_else_to_do(clock: Any) -> None:
    session = make(clock, Streak(max_same=1, max_failures=9))
    session.call("a", {"n": 0}, ok)
    message = ("`a` was called 1 times in a row (limit 1).", "Use what you have, or call another tool.")
    told = ("denied", "streak.max_same", *message)
    assert said(session.call("a", {}, ok), "status", "code", "message", "next_action_hint") == told
