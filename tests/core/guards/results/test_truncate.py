"""
How much of one result the model reads.
"""

import json

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Envelope, Guard, Policy, Rule, Summary, Truncate, guard
from tests.tables import table


def shown(value: Any, *guards: Any, **settings: Any) -> dict[str, Any]:
    session = Policy(guards, **settings).session("s", clock=lambda: 0.0)
    read: dict[str, Any] = json.loads(session.call("t", {}, lambda *_: value).to_json())
    return read


def test_d3_text_gets_a_suffix() -> None:
    read = shown("x" * 100_000, Truncate())
    assert len(json.dumps(read["result"])) <= 65_536
    assert read["result"].endswith("of 100,000 characters shown]")
    assert read["is_complete"] is False


def test_d3_a_list_keeps_leading_elements_and_a_sentinel() -> None:
    read = shown([{"id": n} for n in range(50_000)], Truncate())
    *kept, sentinel = read["results"]
    assert kept == [{"id": n} for n in range(len(kept))]
    assert sentinel == {"_truncated": True, "omitted": 50_000 - len(kept)}


def test_d3_an_object_goes_into_an_envelope_of_its_leading_json() -> None:
    value = {f"key_{n}": "x" * 50 for n in range(5_000)}
    read = shown(value, Truncate())
    assert json.dumps(value, separators=(",", ":")).startswith(read["result"]["_truncated_json"])
    assert read["result"]["original_bytes"] == pytest.approx(len(json.dumps(value, separators=(",", ":"))), rel=0.05)


def test_a_result_of_exactly_the_limit_is_whole() -> None:
    assert "is_complete" not in shown("x" * (65_536 - 2), Truncate())
    assert shown("x" * (65_536 - 1), Truncate())["is_complete"] is False


def test_the_hint_says_how_much_is_there_and_what_to_ask_for() -> None:
    hint = shown("x" * 100_000, Truncate())["next_action_hint"]
    assert (
        hint
        == "The result was cut to 65,535 of about 100,002 bytes. Ask for a smaller part: a range, a filter or a page."
    )


@table("form", ["nested", "merged"])
def test_a_cut_result_says_so_in_both_forms(form: Any) -> None:
    read = shown({"rows": "x" * 70_000}, Truncate(), envelope=form)
    assert read["is_complete"] is False
    assert "was cut" in read["next_action_hint"]


def test_what_own_guards_put_into_a_result_is_bounded_too() -> None:
    @guard
    class Verbose(Guard):
        def shape(self, envelope: Envelope, call: Any, outcome: Any, state: Any, facts: Any) -> Envelope:
            envelope.value = "y" * 10_000
            return envelope

    read = shown("small", Truncate(max_bytes=1_000), Verbose())
    assert len(read["result"]) < 1_000
    assert read["result"].startswith("yyy")


def test_each_tool_may_have_its_own_limit() -> None:
    rules = [Rule(match=("t",), declared={}, guards={"truncate": {"max_bytes": 300}})]
    assert len(shown("x" * 1_000, Truncate(), rules=rules)["result"]) <= 300


@table("mode", ["observe", "off"])
def test_where_it_is_not_enforced_a_result_is_whole(mode: Any) -> None:
    assert shown("x" * 100_000, Truncate(mode=mode)) == {
        "status": "success",
        "result": "x" * 100_000,
        "progress": {"calls_used": 1},
    }


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
