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


@guard
class Verbose(Guard):
    def shape(self, envelope: Envelope, call: Any, outcome: Any, state: Any, mine: Any, facts: Any) -> Envelope:
        envelope.value = "y" * 10_000
        return envelope


FAILED = Envelope.error("exec_nonzero", "exit 1")
FAILED.value = "x" * 100_000
SMALL = [Rule(match="t", guards={"truncate": {"max_bytes": 300}})]


@table(("value", "guards", "settings", "most", "complete"), [
    ("x" * (65_536 - 2), [Truncate()], {}, 65_536, None), ("x" * (65_536 - 1), [Truncate()], {}, 65_536, False),
    # What own guards put into a result is bounded too, and the output of a tool that fails.
    ("small", [Truncate(max_bytes=1_000), Verbose()], {}, 1_000, False), (FAILED, [Truncate(), Summary()], {}, 65_536, False),
    ("x" * 1_000, [Truncate()], {"rules": SMALL}, 300, False),
])  # fmt: skip
def test_a_result_is_cut_to_its_limit_and_one_of_exactly_the_limit_is_whole(
    value: Any, guards: Any, settings: Any, most: int, complete: bool | None
) -> None:
    read = shown(value, *guards, **settings)
    assert read.get("is_complete") is complete
    assert most / 2 < len(read["result"]) <= most


@table("form", ["nested", "merged"])
def test_a_cut_is_told_once_with_one_size(form: Any) -> None:
    read = shown({"rows": "x" * 70_000}, Truncate(), envelope=form)
    told = {"is_complete": False, "next_action_hint": "Ask for a smaller part: a range, a filter or a page."}
    assert read.items() >= told.items()
    assert json.dumps(read).count("original_bytes") == 1


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
