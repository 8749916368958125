"""
The library's own records as calls.
"""

import json
import random

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Duplicates, JsonLines, Policy
from tests.tables import table


def run(tool: str, arguments: Any) -> Any:
    if tool == "boom":
        raise TimeoutError("slow")
    return {"hits": [1, 2], "query": arguments}


def told(life: int, _tool: str, _arguments: Any) -> Any:
    return {"life": life}


@pytest.fixture
def recorded(tmp_path: Path, clock: Any) -> list[str]:
    """
    The lines of two sessions, as a session writes them.
    """
    sink = JsonLines(tmp_path / "r.jsonl", results="full")
    policy = Policy([Budget(max_calls=20), Duplicates(window=5)])
    with (
        policy.session("s-1", records=sink, clock=clock) as one,
        policy.session("s-2", records=sink, clock=clock) as two,
    ):
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
    sink.close()
    return (tmp_path / "r.jsonl").read_text().splitlines()


def test_own_records_are_calls_joined_with_their_results(read: Any, recorded: list[str]) -> None:
    calls, report = read("\n".join(recorded))
    one = [c for c in calls if c.session_id == "s-1"]
    assert [(c.call_index, c.id, c.tool, c.turn, c.has_result, c.is_error, c.error_type) for c in one] == [
        (0, "c1", "search", 1, True, False, None),
        (1, "c2", "search", 1, False, None, None),
        (2, "c3", "search", 1, True, False, None),
        (3, "c4", "boom", 2, True, True, "timeout"),
        (4, "c5", "search", 2, False, None, None),
    ], "a denied call was made by the model, but has no result"
    assert [(c.tokens_in, c.tokens_out, c.cost_usd) for c in one] == [
        (100, 10, 0.01),
        (None, None, None),
        (None, None, None),
        (120, 12, 0.02),
        (None, None, None),
    ]
    assert one[0].result == '{"hits":[1,2],"query":{"q":"a"}}'
    assert (one[2].duration_ms, one[2].result) == (2000, "late but there")
    assert one[3].arguments == {"n": 2**70}
    settled = json.loads(next(line for line in recorded if '"settle"' in line))
    assert (one[0].plain_hash, one[0].masked_hash) == (settled["result_hash"], settled["result_hash_masked"])
    assert one[0].sig == settled["sig"]
    assert [c.id for c in calls if c.session_id == "s-2"] == ["c1"]
    assert report.broken == []


def test_threads_may_write_the_events_of_a_session_in_another_order(read: Any, recorded: list[str]) -> None:
    straight, _ = read("\n".join(recorded))
    by_session = {name: [c for c in straight if c.session_id == name] for name in ("s-1", "s-2")}
    for seed in range(20):
        lines = recorded[3:]
        random.Random(seed).shuffle(lines)
        calls, _ = read("\n".join(recorded[:3] + lines))
        assert {name: [c for c in calls if c.session_id == name] for name in by_session} == by_session


def test_events_that_stand_there_twice_happened_once(read: Any, recorded: list[str]) -> None:
    once, _ = read("\n".join(recorded))
    calls, _ = read("\n".join(recorded + recorded))
    assert calls == once


def test_two_lives_of_one_name_are_two_sessions_however_their_lines_are_mixed(
    read: Any, tmp_path: Path, clock: Any
) -> None:
    """
    Each with its own numbers, charges and results; the second life of a name knows nothing of the first.
    """
    lives = []
    for number in range(2):
        sink = JsonLines(tmp_path / f"{number}.jsonl", results="full")
        with Policy([Budget(max_calls=9)]).session("trip", records=sink, clock=clock) as session:
            session.charge(model="m", usage={"prompt_tokens": 10 + number, "completion_tokens": 1})
            for n in range(3):
                session.call("search", {"q": n}, partial(told, number))
        sink.close()
        lives.append((tmp_path / f"{number}.jsonl").read_text().splitlines())
    mixed = [line for pair in zip(*lives, strict=True) for line in pair]
    calls, report = read("\n".join(mixed))
    assert report.notices == []
    assert {c.session_id for c in calls} == {"trip"}
    of_life: dict[str, list[Any]] = {}
    for call in calls:
        of_life.setdefault(call.run, []).append((call.call_index, call.tokens_in, call.result))
    assert list(of_life.values()) == [
        [(0, 10, '{"life":0}'), (1, None, '{"life":0}'), (2, None, '{"life":0}')],
        [(0, 11, '{"life":1}'), (1, None, '{"life":1}'), (2, None, '{"life":1}')],
    ]


@table("line", ["{", "[]", '{"n": 1}', '{"event": "call", "session_id": 1, "n": 2}', "\0\0"])
def test_what_is_no_record_is_told_by_its_line(read: Any, recorded: list[str], line: str) -> None:
    calls, report = read("\n".join([*recorded[:4], line, *recorded[4:]]))
    assert len(calls) == 6
    assert report.broken == [("given", 5)]
