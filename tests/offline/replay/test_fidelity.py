"""
Sessions that were recorded live: decided again exactly, and judged as they were decided.
"""

import json
import random
import threading
import time

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Denials, Duplicates, Policy, Rate, Retryable, Streak
from guardrails.offline.replay.exact import replayed
from guardrails.offline.replay.judge import Judge
from guardrails.offline.transcripts import RecordedCall, Report
from guardrails.offline.transcripts.files import calls_in, inputs
from guardrails.session.session import Session
from guardrails.sinks import JsonLines, MemorySink


def policy() -> Policy:
    return Policy(
        [
            Budget(max_calls=60, max_cost_usd=5.0),
            Rate(max_calls_per_second=40),
            Streak(max_failures=4),
            Denials(),
            Duplicates(rule="evidence", window=20),
            Retryable(backoff=0.01, max_wait=0.05),
        ]
    )


def execute(tool: str, arguments: Any) -> Any:
    time.sleep(0)
    if tool == "flaky" and arguments["n"] % 3 == 0:
        raise TimeoutError(f"no answer within {arguments['n']} s")
    return {"rows": [arguments["n"] % 2]}


def work(session: Session, seed: int, calls: int = 40) -> None:
    chance = random.Random(seed)
    for _ in range(calls):
        if chance.random() < 0.2:
            session.charge(model="m", usage={"prompt_tokens": 10}, cost_usd=0.01, calls=chance.choice([None, 2]))
        tool, arguments = chance.choice(["look", "flaky", "write"]), {"n": chance.randrange(4)}
        if chance.random() < 0.2:
            decision = session.decide(tool, arguments, id=f"call_{chance.randrange(3)}")
            session.complete(decision, "late")
        else:
            session.call(tool, arguments, execute)


def decided(path: Path) -> tuple[int, set[str | None]]:
    calls = [record for record in map(json.loads, path.read_text().splitlines()) if record["event"] == "call"]
    return len(calls), {record["code"] for record in calls}


@pytest.mark.usefixtures("quick_switches")
def test_sessions_shared_by_threads_are_decided_again_exactly(tmp_path: Path) -> None:
    path, own = tmp_path / "records.jsonl", policy()
    with JsonLines(path) as sink:
        sessions = [own.session(f"s{n}", records=sink) for n in range(2)]
        threads = [threading.Thread(target=work, args=(sessions[n % 2], n, 25)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    calls, codes = decided(path)
    found = replayed(own, inputs([str(path)]))
    assert (found.same, found.first, found.calls, found.sessions) == (True, [], calls, 2)
    # Which guard refuses first is a matter of how the threads took turns.
    assert None in codes
    assert len(codes) > 1


Act = tuple[str, int, float, float]

acts = st.lists(
    st.tuples(
        st.sampled_from(["look", "flaky", "charge"]),
        st.integers(0, 3),
        st.sampled_from([0.0, 0.2, 3.0]),
        st.sampled_from([0.0, 0.5, 700.0]),
    ),
    max_size=25,
)


@given(story=acts)
def test_a_session_that_was_recorded_is_judged_as_it_was_decided(story: list[Act]) -> None:
    own, sink = policy(), MemorySink()
    now = [1_800_000_000.0]
    session = own.session("s", records=sink, clock=lambda: now[0])

    def run(seconds: float) -> Callable[[str, Any], Any]:
        def tool(name: str, arguments: Any) -> Any:
            now[0] += seconds
            return execute(name, arguments)

        return tool

    for tool, n, wait, seconds in story:
        now[0] += wait
        if tool == "charge":
            session.charge(model="m", usage={"prompt_tokens": n}, cost_usd=n / 10)
        else:
            session.call(tool, {"n": n}, run(seconds))
    judge = Judge(own)
    made = read(sink)
    judged = [(call.tool, each.code) for call, each in zip(made, judge.judge(made) if made else [], strict=True)]
    calls = [record for record in sink.records if record["event"] == "call"]
    assert judged == [(record["tool"], record["code"]) for record in calls]


def read(sink: MemorySink) -> list[RecordedCall]:
    lines = [json.dumps(record, default=str).encode() for record in map(_plain, sink.records)]
    return calls_in(b"\n".join(lines), "own", Report())


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("arguments", "result")}
