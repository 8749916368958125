"""
What is known of a call before it runs, computed by one function for live sessions and for records (MISSION A12).
"""

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Loops, Policy
from guardrails.core.engine.chain import Chain
from guardrails.core.repetition.learned import features as module
from guardrails.core.repetition.learned.features import FACTORS, RECENT, features
from guardrails.core.state.state import SessionState, admit, settle, touch
from guardrails.core.text.signature import low64, sign
from guardrails.core.values.types import Outcome, ToolCall
from guardrails.offline.learning.repeats.rows import rows_of
from guardrails.offline.readers import Report, open_calls


def call_of(tool: str, arguments: Any) -> ToolCall:
    signature, canonical = sign(tool, arguments)
    sig = None if signature is None else low64(signature)
    return ToolCall(tool, arguments, "c", signature, sig, canonical=canonical)


def known(history: list[tuple[str, Any, int, Any]], tool: str, arguments: Any, **more: Any) -> dict[str, int]:
    """
    The levels of a call after *history*: (tool, arguments, result hash, error type), each a minute after the other.
    """
    state = SessionState()
    for at, (name, given_arguments, result, error) in enumerate(history):
        touch(state, at * 60_000)
        call = call_of(name, given_arguments)
        features(call, state, read_only=False, polling=False)
        pending = admit(state, call, 0, 0, None, more.get("changes", True), True, 20)
        settle(state, pending, Outcome(None, error) if error else Outcome(), result, 7 if error else 0)
    touch(state, len(history) * 60_000)
    levels = features(
        call_of(tool, arguments), state, read_only=more.get("read_only", False), polling=more.get("polling", False)
    )
    assert levels is not None
    return dict(zip(FACTORS, levels, strict=True))


A = {"q": "inn"}
ROWS: list[tuple[str, list[tuple[str, Any, int, Any]], dict[str, int]]] = [
    ("a second call", [("find", A, 1, None)], {"same": 1, "alike": 5, "two": 0, "brought": 1, "last": 1, "ago": 3}),
    ("equal twice", [("find", A, 1, None)] * 2, {"same": 2, "two": 1, "brought": 2, "period": 1, "run": 2}),
    ("news twice", [("find", A, 1, None), ("find", A, 2, None)], {"same": 2, "two": 2, "brought": 1, "dull": 0}),
    ("a failure", [("find", A, 1, "not_found")], {"last": 3, "brought": 3, "dull": 1, "err_run": 1}),
    ("a failure that passes", [("find", A, 1, "timeout")], {"last": 2}),
    ("work between", [("find", A, 1, None), ("edit", {}, 2, None)], {"changed": 1, "gap": 2, "run": 0, "period": 0}),
    (
        "two in turns",
        [("find", A, 1, None), ("find", {"q": "bar"}, 2, None)] * 2,
        {"period": 2, "same": 2, "gap": 2, "changed": 0},
    ),
]


@pytest.mark.parametrize(("history", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_levels_say_what_came_before(history: list[tuple[str, Any, int, Any]], expected: dict[str, int]) -> None:
    found = known(history, "find", A)
    assert {name: found[name] for name in expected} == expected


def test_a_tool_that_waits_is_known_by_declaration_and_by_name() -> None:
    assert known([("find", A, 1, None)], "find", A, polling=True)["kind"] == 2
    assert known([("job_status", A, 1, None)], "job_status", A)["kind"] == 2
    assert known([("find", A, 1, None)], "find", A, read_only=True)["kind"] == 1


def test_a_fresh_call_after_nothing_dull_is_not_looked_at() -> None:
    state = SessionState()
    settle(state, admit(state, call_of("find", A), 0, 0, None, True, True, 20), Outcome(), 1)
    state.dull_seq = -RECENT
    call = call_of("find", {"q": "bar"})
    assert features(call, state, read_only=False, polling=False) is None
    assert call.sketch is None


VALUES = st.one_of(st.none(), st.text(), st.binary(max_size=8), st.integers(), st.floats(), st.just("宿" * 9_000))
CALLS = st.tuples(
    st.sampled_from(["find", "поиск", "job_status"]),
    st.dictionaries(st.text(max_size=3), VALUES, max_size=3),
    st.integers(-2, 2),
    st.sampled_from([None, "timeout", "not_found"]),
    st.integers(-(10**6), 10**6),
)


@given(st.lists(CALLS, min_size=1, max_size=30))
def test_levels_stay_in_range_whatever_is_called_and_however_clocks_go(calls: list[Any]) -> None:
    state = SessionState()
    for tool, arguments, result, error, now in calls:
        touch(state, now)
        call = call_of(tool, arguments)
        found = features(call, state, read_only=False, polling=False)
        if found is not None:
            assert all(0 <= level < radix for level, radix in zip(found, FACTORS.values(), strict=True))
        settle(
            state,
            admit(state, call, 0, 0, None, True, True, 20),
            Outcome(None, error) if error else Outcome(),
            result,
        )


def test_records_of_a_session_give_the_levels_that_serving_computed(
    clock: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Any] = []
    plain = module.levels

    def noted(*given_values: Any, **named: Any) -> Any:
        served.append(plain(*given_values, **named))
        return served[-1]

    monkeypatch.setattr("guardrails.core.guards.repeats.loops.levels", noted)
    path = tmp_path / "r.jsonl"
    guard = Loops(
        model="default", model_nudge=None, model_deny=2, identical_deny=None, cycle_deny=None, final_after=None
    )
    policy = Policy([guard])
    session = policy.session("s", clock=clock, records=path)
    results: list[Any] = ["a", "a", ["x"] * 90, [], ValueError("no such inn: 7"), "a 10:00:01", "a 10:00:02"]
    for n in range(60):
        session.begin_turn()
        clock.advance(7)
        decision = session.decide("find", {"q": f"inn {n % 4}", "at": n % 3}) if n % 5 else session.decide("edit", {})
        if decision.allowed:
            session.complete(decision, results[n * n % len(results)])
    policy._sink(path).flush()  # type: ignore[union-attr]
    monkeypatch.undo()
    rows = list(rows_of(open_calls(str(path), Report()), Chain([])))
    assert len(rows) == 60
    assert [row.levels for row in rows if row.levels is not None] == [found for found in served if found is not None]
    assert len(served) > 20
