"""
What is counted of the calls of a tool, and which of their results say that they are complete.
"""

from collections import Counter
from functools import partial
from itertools import chain, zip_longest
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Policy, Tool
from guardrails.core.retries.model import Count
from guardrails.offline.report.quality import count
from guardrails.offline.report.rows import signal_of
from guardrails.offline.report.tally import Tally
from tests.offline.recorded import recorded
from tests.tables import table


calls = partial(recorded, every_ms=60_000)


def tally_of(*steps: Any, policy: Policy | None = None, **common: Any) -> Tally:
    return count(policy or Policy([]), calls(*steps, **common)).tallies["a"]


def denied(code: str) -> dict[str, Any]:
    return {"call": "a?", "decision": "deny", "code": code}


@table(
    "steps, figures",
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
        (["a!exec_nonzero", "a!exec_nonzero"], {"failed": 2, "wasted": 1}),
        (["a!other"], {"errors": Counter(other=1), "failed": 1}),
        (["a!validation", "a!invalid_path"], {"unchecked": 2, "corrections": Count(2, 0)}),
        (["a!validation", "a x=1"], {"corrections": Count(1, 1)}),
        (["a!validation", "a=1"], {"corrections": Count(1, 0)}),
        (["a!validation", *["b=1"] * 4, "a x=1"], {"corrections": Count(1, 1)}),
        (["a!validation", *["b=1"] * 5, "a x=1"], {"corrections": Count(1, 0)}),
        (["a!validation", "a y!validation", "a x=1"], {"corrections": Count(2, 1)}),
        (["a=1", 'a x={"is_complete": true}', 'a y={"is_complete": false}'], {"unsignalled": 1, "dead_ends": 1}),
        # What was refused did not run, is told apart, and is no evidence for the next.
        ([denied("duplicates.window")], {"refused_repeats": 1, "wasted": 1, "failed": 0, "results": 0}),
        ([denied("loops.cycle")], {"refused_repeats": 1, "wasted": 1, "denied": {"loops.cycle": 1}}),
        ([denied("validation.arguments")], {"refused_repeats": 0, "wasted": 1, "failed": 1, "unchecked": 0}),
        ([denied("budget.max_calls")], {"refused_repeats": 0, "wasted": 0, "failed": 0}),
        ([denied("budget.max_calls"), "a=1", denied("x"), "a=1"], {"repeats": 1, "pointless_second": 1}),
    ],
)
def test_a13_a_tool_has_these_figures(steps: list[Any], figures: dict[str, Any]) -> None:
    tally = tally_of(*steps)
    assert {name: getattr(tally, name) for name in figures} == figures


def test_repeats_of_a_tool_that_polls_are_not_wasted() -> None:
    polls = Policy([], tools=[Tool(name="a", repeats="allow")])
    for tally in (tally_of("a=1", "a=1", "a=1", policy=polls), tally_of("a=1", "a=1", "a=1", polling=True)):
        assert (tally.pointless, tally.waits, tally.wasted, tally.idle) == (2, 2, 0, 0)


def test_sessions_and_lives_of_one_name_are_kept_apart() -> None:
    made = [*calls("a=1"), *calls("a=1", session_id="t"), *calls("a=1", run="r2"), *calls("a=1", source="elsewhere")]
    quality = count(Policy([]), made)
    assert (quality.sessions, quality.tallies["a"].sessions, quality.tallies["a"].repeats) == (4, 4, 0)


@given(st.lists(st.sampled_from(["a=1", "a=2", "b=1", "a!timeout", "b x!validation", "b y=1", "a?"]), max_size=40))
def test_no_call_is_wasted_twice_and_interleaved_sessions_count_alike(steps: list[str]) -> None:
    one, two = (calls(*steps, session_id=session) for session in ("s", "t"))
    apart = count(Policy([]), [*one, *two])
    mixed = count(Policy([]), [call for call in chain.from_iterable(zip_longest(one, two)) if call is not None])
    figures = [[tally.to_dict() for tally in each.tallies.values()] for each in (apart, mixed)]
    assert figures[0] == figures[1]
    for tally in apart.tallies.values():
        assert tally.wasted <= tally.calls
        assert tally.idle_failures <= tally.idle


def test_costs_add_up_in_micro_dollars() -> None:
    quality = count(Policy([]), calls("a=1", "a=1", "b=1", tool_cost_usd=0.1, cost_usd=0.25))
    assert (quality.model_cost, quality.tallies["a"].cost) == (750_000, 200_000)


OWN = {"decision": "allow"}


@table(
    "fields, signal",
    [
        # Of other transcripts only a JSON object can say it.
        ({"result": '{"is_complete": true, "results": []}'}, "said"),
        ({"result": '{"is_complete": false, "results": []}'}, "dead end"),
        ({"result": '{"is_complete": false, "next_action_hint": "ask for page 2"}'}, "said"),
        ({"result": '{"is_complete": false, "next_cursor": "abc"}'}, "said"),
        ({"result": '{"is_complete": false, "next_cursor": ""}'}, "dead end"),
        ({"result": '{"is_complete": false, "next_cursor": null}'}, "dead end"),
        ({"result": '{"has_more": true}'}, "said"),
        ({"result": '{"found": 3}'}, "absent"),
        ({"result": 'the page says "is_complete": true'}, "absent"),
        ({"result": ""}, "absent"),
        ({"result": '{"pad": "' + "x" * 50_000 + '", "is_complete": true}'}, "said"),
        # Own records say it themselves.
        ({"result": "any text", "is_complete": True, **OWN}, "said"),
        ({"result": None, **OWN}, "absent"),
        ({"result": '{"is_complete": true}', **OWN}, "absent"),
        ({"result": None, "is_complete": False, **OWN}, "said"),
        ({"result": '{"result": 1}', "is_complete": False, **OWN}, "dead end"),
        ({"result": '{"result": 1, "next_action_hint": "go on"}', "is_complete": False, **OWN}, "said"),
    ],
)
def test_a13_a_result_says_whether_it_is_complete(fields: dict[str, Any], signal: str) -> None:
    (call,) = calls({"call": "a=", **fields})
    assert signal_of(call) == signal
