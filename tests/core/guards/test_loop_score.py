"""
A learned score of calls that bring nothing new (MISSION A12).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy, Tool
from guardrails.core.guards.loop_score import LoopScore
from guardrails.core.retries.model import text_of
from guardrails.core.retries.serving import LOOPS
from tests.conftest import FakeClock
from tests.core.retries.conftest import text
from tests.tables import table


NONE = "Sold out: no hotel in Rome has a room"
QUESTIONS = ("cheap hotel in Rome centre", "cheap hotel Rome in centre", "cheap hotel Rome centre please")
BODY: dict[str, Any] = {"tools": {}, "evidence": {}, "corrections": {}, "profiles": [], "training": {}}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """
    Nothing new is likely after two equal answers to nearly equal questions, and after two failures.
    """
    weights = {"near 2": 3.0, "stale 1": 3.0, "failed 2": 6.0}
    path = tmp_path / "loops.json"
    path.write_bytes(text_of({**BODY, "intercept": -3.0, "weights": weights}, LOOPS))
    return path


def codes(policy: Policy, tool: str = "search", asked: Sequence[Any] = QUESTIONS, result: Any = NONE) -> list[Any]:
    """
    What is told of calls that ask for one after the other, each in a turn of its own.
    """
    made, clock = [], FakeClock()
    with policy.session("s", clock=clock) as session:
        for question in asked:
            session.begin_turn()
            clock.advance(10)
            decision = session.decide(tool, {"q": question})
            made.append(decision.code or [code for code, _ in decision.nudges])
            if decision.allowed:
                session.complete(decision, result)
    return made


@table(("declared", "settings", "last"), [
    ({"read_only": True}, {}, ["loop_score.likely"]), ({"read_only": True}, {"nudge": 0.99}, []),
    ({"read_only": True, "repeats": "allow"}, {}, []), ({"read_only": False}, {}, ["loop_score.likely"]),
])  # fmt: skip
def test_a12_a_call_is_told_from_a_chance_on(model: Path, declared: Any, settings: dict[str, Any], last: Any) -> None:
    policy = Policy([LoopScore(model=str(model), **settings)], tools=[Tool(name="search", **declared)])
    assert codes(policy) == [[], [], last]


def test_without_a_model_nothing_is_said_and_a_model_of_retries_is_none(tmp_path: Path) -> None:
    other = tmp_path / "retry.json"
    for content in (None, text()):
        if content is not None:
            other.write_bytes(content)
        policy = Policy([LoopScore(model=str(other), nudge=0.0)])
        assert codes(policy) == [[], [], []]
