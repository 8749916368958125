"""
How much of one result the model reads.
"""

import json

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Envelope, Guard, Policy, Rule, Summary, Truncate, guard
from tests.tables import table


def shown(value: Any, *guards: Any, **settings: Any) -> dict[str, Any]:
    session = Policy(guards, **settings).session("s", clock=lambda: 0.0)
    read: dict[str, Any] = json.loads(session.call("t", {}, lambda *_: value).to_json())
    return read


def test_a_result_of_exactly_the_limit_is_whole() -> None:
    assert "is_complete" not in shown("x" * (65_536 - 2), Truncate())
    assert shown("x" * (65_536 - 1), Truncate())["is_complete"] is False


@table("form", ["nested", "merged"])
def test_a_cut_is_told_once_with_one_size(form: Any) -> None:
    read = shown({"rows": "x" * 70_000}, Truncate(), envelope=form)
    assert read["is_complete"] is False
    assert read["next_action_hint"] == "Ask for a smaller part: a range, a filter or a page."
    assert json.dumps(read).count("original_bytes") == 1


def test_what_own_guards_put_into_a_result_is_bounded_too() -> None:
    @guard
    class Verbose(Guard):
        def shape(self, envelope: Envelope, call: Any, outcome: Any, state: Any, mine: Any, facts: Any) -> Envelope:
            envelope.value = "y" * 10_000
            return envelope

    read = shown("small", Truncate(max_bytes=1_000), Verbose())
    assert len(read["result"]) < 1_000
    assert read["result"].startswith("yyy")


def test_each_tool_may_have_its_own_limit() -> None:
    rules = [Rule(match=("t",), declared={}, guards={"truncate": {"max_bytes": 300}})]
    assert len(shown("x" * 1_000, Truncate(), rules=rules)["result"]) <= 300


def test_a_failing_tools_output_is_bounded_too() -> None:
    own = Envelope.error("exec_nonzero", "exit 1")
    own.value = "x" * 100_000
    read = shown(own, Truncate(), Summary())
    assert (read["status"], read["is_complete"]) == ("error", False)
    assert len(read["result"]) <= 65_536


json_values = st.recursive(
    st.none() | st.integers() | st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=200),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=5), inner, max_size=20),
    max_leaves=60,
)


@given(value=json_values, limit=st.integers(256, 2_000))
def test_any_result_is_within_its_limit_or_whole(value: Any, limit: int) -> None:
    read = shown(value, Truncate(max_bytes=limit))
    payload = read.get("result", read.get("results"))  # None has neither
    assert len(json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()) <= limit
    if read.get("is_complete") is not False:
        assert payload == value
