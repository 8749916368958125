"""
Judging a policy call by call.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import (
    Budget,
    Denials,
    Duplicates,
    Growth,
    Loops,
    Policy,
    Rate,
    Retryable,
    Streak,
    Tool,
    Validation,
)
from guardrails.core.guards.base import Guard
from guardrails.core.values.types import Nudge
from guardrails.core.values.usage import Price
from guardrails.offline.replay.tally import Row, Tally
from guardrails.offline.transcripts import RecordedCall
from tests.offline.judging import judged as told
from tests.tables import table

from .conftest import recorded


Calls = Callable[..., list[RecordedCall]]

EVIDENCE = Duplicates(rule="evidence", window=20)
ALWAYS = Duplicates(window=5)


def codes(policy: Policy | Guard, made: list[RecordedCall]) -> list[str | None]:
    return [said.code for said in judged(policy, made)[0]]


def judged(policy: Policy | Guard, made: list[RecordedCall]) -> tuple[list[Row], Tally]:
    found = told(policy if isinstance(policy, Policy) else Policy([policy]), made)
    return found.rows, found.total


def test_a_denial_of_a_pointless_repeat_is_right_and_of_another_wrong(calls: Calls) -> None:
    said, total = judged(ALWAYS, calls("a=1", "a=1", "b=1", "b=2"))
    assert [each.code for each in said] == [None, "duplicates.window", None, "duplicates.window"]
    assert (total.denied, total.wrong) == ({"duplicates.window": 2}, {"duplicates.window": 1})
    assert (total.stopped_second, total.pointless_second) == (1, 1)
    assert total.wrong_per_1000 == 250


def test_what_a_denied_call_gave_back_is_not_shown_to_the_guards(calls: Calls) -> None:
    # Were the third result shown, the fourth call would be let through.
    assert codes(EVIDENCE, calls("a=1", "a=1", "a=2", "a=2")) == [
        None,
        None,
        "duplicates.evidence",
        "duplicates.evidence",
    ]


def test_a_denial_of_a_call_without_a_recorded_result_is_neither_right_nor_wrong(calls: Calls) -> None:
    said, total = judged(ALWAYS, calls("a=1", "a?"))
    assert (total.denied, total.unknown, total.wrong) == ({"duplicates.window": 1}, {"duplicates.window": 1}, {})
    assert said[1].recorded == "unknown"
    assert total.pointless_second == 0


def test_a_call_without_a_recorded_result_is_no_evidence_and_does_not_run_for_ever(calls: Calls) -> None:
    assert codes(EVIDENCE, calls("a=1", "a?", "a=1", "a=1")) == [None, None, None, None]


def test_calls_go_by_their_recorded_times(calls: Calls) -> None:
    made = calls("a!timeout", {"call": "a=1", "ts_ms": 1_800_000_000_200}, {"call": "a=1", "ts_ms": 1_800_000_001_200})
    assert codes(Retryable(backoff=1.0), made) == [None, "retryable.wait", None]


def test_without_times_every_wait_is_over(calls: Calls) -> None:
    made = calls("a!timeout", {"call": "a=1"}, timed=False)
    made[0].retry_after_ms = 3_600_000
    assert codes(Retryable(max_wait=86_400.0), made) == [None, None]


def test_without_times_rates_growth_and_elapsed_time_are_not_judged(calls: Calls) -> None:
    policy = Policy([Budget(max_elapsed=1.0), Growth(max_calls_per_second=1), Rate(max_calls_per_minute=1)])
    judgement = told(policy, calls("a=1", "b=1", "c=1", timed=False))
    assert [each.code for each in judgement.rows] == [None] * 3
    assert set(judgement.not_judged) == {"budget.max_elapsed", "growth", "rate"}
    assert judgement.not_judged["rate"] == "no times in sessions of data"


def test_without_times_every_repeat_of_a_failure_counts_as_soon_and_that_is_said(calls: Calls) -> None:
    made = calls(*[{"call": "a!no such file", "error_type": "not_found"}] * 2, timed=False)
    found = told(Policy([Loops()]), made)
    assert [each.code for each in found.rows] == [None, "loops.unrepaired"]
    assert found.not_judged["loops.settled_for"] == "no times in sessions of data: every repeat counts as soon"


def test_with_times_they_are(calls: Calls) -> None:
    made = calls("a=1", "b=1", "c=1")
    assert codes(Budget(max_elapsed=1.0), made) == [None, "budget.max_elapsed", "budget.max_elapsed"]
    assert codes(Rate(max_calls_per_minute=1), made) == [None, "rate.max_calls_per_minute", "rate.max_calls_per_minute"]
    together = [{"call": f"{tool}=1", "ts_ms": 1_800_000_000_000} for tool in "abc"]
    assert codes(Growth(max_calls_per_second=2), calls(*together))[2] == "growth.max_calls_per_second"


def test_a_call_without_a_time_among_others_comes_when_what_ran_before_is_over(calls: Calls) -> None:
    made = calls({"call": "a=1", "duration_ms": 5_000}, {"call": "a=1", "ts_ms": None}, {"call": "b=1", "ts_ms": None})
    assert codes(Policy([EVIDENCE, Budget(max_elapsed=5.0)]), made) == [
        None,
        "budget.max_elapsed",
        "budget.max_elapsed",
    ]


def test_a_repeat_of_a_call_that_still_runs_is_in_flight(calls: Calls) -> None:
    made = calls({"call": "a=1", "duration_ms": 1_500}, "a=1", "a=1")
    assert codes(EVIDENCE, made) == [None, "call.in_flight", None]


def test_results_come_in_the_order_of_their_ends_and_not_of_their_calls(calls: Calls) -> None:
    made = calls(
        {"call": "a!x", "duration_ms": 1_900}, {"call": "a!x", "duration_ms": 100, "arguments": {"n": 1}}, "a=1"
    )
    assert codes(Streak(max_failures=2), made) == [None, None, "streak.max_failures"]
    made[0].duration_ms = 5_000
    assert codes(Streak(max_failures=2), made) == [None, None, None]


def test_calls_of_a_session_that_is_over_are_wrongly_refused_if_they_had_worked(calls: Calls) -> None:
    _, total = judged(Budget(max_calls=1), calls("a=1", "b=1", "c=1", "a=1", "d!no", "e?"))
    code = "budget.max_calls"
    assert (total.denied, total.refused) == ({code: 5}, 5)
    assert (total.wrong, total.repeats, total.failed, total.unknown) == ({code: 2}, {code: 1}, {code: 1}, {code: 1})


def test_a_retry_that_had_to_wait_and_had_worked_at_once_is_wrongly_refused(calls: Calls) -> None:
    made = calls("a!timeout", {"call": "a=1", "ts_ms": 1_800_000_000_200})
    said, total = judged(Retryable(backoff=1.0), made)
    assert (said[1].code, said[1].recorded) == ("retryable.wait", "worked")
    assert total.wrong == {"retryable.wait": 1}


@table(
    "first, then, recorded",
    [
        ("a=3 passed", "a=4 passed", "worked"),
        ("a!no such file", "a=done", "worked"),
        ("a=done", "a=done", "repeat"),
        ("a!line 1", "a!line 2", "repeat"),
        ("a=done", "a!no such file", "failed"),
        ("a=done", "a?", "unknown"),
    ],
)
def test_a_refused_call_is_told_by_what_is_recorded_of_it(calls: Calls, first: str, then: str, recorded: str) -> None:
    said, total = judged(ALWAYS, calls(first, then))
    assert (said[1].decision, said[1].recorded) == ("deny", recorded)
    rows = {"worked": total.wrong, "repeat": total.repeats, "failed": total.failed, "unknown": total.unknown}
    assert {row: counter for row, counter in rows.items() if counter} == {recorded: {"duplicates.window": 1}}


def test_the_advice_of_a_retry_model_is_used_and_said(calls: Calls, tmp_path: Path) -> None:
    path = tmp_path / "retries.json"
    made = [{"call": "a!timeout", "duration_ms": 0}, {"call": "a=1", "ts_ms": 1_800_000_001_200}]
    rules, learned = (Policy([Retryable(backoff=1.0, model=model)]) for model in (None, str(path)))
    assert codes(rules, calls(*made)) == [None, None]
    found = told(learned, calls(*made))
    assert list(found.models) == [str(path)]
    assert (found.total.asked, found.total.advised) == (1, 1)
    assert found.rows[1].code == "retryable.wait", "what is shipped waits longer than a second"


def test_what_observed_calls_came_to_live_is_told_of_our_own_records(calls: Calls) -> None:
    made = calls("a=1", {"call": "b=1", "observed": ("budget.max_calls",)}, {"call": "b=1", "observed": ("x",)})
    _, total = judged(Policy([]), made)
    assert (total.recorded_observed, total.recorded_observed_worked) == (2, 1)


def test_turns_are_those_of_the_model_responses(calls: Calls) -> None:
    made = calls(*({"call": f"t{n}=1", "turn": n // 2 + 1} for n in range(6)))
    assert codes(Budget(max_turns=2), made) == [None] * 4 + ["budget.max_turns"] * 2


def test_without_turns_the_cap_on_turns_and_on_refusals_is_not_judged(calls: Calls) -> None:
    judgement = told(Policy([Budget(max_turns=1), Denials(), ALWAYS]), calls("a=1", "b=1", "b=1"))
    assert set(judgement.not_judged) == {"budget.max_turns", "denials"}
    assert judgement.total.denied == {"duplicates.window": 1}


def test_responses_are_charged_what_they_cost_or_what_the_policy_says(calls: Calls) -> None:
    made = calls(*({"call": f"t{n}=1", "turn": n, "model": "small", "tokens_in": 1_000_000} for n in (1, 2, 3)))
    priced = Policy([Budget(max_cost_usd=1.5)], prices={"small": Price(input_mtok=1.0)})
    assert codes(priced, made) == [None, "budget.max_cost_usd", "budget.max_cost_usd"]
    found = told(Policy([Budget(max_cost_usd=1.5)]), made)
    assert [each.code for each in found.rows] == [None] * 3
    assert found.not_judged == {"budget.max_cost_usd": "no costs, nor prices in the policy, in data"}


def test_sessions_are_told_apart_by_source_and_id_and_may_be_interleaved(calls: Calls) -> None:
    one, two = calls("a=1", "a=1"), calls("a=1", "a=1", session_id="../../etc/passwd\x00\ud800")
    other = calls("a=1", source="elsewhere")
    said, total = judged(ALWAYS, [one[0], two[0], other[0], one[1], two[1]])
    assert [each.decision for each in said] == ["allow", "deny", "allow", "deny", "allow"]
    assert total.sessions == 3


def test_a_call_whose_arguments_were_not_kept_goes_by_its_signature(calls: Calls) -> None:
    made = calls(*({"call": "a=1", "sig": sig, "arguments": None} for sig in (5, 6, 5)))
    assert codes(ALWAYS, made) == [None, None, "duplicates.window"]


def test_a_tool_that_was_declared_polling_where_it_ran_may_poll(calls: Calls) -> None:
    assert codes(ALWAYS, calls("a=1", "a=1", "a=1", polling=True)) == [None] * 3


def test_arguments_are_checked_against_what_the_policy_declares(calls: Calls) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    policy = Policy([Validation()], tools=[Tool(name="a", parameters=schema)])
    assert codes(policy, calls({"call": "a=1", "arguments": {"n": 1}}, "a=1")) == [None, "validation.arguments"]


def test_what_guards_in_observe_mode_would_have_denied_is_counted_and_changes_nothing(calls: Calls) -> None:
    watching = Policy([Duplicates(window=5), Budget(max_calls=2)], mode="observe")
    said, total = judged(watching, calls("a=1", "a=1", "a=2"))
    assert [each.decision for each in said] == ["allow"] * 3
    assert said[2].observed == ("budget.max_calls", "duplicates.window")
    assert total.observed == {"duplicates.window": 1, "budget.max_calls": 1}
    assert total.wrong_observed == {"budget.max_calls": 1}
    assert total.observed_second == 1
    assert total.wrong_observed_per_1000 == pytest.approx(333.33, abs=0.01)


def test_nudges_are_counted_and_wrong_where_the_call_brought_something(calls: Calls, nudging: Guard) -> None:
    said, total = judged(nudging, calls("a=1", "a=1", "a=2"))
    assert [each.decision for each in said] == ["nudge"] * 3
    assert (total.nudged, total.wrong_nudges) == ({"loops.test": 3}, {"loops.test": 2})


@pytest.fixture
def nudging() -> Guard:
    from guardrails.core.guards.base import guard

    @guard
    class Nudging(Guard):
        def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Nudge:
            return Nudge(code="loops.test", hint="look back")

    return Nudging()


@st.composite
def stories(draw: st.DrawFn) -> list[dict[str, Any]]:
    said = st.sampled_from(["a=1", "a=2", "a=1 in 3s", "a=1 in 4s", "b=1", "b=2", "a!x", "b!y", "a?", "c=1"])
    return [{"call": one, "turn": n // 2 + 1} for n, one in enumerate(draw(st.lists(said, max_size=40)))]


POLICIES = (
    Policy([ALWAYS]),
    Policy([Denials(), Loops()]),
    Policy([Budget(max_calls=9), Denials(max_turns_in_a_row=1), EVIDENCE]),
    Policy([Duplicates(window=5, mode="observe"), Loops()]),
)


@given(story=stories(), policy=st.sampled_from(POLICIES))
def test_the_parts_add_up_to_all_that_is_refused(story: list[dict[str, Any]], policy: Policy) -> None:
    said, total = judged(policy, recorded(*story))
    refused = [each for each in said if each.decision == "deny"]
    assert len(refused) == total.refused
    parts = total.wrong, total.repeats, total.failed, total.unknown
    assert sum(parts, Counter()) == total.denied
    assert total.wrong.total() == sum(each.recorded == "worked" for each in refused)
    assert total.stopped_second + total.stopped_later == total.repeats.total()
    assert total.observed.total() == sum(bool(each.observed) and each.decision != "deny" for each in said)
    assert total.wrong_observed.total() <= total.observed.total()
