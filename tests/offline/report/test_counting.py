"""
What is counted of the calls of a tool.
"""

from collections import Counter
from collections.abc import Callable
from itertools import chain, zip_longest
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Policy, Tool
from guardrails.core.retries.shrinkage import Count
from guardrails.offline.report.quality import Quality, count
from guardrails.offline.transcripts import RecordedCall
from tests.offline.report.conftest import recorded
from tests.tables import table


Calls = Callable[..., list[RecordedCall]]
Counted = Callable[..., Quality]


@table(
    "told, figures",
    [
        (["a=1"], {"calls": 1, "repeats": 0, "wasted": 0}),
        (["a=1", "a=1"], {"repeats": 1, "pointless_second": 1, "pointless_later": 0, "wasted": 1}),
        (["a=1", "a=1", "a=1"], {"repeats": 2, "pointless_second": 1, "pointless_later": 1, "wasted": 2}),
        (["a=1", "a=2"], {"repeats": 1, "pointless_second": 0, "wasted": 0}),
        (["a=1", "a x=1"], {"repeats": 0, "wasted": 0}),
        (["a=1", *["b=1"] * 19, "a=1"], {"repeats": 1, "pointless_second": 1}),
        (["a=1", *["b=1"] * 20, "a=1"], {"repeats": 0, "pointless_second": 0}),
        (["a=1", "a?"], {"repeats": 1, "pointless_second": 0, "results": 1, "wasted": 0}),
        (["a!other line 1", "a!other line 2"], {"pointless_second": 1, "idle_failures": 1, "wasted": 2, "failed": 2}),
        (["a!timeout", "a=1"], {"repeats": 1, "retries": Count(1, 1), "wasted": 1}),
        (["a!timeout", "a!timeout"], {"retries": Count(1, 0), "wasted": 2}),
        (["a!exec_nonzero"], {"failed": 1, "wasted": 0}),
        (["a!exec_nonzero", "a!exec_nonzero"], {"failed": 2, "wasted": 1}),
        (["a!other"], {"errors": Counter(other=1), "failed": 1}),
        (["a!validation", "a!invalid_path"], {"unchecked": 2, "corrections": Count(2, 0)}),
        (["a!validation", "a x=1"], {"corrections": Count(1, 1)}),
        (["a!validation", "a=1"], {"corrections": Count(1, 0)}),
        (["a!validation", *["b=1"] * 4, "a x=1"], {"corrections": Count(1, 1)}),
        (["a!validation", *["b=1"] * 5, "a x=1"], {"corrections": Count(1, 0)}),
        (["a!validation", "a y!validation", "a x=1"], {"corrections": Count(2, 1)}),
        (
            ["a=1", 'a x={"is_complete": true}', 'a y={"is_complete": false}'],
            {"unsignalled": 1, "dead_ends": 1, "unsaid": 2},
        ),
    ],
)
def test_a13_a_tool_has_these_figures(calls: Calls, counted: Counted, told: list[str], figures: dict[str, Any]) -> None:
    tally = counted(calls(*told)).tallies["a"]
    assert {name: getattr(tally, name) for name in figures} == figures


def denied(code: str) -> dict[str, Any]:
    return {"call": "a?", "decision": "deny", "code": code}


@table(
    "code, figures",
    [
        ("duplicates.window", {"refused_repeats": 1, "wasted": 1, "failed": 0}),
        ("loops.cycle", {"refused_repeats": 1, "wasted": 1, "failed": 0}),
        ("validation.arguments", {"refused_repeats": 0, "wasted": 1, "failed": 1, "unchecked": 0}),
        ("budget.max_calls", {"refused_repeats": 0, "wasted": 0, "failed": 0}),
    ],
)
def test_what_was_refused_did_not_run_and_is_told_apart(
    calls: Calls, counted: Counted, code: str, figures: dict[str, int]
) -> None:
    tally = counted(calls(denied(code))).tallies["a"]
    assert tally.denied == {code: 1}
    assert tally.results == 0
    assert {name: getattr(tally, name) for name in figures} == figures


def test_a_call_that_was_refused_is_no_evidence_for_the_next(calls: Calls, counted: Counted) -> None:
    tally = counted(calls(denied("budget.max_calls"), "a=1", denied("duplicates.window"), "a=1")).tallies["a"]
    assert (tally.repeats, tally.pointless_second) == (1, 1)


def test_repeats_of_a_tool_that_polls_are_not_wasted(calls: Calls, counted: Counted) -> None:
    polls = Policy([], tools=[Tool(name="a", repeats="allow")])
    told = counted(calls("a=1", "a=1", "a=1"), polls).tallies["a"]
    said = counted(calls("a=1", "a=1", "a=1", polling=True)).tallies["a"]
    assert (told.pointless, told.waits, told.wasted, told.idle) == (2, 2, 0, 0)
    assert (said.pointless, said.waits, said.wasted, said.idle) == (2, 2, 0, 0)


def test_sessions_and_lives_of_one_name_are_kept_apart(calls: Calls, counted: Counted) -> None:
    made = [*calls("a=1"), *calls("a=1", session="other"), *calls("a=1", run="r2"), *calls("a=1", source="elsewhere")]
    quality = counted(made)
    assert quality.sessions == 4
    assert quality.tallies["a"].sessions == 4
    assert quality.tallies["a"].repeats == 0


@given(st.lists(st.sampled_from(["a=1", "a=2", "b=1", "a!timeout", "b x!validation", "b y=1", "a?"]), max_size=40))
def test_no_call_is_wasted_twice_and_interleaved_sessions_count_alike(told: list[str]) -> None:
    one, two = (recorded(*told, session=session) for session in ("s", "t"))
    apart = count(Policy([]), [*one, *two])
    mixed = count(Policy([]), [call for call in chain.from_iterable(zip_longest(one, two)) if call is not None])
    assert [tally.to_dict() for tally in apart.tallies.values()] == [
        tally.to_dict() for tally in mixed.tallies.values()
    ]
    for tally in apart.tallies.values():
        assert tally.wasted <= tally.calls
        assert tally.idle_failures <= tally.idle


def test_costs_add_up_in_micro_dollars(calls: Calls, counted: Counted) -> None:
    quality = counted(calls("a=1", "a=1", "b=1", tool_cost_usd=0.1, cost_usd=0.25))
    assert (quality.model_cost, quality.tallies["a"].cost) == (750_000, 200_000)
