"""
A9: what a session has seen of the tool, the error and the very call, as serving and training see it.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.retries.trail import LOOKBACK, UNKNOWN, Failure, Settled, extended, failure_of, left_of
from tests.tables import table


OK, BAD, OTHER = None, "timeout", "rate_limit"


def call(error: str | None = BAD, at: int = 0, *, tool: str = "t", sig: int | None = 1) -> Settled:
    return Settled(tool, sig, error, at)


def seen(*calls: Settled, elapsed_ms: int | None = 0) -> Failure:
    trail: dict[str, Any] | None = None
    for each in calls:
        trail = extended(trail, each)
    return failure_of(trail or {}, elapsed_ms)


@table(("earlier", "expected"), [
    ([], {"attempt": 0, "run": 0, "tool_run": 0, "previous": UNKNOWN}), ([call()], {"attempt": 1, "run": 1, "tool_run": 1, "previous": 1}),
    ([call()] * 4, {"attempt": 3, "run": 4, "tool_run": 3, "previous": 1}), ([call(), call(OK)], {"attempt": 2, "run": 0, "previous": 0}),
    ([call(), call(OTHER)], {"run": 0}), ([call(), call(OK, tool="u", sig=9)], {"run": 1, "tool_run": 0, "previous": 0}),
    ([call(OK, sig=7)], {"attempt": 0}), ([call(sig=None)], {"attempt": 0, "run": 1}),
    ([call(), *[call(OK, tool="u")] * LOOKBACK], {"attempt": 0, "run": 0}),
    ([call(kind) for kind in ("unavailable", "server_error", "connection")], {"run": 3}),
])  # fmt: skip
def test_a_failure_is_judged_by_the_latest_calls(earlier: list[Settled], expected: dict[str, int]) -> None:
    made = seen(*earlier, call(at=60_000))._asdict()
    assert {name: made[name] for name in expected} == expected


@table(("calls", "since"), [
    ([call(OK, 0), call(BAD, 1_000), call(BAD, 2_000), call(BAD, 60_000)], 59_000), ([call(BAD, 0), call(OK, 1_000), call(BAD, 60_000)], 0),
    ([Settled("t", 1, BAD, None), call(BAD, 60_000)], None), ([call(BAD, 90_000), call(BAD, 60_000)], 0),
])  # fmt: skip
def test_since_is_from_the_first_failure_of_the_run(calls: list[Settled], since: int | None) -> None:
    assert seen(*calls).since_ms == since


@table("elapsed, age", [(None, UNKNOWN), (60_000, 0), (60_001, 1), (600_001, 2)])
def test_a_session_has_an_age(elapsed: int | None, age: int) -> None:
    assert seen(call(), elapsed_ms=elapsed).age == age


def test_what_an_answer_asked_for_holds_until_it_is_over_and_for_its_tool_only() -> None:
    trail = extended(None, call(OTHER, 0, tool="a"), 10_000)
    trail = extended(trail, call(OTHER, 1_000, tool="b"))
    trail = extended(trail, call(OTHER, 4_000, tool="a"), 2_000)
    assert [left_of(trail, tool, 4_000) for tool in "ab"] == [6_000, None]
    assert failure_of(trail, 0).left_ms == 6_000
    assert left_of(trail, "a", 10_000) is None


def test_of_many_tools_the_latest_that_asked_are_known() -> None:
    trail = None
    for number in range(40):
        trail = extended(trail, call(OTHER, number, tool=f"t{number}"), 10_000)
    assert trail is not None
    assert len(trail["due"]) < 20
    assert left_of(trail, "t39", 39) == 10_000


@table(("delay", "between", "expected"), [
    (0, False, {"delay": 0, "header": 1, "reach": 4, "between": False}), (5_000, True, {"delay": 3, "header": 2, "reach": 5, "between": True}),
    (None, False, {"delay": UNKNOWN, "header": 0, "reach": UNKNOWN}),
])  # fmt: skip
def test_a_retry_is_told_by_its_waits(delay: int | None, between: bool, expected: dict[str, int]) -> None:
    failure = seen(call())._replace(since_ms=10_000, left_ms=5_000)
    made = failure.retried(delay, between=between)._asdict()
    assert {name: made[name] for name in expected} == expected


@given(st.integers(0, 12), st.sampled_from([0, 2_000, 15_000]))
def test_one_more_failure_is_reckoned_with_as_the_session_would_see_it(failures: int, wait_ms: int) -> None:
    calls = [call(at=1_000 * n) for n in range(failures + 1)]
    later = call(at=1_000 * failures + wait_ms)
    assert seen(*calls).again(wait_ms) == seen(*calls, later)


@given(st.lists(st.tuples(st.sampled_from("tu"), st.sampled_from([OK, BAD, OTHER]), st.integers(0, 9)), max_size=60))
def test_a_trail_is_no_longer_than_what_is_looked_at(steps: list[tuple[str, str | None, int]]) -> None:
    calls = [call(error, 700 * at, tool=tool, sig=sig) for at, (tool, error, sig) in enumerate(steps)]
    failed = call(at=99_000)
    assert seen(*calls, failed) == seen(*calls[-LOOKBACK:], failed)._replace(
        previous=seen(*calls[-1:], failed).previous
    )
