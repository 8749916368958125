from typing import Any

from guardrails.core.retries.context import Context, Settled, action_of, candidates, context_of
from guardrails.offline.learning.labels import SessionFeatures
from tests.core.retries.pinned import SPEC
from tests.tables import table


OK, BAD, OTHER = None, "timeout", "rate_limit"


def levels(trail: list[Settled], failure: Settled, **known: Any) -> dict[str, int]:
    made = context_of(SPEC, trail, failure, known.get("elapsed_ms"), known.get("retry_after_ms"))
    return SPEC.decode_context(made.code)


def trail(*errors: str | None, tool: str = "t", sig: int | None = 1) -> list[Settled]:
    return [Settled(tool, sig, error, 1_000 * at) for at, error in enumerate(errors)]


def failure(sig: int | None = 1) -> Settled:
    return Settled("t", sig, BAD, 60_000)


@table(
    ("earlier", "expected"),
    [
        ([], {"attempt": 0, "err_run": 0, "fail_share": 0, "tool_run": 0, "prev": 0}),
        (trail(BAD), {"attempt": 1, "err_run": 1, "fail_share": 5, "tool_run": 1, "prev": 2}),
        (trail(BAD, BAD, BAD, BAD), {"attempt": 3, "err_run": 3, "tool_run": 2, "prev": 2}),
        (trail(BAD, OK), {"attempt": 2, "err_run": 0, "fail_share": 3, "prev": 1}),
        (trail(BAD, OTHER), {"err_run": 0, "fail_share": 5}),
        ([*trail(BAD), *trail(OK, tool="u", sig=9)], {"err_run": 1, "tool_run": 0, "prev": 1}),
        (trail(OK, OK, sig=7), {"attempt": 0, "fail_share": 1}),
        (trail(BAD, sig=None), {"attempt": 0, "err_run": 1}),
        ([*trail(BAD), *trail(*[OK] * 20, tool="u")], {"attempt": 0, "err_run": 0, "fail_share": 0}),
    ],
)
def test_a_context_is_of_the_latest_calls(earlier: list[Settled], expected: dict[str, int]) -> None:
    """A9: what the session has seen of the tool, the error and the very call."""
    made = levels(earlier, failure())
    assert {name: made[name] for name in expected} == expected


def test_a_call_that_cannot_be_signed_is_no_attempt_of_another() -> None:
    assert levels(trail(BAD, sig=None), failure(sig=None))["attempt"] == 0


def test_what_the_server_and_the_clock_say_is_part_of_it() -> None:
    assert levels([], failure(), elapsed_ms=60_001, retry_after_ms=5_000) | {"ra": 2, "elapsed": 2} == levels(
        [], failure(), elapsed_ms=60_001, retry_after_ms=5_000
    )
    assert levels([], failure())["ra"] == levels([], failure())["elapsed"] == 0


def test_since_is_from_the_first_failure_of_the_run() -> None:
    assert context_of(SPEC, trail(OK, BAD, BAD), failure(), 0, None).since_ms == 59_000
    assert context_of(SPEC, trail(BAD, OK), failure(), 0, None).since_ms == 0
    assert context_of(SPEC, [Settled("t", 1, BAD, None)], failure(), 0, None).since_ms is None


def test_a_clock_that_went_back_makes_nothing_negative() -> None:
    assert context_of(SPEC, [Settled("t", 1, BAD, 90_000)], failure(), 0, None).since_ms == 0


@table(
    ("delay", "between", "expected"),
    [
        (0, False, {"delay": 1, "waited": 1, "between": 0, "reach": 4}),
        (5_000, True, {"delay": 3, "waited": 2, "between": 1, "reach": 4}),
        (None, False, {"delay": 0, "waited": 0, "between": 0, "reach": 0}),
    ],
)
def test_an_action_says_what_was_done(delay: int | None, between: bool, expected: dict[str, int]) -> None:
    context = Context(0, 10_000, 5_000)
    assert SPEC.decode_action(action_of(SPEC, context, delay, between)) == expected


def test_no_candidate_is_shorter_than_the_server_asked_for() -> None:
    made = candidates(SPEC, 0, 7_000)
    assert [candidate.wait_ms for candidate in made] == [7_000, 15_000, 60_000, 120_000]
    assert [candidate.wait_ms for candidate in candidates(SPEC, 0, None)] == list(SPEC.delays_ms)
    for wait, action in made:
        assert action == action_of(SPEC, Context(0, 0, 7_000), wait, between=False)


def test_features_of_a_session_need_no_more_than_its_latest_calls() -> None:
    calls = [Settled("t", at % 3, BAD if at % 4 else None, at * 700) for at in range(100)]
    features = SessionFeatures(SPEC)
    for at, call in enumerate(calls):
        made = features.settle(call, at, None)
        assert made == (None if call.error_type is None else context_of(SPEC, calls[:at], call, at, None))
