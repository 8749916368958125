"""
The library's own records as calls.
"""

import dataclasses
import json
import random

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Duplicates, JsonLines, Policy
from tests.tables import table


def run(tool: str, arguments: Any) -> Any:
    if tool == "boom":
        raise TimeoutError("slow")
    return {"hits": [1, 2], "query": arguments}


@pytest.fixture
def recorded(tmp_path: Path, clock: Any) -> list[str]:
    """
    The lines of two sessions, as a session writes them.
    """
    policy, path = Policy([Budget(max_calls=20), Duplicates(window=5)]), tmp_path / "r.jsonl"
    with JsonLines(path, results="full") as sink:
        one, two = (policy.session(name, records=sink, clock=clock) for name in ("s-1", "s-2"))
        one.charge(model="gpt-5-mini", usage={"prompt_tokens": 100, "completion_tokens": 10}, cost_usd=0.01)
        one.call("search", {"q": "a"}, run, id="c1")
        two.call("search", {"q": "a"}, run, id="c1")
        one.call("search", {"q": "a"}, run, id="c2")
        clock.advance(1)
        open_one = one.decide("search", {"q": "b"}, id="c3")
        one.charge(model="gpt-5-mini", usage={"prompt_tokens": 120, "completion_tokens": 12}, cost_usd=0.02)
        one.call("boom", {"n": 2**70}, run, id="c4")
        clock.advance(2)
        one.complete(open_one, "late but there")
        one.extend(max_calls=5)
        one.decide("search", {"q": "c"}, id="c5")
        one.close()
        two.close()
    return path.read_text().splitlines()


def test_own_records_are_calls_joined_with_their_results(read: Any, recorded: list[str]) -> None:
    calls, report = read("\n".join(recorded))
    one = [c for c in calls if c.session_id == "s-1"]
    rows = [(c.call_index, c.id, c.tool, c.turn, c.has_result, c.error_type, c.tokens_in, c.cost_usd) for c in one]
    assert rows == [
        (0, "c1", "search", 1, True, None, 100, 0.01),
        (1, "c2", "search", 1, False, None, None, None),
        (2, "c3", "search", 1, True, None, None, None),
        (3, "c4", "boom", 2, True, "timeout", 120, 0.02),
        (4, "c5", "search", 2, False, None, None, None),
    ], "a denied call was made by the model, but has no result"
    assert one[0].result == '{"hits":[1,2],"query":{"q":"a"}}'
    assert (one[2].duration_ms, one[2].result) == (2000, "late but there")
    assert one[3].arguments == {"n": 2**70}
    settled = json.loads(next(line for line in recorded if '"settle"' in line))
    found = (one[0].sig, one[0].plain_hash, one[0].masked_hash)
    assert found == tuple(settled[name] for name in ("sig", "result_hash", "result_hash_masked"))
    assert [c.id for c in calls if c.session_id == "s-2"] == ["c1"]
    assert report.broken == []


def test_lines_in_another_order_and_lines_that_stand_there_twice_are_the_same_calls(
    read: Any, recorded: list[str]
) -> None:
    def by_session(lines: list[str]) -> list[Any]:
        return sorted(read("\n".join(lines))[0], key=lambda call: (call.session_id, call.call_index))

    expected = by_session(recorded)
    for seed in range(20):
        lines = recorded[3:] * 2
        random.Random(seed).shuffle(lines)
        assert by_session(recorded[:3] + lines) == expected
    # A second life of a name, with the same numbers, knows nothing of the first.
    other = [line.replace(json.loads(line)["run"], "other") for line in recorded]
    both = by_session([line for pair in zip(recorded, other, strict=True) for line in pair])
    assert [[dataclasses.replace(call, run="") for call in both][at::2] for at in (0, 1)] == [
        [dataclasses.replace(call, run="") for call in expected]
    ] * 2


@table("line", ["{", "[]", '{"n": 1}', '{"event": "call", "session_id": 1, "n": 2}', "\0\0"])
def test_what_is_no_record_is_told_by_its_line(read: Any, recorded: list[str], line: str) -> None:
    calls, report = read("\n".join([*recorded[:4], line, *recorded[4:]]))
    assert len(calls) == 6
    assert report.broken == [("given", 5)]
