"""
What is counted of the calls of a tool, and which of their results say that they are complete.
"""

from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import yaml

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
TABLES = yaml.safe_load(Path(__file__).with_name("counting.yaml").read_text(encoding="utf-8"))


def tally_of(*steps: Any, policy: Policy | None = None, **common: Any) -> Tally:
    return count(policy or Policy([]), calls(*steps, **common)).tallies["a"]


@table("steps, figures", TABLES["figures"])
def test_a13_a_tool_has_these_figures(steps: list[Any], figures: dict[str, Any]) -> None:
    tally = tally_of(*steps)
    own = {name: getattr(tally, name) for name in figures}
    assert {name: [*one] if isinstance(one, Count) else one for name, one in own.items()} == figures


def test_repeats_of_a_tool_that_polls_are_not_wasted() -> None:
    polls = Policy([], tools=[Tool(name="a", repeats="allow")])
    steps = ("a=1", "a=1", "b=1", "a=1")
    for tally in (tally_of(*steps, policy=polls), tally_of(*steps, polling=True)):
        assert (tally.pointless, tally.waits, tally.wasted, tally.idle, tally.checks) == (2, 2, 0, 0, 0)


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


@table("fields, signal", TABLES["signals"])
def test_a13_a_result_says_whether_it_is_complete(fields: dict[str, Any], signal: str) -> None:
    (call,) = calls({"call": "a=", **fields})
    assert signal_of(call) == signal
