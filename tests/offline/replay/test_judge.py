"""
Judging a policy call by call.
"""

import json

from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Denials, Duplicates, Loops, Policy, Rate, Retryable, Tool, Validation
from guardrails.core.guards.base import Guard, guard
from guardrails.core.values.types import Nudge
from guardrails.offline.replay.evidence import WINDOW, Past
from tests.offline.recorded import judged, recorded
from tests.tables import table


STORIES = yaml.safe_load(Path(__file__).with_name("stories.yaml").read_text())


@table("story", STORIES)
def test_recorded_calls_are_judged(story: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(json.dumps({"version": 1, **story["policy"]}))
    found = judged(Policy.load(tmp_path / "p.yaml"), recorded(*story["calls"], timed=story.get("timed", True)))
    assert [row.code for row in found.rows] == story["codes"]
    assert found.not_judged == story.get("not_judged", found.not_judged)
    if "recorded" in story:
        assert [row.recorded if row.code else None for row in found.rows] == story["recorded"]
    for name, value in story.get("total", {}).items():
        assert (name, getattr(found.total, name)) == (name, value)


def test_reasons_name_the_sources() -> None:
    policy = Policy([Rate(max_calls_per_second=1), Denials()])
    calls = [
        *recorded("a=1", source="one", timed=False),
        *recorded("a=1", source="two", turn=1, tokens_in=1),
        *recorded("a=1", source="two", session_id="other"),
    ]
    reasons = judged(policy, calls).not_judged
    assert reasons["rate"] == "no times in sessions of one"
    assert reasons["denials"] == "no word on which response made a call in sessions of any source"
    many = [call for n in range(8) for call in recorded("a=1", source=f"s{n}", timed=n > 6)]
    assert judged(policy, many).not_judged["rate"].endswith(" of s0, s1, s2, s3, s4, s5 and 1 more sources")


def test_the_advice_of_a_retry_model_is_used_and_said(tmp_path: Path) -> None:
    path = str(tmp_path / "retries.json")
    calls = recorded({"call": "a!timeout", "duration_ms": 0}, {"call": "a=1", "ts_ms": 1_800_000_001_200})
    assert [row.code for row in judged(Policy([Retryable(backoff=1.0)]), calls).rows] == [None, None]
    found = judged(Policy([Retryable(backoff=1.0, model=path)]), calls)
    assert list(found.models) == [path]
    assert (found.total.asked, found.total.advised) == (1, 1)
    assert found.rows[1].code == "retryable.wait", "what is shipped waits longer than a second"


def test_arguments_are_checked_against_what_the_policy_declares() -> None:
    schema = {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]}
    policy = Policy([Validation()], tools=[Tool(name="a", parameters=schema)])
    assert [row.code for row in judged(policy, recorded("a x=1", "a=1")).rows] == [None, "validation.arguments"]


@guard
class Nudging(Guard):
    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Nudge:
        return Nudge(code="loops.test", hint="look back")


def test_nudges_are_counted_and_wrong_where_the_call_brought_something() -> None:
    total = judged(Policy([Nudging()]), recorded("a=1", "a=1", "a=2")).total
    assert (total.nudged, total.wrong_nudges) == ({"loops.test": 3}, {"loops.test": 2})


def test_a_repeat_is_pointless_where_the_latest_identical_call_of_the_last_twenty_ended_alike() -> None:
    def worths(*ends: tuple[int | None, int | None]) -> list[str]:
        past = Past()
        return [past.add(*end) for end in ends]

    fresh = [(100 + n, 1) for n in range(WINDOW)]
    assert worths((7, 1), (7, 2), (7, 1), (7, 1)) == ["new", "new", "new", "later"]
    # Without a result, and what cannot be signed.
    assert worths((7, 1), (7, None), (7, 1)) == ["new", "unknown", "second"]
    assert worths((None, 1), (None, 1)) == ["new", "new"]
    assert [worths((7, 1), *between, (7, 1))[-1] for between in (fresh[1:], fresh)] == ["second", "new"]


POLICIES = (
    Policy([Duplicates(window=5)]),
    Policy([Denials(), Loops()]),
    Policy([Budget(max_calls=9), Denials(max_turns_in_a_row=1), Duplicates(rule="evidence", window=20)]),
    Policy([Duplicates(window=5, mode="observe"), Loops()]),
)
SAID = ("a=1", "a=2", "a=1 in 3s", "a=1 in 4s", "b=1", "b=2", "a!x", "b!y", "a?", "c=1")


@given(story=st.lists(st.sampled_from(SAID), max_size=40), policy=st.sampled_from(POLICIES))
def test_the_parts_add_up_to_all_that_is_refused(story: list[str], policy: Policy) -> None:
    found = judged(policy, recorded(*({"call": step, "turn": n // 2 + 1} for n, step in enumerate(story))))
    total = found.total
    refused = [row for row in found.rows if row.decision == "deny"]
    assert len(refused) == total.refused
    assert sum((total.wrong, total.repeats, total.failed, total.unknown), Counter()) == total.denied
    assert total.wrong.total() == sum(row.recorded == "worked" for row in refused)
    assert total.stopped_second + total.stopped_later == total.repeats.total()
    assert total.observed.total() == sum(bool(row.observed) and row.decision != "deny" for row in found.rows)
    assert total.wrong_observed.total() <= total.observed.total()
