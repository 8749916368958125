"""
Writing the steps of a recorded session: times, ends, and what a recording does not say.
"""

from typing import Any

import pytest

from guardrails.offline.policy_cases import Decided, case_of, read_cases
from guardrails.offline.policy_cases.case import Call, Charge, Failed, Ran, Settle, Step, Turn
from guardrails.offline.readers.base import RecordedCall


AGO = 1_700_000_000_000


def recorded(tool: str, at: int | None = 0, result: str | None = "ok", **more: Any) -> RecordedCall:
    more = {"arguments": {}, **more}
    return RecordedCall("test", "s", 0, tool, ts_ms=None if at is None else AGO + at, result=result, **more)


def steps(*calls: RecordedCall) -> tuple[Step, ...]:
    return read_cases(case_of(calls, [Decided("allow")] * len(calls))).cases[0].steps


def ran(step: Step) -> Ran:
    assert isinstance(step, (Call, Settle))
    assert step.ran is not None
    return step.ran


def shown(*calls: RecordedCall) -> list[tuple[Any, ...]]:
    """
    (what, when in ms, how long in ms)
    """
    told: list[tuple[Any, ...]] = []
    for step in steps(*calls):
        if isinstance(step, Call):
            told.append((step.tool, step.at_ms, "pending" if step.ran is None else step.ran.takes_ms))
        elif isinstance(step, Settle):
            told.append((step.id, step.at_ms, "end"))
    return told


def test_a_call_that_ends_before_the_next_takes_its_time() -> None:
    assert shown(recorded("a", 0, duration_ms=400), recorded("b", 1_000, duration_ms=5), recorded("c", 1_005)) == [
        ("a", 0, 400),
        ("b", 1_000, 5),
        ("c", 1_005, 0),
    ]


def test_calls_that_ran_beside_each_other_end_in_the_order_of_their_ends() -> None:
    calls = [
        recorded("a", 0, duration_ms=5_000),
        recorded("b", 0, duration_ms=2_000),
        recorded("c", 3_000, duration_ms=9_000),
        recorded("d", 6_000),
    ]
    assert shown(*calls) == [
        ("a", 0, "pending"),
        ("b", 0, "pending"),
        ("call 2", 2_000, "end"),
        ("c", 3_000, "pending"),
        ("call 1", 5_000, "end"),
        ("d", 6_000, 0),
        ("call 3", 12_000, "end"),
    ]


def test_times_that_go_back_stand_still_and_missing_ones_come_when_all_is_over() -> None:
    calls = [recorded("a", 5_000, duration_ms=100), recorded("b", 4_000), recorded("c", None), recorded("d", 9_000)]
    assert shown(*calls) == [
        ("a", 0, "pending"),
        ("b", 0, 0),
        ("call 1", 100, "end"),
        ("c", 100, 0),
        ("d", 4_000, 0),
    ]


def test_without_times_calls_come_soon_after_each_other_and_repeats_of_failures_after_a_minute() -> None:
    calls = [
        recorded("a", None, error_type="timeout"),
        recorded("b", None, duration_ms=5_000),
        recorded("a", None, error_type="timeout"),
        recorded("a", None),
        recorded("a", None),
    ]
    assert shown(*calls) == [("a", 0, 0), ("b", 100, 0), ("a", 61_000, 0), ("a", 122_000, 0), ("a", 122_100, 0)]


def test_turns_are_written_where_the_recording_has_them_with_what_they_used() -> None:
    calls = [
        recorded("a", turn=1),
        recorded("b", turn=1, tokens_out=5),
        recorded("c", turn=2, tokens_in=7, tokens_out=1, cost_usd=0.5),
        recorded("d", turn=3),
    ]
    told = [step for step in steps(*calls) if isinstance(step, Turn)]
    assert told == [
        Turn(line=7, at_ms=0, calls=0),
        Charge(line=11, at_ms=0, calls=0, tokens=5, cost_usd=None, begins_turn=False),
        Charge(line=15, at_ms=0, calls=0, tokens=8, cost_usd=0.5, begins_turn=True),
        Turn(line=19, at_ms=0, calls=0),
    ]
    assert not [step for step in steps(recorded("a"), recorded("b", turn=2)) if isinstance(step, Turn)]


def test_a_call_whose_end_nobody_recorded_is_lost() -> None:
    [step] = steps(recorded("a", result=None, has_result=False, duration_ms=5))
    assert isinstance(step, Call)
    assert step.lost


@pytest.mark.parametrize(
    ("call", "failed"),
    [
        (recorded("a", error_type="timeout", result=None), Failed(type="timeout")),
        (recorded("a", is_error=True, result="line 9"), Failed(type="other", message="line 9")),
        (
            recorded("a", error_type="rate_limit", result="slow", http_status=429, retry_after_ms=1_500),
            Failed(type="rate_limit", message="slow", http_status=429, retry_after_ms=1_500),
        ),
        (recorded("a", error_type="other", result="no", http_status=7), Failed(type="other", message="no")),
        (
            recorded("a", error_type="other", result=None, masked_hash=7),
            Failed(type="other", message="not recorded"),
        ),
    ],
)
def test_a_failure_is_written_with_all_that_was_recorded_of_it(call: RecordedCall, failed: Failed) -> None:
    assert ran(steps(call)[0]).failed == failed


def test_recorded_evidence_tells_results_apart_whose_text_is_cut_or_missing() -> None:
    hashed = [recorded("a", result=text, plain_hash=n) for text, n in (("cut", 1), ("cut", 2), (None, 3), ("cut", 1))]
    assert [ran(step).result for step in steps(*hashed)] == ["cut", "cut #b", "not recorded", "cut"]
    unknown = [recorded("a", result=None) for _ in range(2)]
    assert [ran(step).result for step in steps(*unknown)] == ["not recorded", "not recorded #b"]


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (None, {}),
        ("", {}),
        ('{"q": "a"}', {"q": "a"}),
        ('{"q": ', '{"q": '),
        ("[1]", "[1]"),
        (
            {"q": "$n: &a *b # c\u0085\u2028\ufeff\t\N{GRINNING FACE}"},
            {"q": "$n: &a *b # c\u0085\u2028\ufeff\t\N{GRINNING FACE}"},
        ),
        ({"k\x00": "\ud800"}, {"k": "\N{REPLACEMENT CHARACTER}"}),
    ],
)
def test_arguments_come_back_as_they_were_read(arguments: Any, written: Any) -> None:
    [step] = steps(recorded("a", arguments=arguments))
    assert isinstance(step, Call)
    assert step.arguments == written


def test_tools_are_declared_as_far_as_all_of_their_calls_agree() -> None:
    calls = [
        recorded("look", read_only=True),
        recorded("look", read_only=True),
        recorded("both", read_only=True),
        recorded("both", read_only=False, polling=True),
        recorded("some", read_only=True),
        recorded("some"),
    ]
    case = read_cases(case_of(calls, [Decided("allow")] * len(calls))).cases[0]
    assert [(tool.name, tool.read_only, tool.polling) for tool in case.tools] == [
        ("look", True, False),
        ("both", False, True),
        ("some", None, False),
    ]
    assert read_cases(case_of(calls[-1:], [Decided("allow")])).cases[0].tools == ()
