"""
What the learned judgement of repeats changes, where a policy asks for it (MISSION A6, A12).
"""

from pathlib import Path
from typing import Any

import pytest

from guardrails import Loops, Policy
from guardrails.core.records.replay import replay
from guardrails.core.repetition.learned.model_format import body_of, text_of
from guardrails.core.retries.scoring import Term
from guardrails.sinks import MemorySink


@pytest.fixture
def sure(tmp_path: Path) -> str:
    """
    A model that knows one thing: an exact repeat brings nothing, unless another tool worked in between.
    """
    terms = [Term(("same", "changed"), {"1|0": 9.0, "2|0": 9.0})]
    path = tmp_path / "sure.json"
    path.write_bytes(text_of(body_of(-4.0, terms, 0.95, golden=[(0,) * 14], training={})))
    return str(path)


def said(session: Any, *calls: tuple[str, Any]) -> list[str | None]:
    heard = []
    for tool, result in calls:
        session.begin_turn()
        decision = session.decide(tool, {"q": "inn"})
        heard.append(decision.code or (decision.nudges[0][0] if decision.nudges else None))
        if decision.allowed:
            session.complete(decision, result)
    return heard


CALLS = (("find", "a"), ("find", "a"))


def test_a_second_occurrence_is_refused_with_the_earlier_result_at_hand(clock: Any, sure: str) -> None:
    session = Policy([Loops(model=sure)]).session("s", clock=clock)
    assert said(session, CALLS[0]) == [None]
    session.begin_turn()
    decision = session.decide("find", {"q": "inn"})
    assert (decision.code, decision.denials[0].status) == ("loops.learned", "duplicate_call_blocked")
    assert "99 % sure" in decision.denials[0].message


@pytest.mark.parametrize(
    ("settings", "calls", "expected"),
    [
        ({"model_deny": 2}, CALLS, [None, "loops.learned"]),
        ({"model_deny": 2, "model_nudge": None}, CALLS, [None, None]),
        ({}, (("find", "a"), ("edit", "ok"), ("find", "a")), [None, None, None]),
        ({}, (("job_status", "a"),) * 2, [None, None]),
    ],
    ids=["nudged only", "neither", "work in between", "a tool that waits"],
)
def test_what_is_said_of_the_second_of_two_identical_calls(
    clock: Any, sure: str, settings: Any, calls: Any, expected: list[str | None]
) -> None:
    assert said(Policy([Loops(model=sure, **settings)]).session("s", clock=clock), *calls) == expected


def test_a_command_that_waits_is_no_business_of_the_model(clock: Any, sure: str) -> None:
    session = Policy([Loops(model=sure)]).session("s", clock=clock)
    for _ in range(3):
        session.begin_turn()
        decision = session.decide("bash", {"command": "kubectl -n shop get pods"})
        assert (decision.code, decision.nudges) == (None, ())
        session.complete(decision, "web 0/1")


def test_without_a_model_nothing_is_said_of_a_second_occurrence(clock: Any) -> None:
    assert said(Policy([Loops()]).session("s", clock=clock), *CALLS) == [None, None]


def test_a_replay_of_its_records_decides_alike(clock: Any, sure: str) -> None:
    sink = MemorySink()
    policy = Policy([Loops(model=sure, model_deny=2)])
    session = policy.session("s", clock=clock, records=sink)
    said(session, *CALLS, ("edit", "ok"), *CALLS)
    again = list(replay(policy.chain, sink.records))
    assert len(again) == 5
    assert all(one.same for one in again)
