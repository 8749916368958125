"""
What was found, for another program.
"""

import json

from collections.abc import Callable

import pytest

from guardrails import Duplicates, Policy, Tool
from guardrails.offline.quality.counting import Quality
from guardrails.offline.quality.result import suggestions, to_dict
from guardrails.offline.quality.run import Found
from guardrails.offline.quality.tally import Odds, Tally
from guardrails.offline.readers import RecordedCall


Calls = Callable[..., list[RecordedCall]]
Counted = Callable[..., Quality]


@pytest.fixture
def policy() -> Policy:
    names = ("big", "small", "odd", "writes")
    return Policy(
        [Duplicates(rule="evidence", window=20)],
        tools=[Tool(name=name, read_only=name != "writes") for name in names],
    )


def quality_of(*tallies: Tally) -> Quality:
    quality = Quality(lambda name: Tool(name=name))
    for tally in tallies:
        tally.repeat_sessions = 9
        quality.tallies[tally.tool] = tally
    return quality


def test_tools_that_change_nothing_speak_for_each_other_but_never_for_themselves(policy: Policy) -> None:
    found = suggestions(quality_of(Tally("big", stable=Odds(40, 40)), Tally("small", stable=Odds(6, 6))), policy)
    assert {one.tool: one.settings for one in found} == {"big": {"stable": True}, "small": {"stable": True}}
    alone = suggestions(quality_of(Tally("small", stable=Odds(30, 30))), policy)
    assert alone == [], "30 of its own are too few, and count once"


def test_what_a_tool_that_writes_gives_says_nothing_of_those_that_read(policy: Policy) -> None:
    found = suggestions(quality_of(Tally("writes", stable=Odds(90, 90)), Tally("small", stable=Odds(6, 6))), policy)
    assert found == []


def test_one_reader_that_changes_by_itself_keeps_the_others_from_being_taken_for_stable(policy: Policy) -> None:
    tallies = [Tally("big", stable=Odds(40, 40)), Tally("odd", stable=Odds(20, 2)), Tally("small", stable=Odds(6, 6))]
    found = suggestions(quality_of(*tallies), policy)
    assert [one.tool for one in found] == ["big"]


def test_the_busiest_tool_is_suggested_for_first(policy: Policy) -> None:
    tallies = [Tally(name, calls=n, always={1: Odds(90, 90)}) for name, n in (("b", 5), ("a", 5), ("c", 9))]
    assert [one.tool for one in suggestions(quality_of(*tallies), policy)] == ["c", "a", "b"]


def test_everything_can_be_written_as_json(calls: Calls, counted: Counted, policy: Policy) -> None:
    quality = counted(calls("a=1", "a=1", "b!validation", "b x=1", duration_ms=7, tool_cost_usd=0.5))
    said = json.loads(json.dumps(to_dict(Found(quality, "default", notices=["so"]), suggestions(quality, policy))))
    assert (said["calls"], said["sessions"], said["notices"]) == (4, 1, ["so"])
    a, b = said["tools"]
    assert (a["tool"], a["score"], a["loop_rate"], a["cost_usd"], a["p50_ms"]) == ("a", 1, 0.5, 1.0, 7)
    assert (b["self_correction_rate"], b["wrong_arguments_that_ran"], b["retry_success"]) == (1.0, 1, None)
    assert a["reasons"] == [
        "1 repeated a result: say in the result that it is complete and the same call brings the same; 2 of 2 results do not"
    ]
