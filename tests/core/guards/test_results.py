"""
Results that stand alone, and how much of one the model reads.
"""

import copy
import json

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Envelope, Guard, Policy, Summary, Truncate, guard
from guardrails.core.chain import Rule
from guardrails.core.guards.summary import MAX_SUMMARY, summarise
from tests.core.guards.calls import gives
from tests.tables import table


def shown(value: Any, *guards: Any, arguments: Any = None, clock: Any = lambda: 0.0, **settings: Any) -> dict[str, Any]:
    session = Policy(guards, **settings).session("s", clock=clock)
    read: dict[str, Any] = json.loads(session.call("t", {} if arguments is None else arguments, gives(value)).to_json())
    return read


def test_a8_a_result_carries_its_query_its_progress_and_the_next_step(clock: Any) -> None:
    guards, asked = [Summary(), Budget(max_calls=3, max_elapsed=60)], {"city": "Tokyo"}
    read = shown([{"ok": True}], *guards, arguments=asked, clock=clock)
    assert (read["query_summary"], read["is_complete"]) == (asked, True)
    assert read["progress"] == {"calls_used": 1, "calls_left": 2}
    failed = shown(ValueError("no"), *guards, arguments=asked, clock=clock)
    assert (failed["status"], failed["query_summary"], "is_complete" in failed) == ("error", asked, False)
    own = {"query_summary": "mine", "total_matches": 9, "is_complete": False, "next_action_hint": "Page 2."}
    assert shown(Envelope.success([1], **own), *guards, arguments=asked).items() >= own.items()


@table(("arguments", "summary"), [
    (
        {"text": "x" * 1_000, "n": 7, "on": None, "rate": 0.5, "list": list(range(500))},
        {"text": "x" * 200 + "...", "n": 7, "on": None, "rate": 0.5, "list": f"{json.dumps([*range(500)], separators=(',', ':'))[:200]}..."},
    ),
    ({f"key_{n}": "x" * 200 for n in range(50)}, {**{f"key_{n}": "x" * 200 for n in range(4)}, "...": "cut"}),
])  # fmt: skip
def test_long_arguments_are_cut_string_by_string_and_then_as_a_whole(arguments: Any, summary: Any) -> None:
    assert summarise(arguments) == summary


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=400) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=300), inner, max_size=9),
    max_leaves=30,
)


@given(anything | st.text('\x01"\\\ud800😀', max_size=400))
def test_a_summary_is_at_most_1_kb_of_json_whatever_the_arguments(arguments: Any) -> None:
    text = Envelope.success(1, query_summary=summarise(arguments)).to_json()
    assert len(text.encode()) - len('{"status":"success","query_summary":,"result":1}') <= MAX_SUMMARY + 16


@table(("more", "change"), [
    ({"page": 1}, lambda given: given.pop("city")), ({"tags": ["wifi", {"pool": 1}]}, lambda given: given["tags"][1].clear()),
    ({"text": "x" * 300}, lambda given: given.clear()),
])  # fmt: skip
def test_the_echo_is_what_was_asked_though_the_tool_changes_its_arguments(more: Any, change: Any) -> None:
    arguments = {"city": "Tokyo", **more}
    expected = Policy([Summary()]).session("a").call("t", copy.deepcopy(arguments), gives([1])).query_summary
    echo = Policy([Summary()]).session("b").call("t", arguments, lambda _, given: [change(given)]).query_summary
    assert echo == expected
    assert echo["city"] == "Tokyo"


# Results that are cut


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
def test_d3_a_result_is_cut_to_its_limit(value: Any, guards: Any, settings: Any, most: int, complete: Any) -> None:
    read = shown(value, *guards, **settings)
    assert read.get("is_complete") is complete
    assert most / 2 < len(read["result"]) <= most


@table(("value", "form", "total"), [
    ({"rows": "x" * 70_000}, "nested", None), ({"rows": "x" * 70_000}, "merged", None), (list(range(70_000)), "nested", 70_000),
])  # fmt: skip
def test_a_cut_is_told_once_with_one_size(value: Any, form: Any, total: int | None) -> None:
    read = shown(value, Truncate(), Summary(), envelope=form)
    told = {"is_complete": False, "next_action_hint": "Ask for a smaller part: a range, a filter or a page."}
    assert read.items() >= told.items()
    assert (read.get("total_matches"), json.dumps(read).count("original_bytes")) == (total, int(total is None))


json_values = st.recursive(
    st.none() | st.integers() | st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=200),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text('ab"é', max_size=5), inner, max_size=20),
    max_leaves=60,
)


@given(value=json_values, limit=st.integers(256, 2_000))
def test_d3_any_result_is_within_its_limit_or_whole(value: Any, limit: int) -> None:
    read = shown(value, Truncate(max_bytes=limit))
    payload = read.get("result", read.get("results"))  # None has neither
    assert len(json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()) <= limit
    if read.get("is_complete") is not False:
        assert payload == value
