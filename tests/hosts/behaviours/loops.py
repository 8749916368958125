"""
How far a model gets that calls without end: the same call, others, several at once.
"""

import asyncio

from typing import Any

import pytest

from guardrails import Budget, Duplicates, Policy
from guardrails.core.chain import Rule
from tests.hosts.driver import Call, Say

from .base import Behaviours, asearching, in_turn, roaming, search, searching, statuses, stuck


class Loops(Behaviours):
    """
    What runs, and what does not.
    """

    @pytest.mark.parametrize(
        ("tool", "way"), [(searching, {}), (asearching, {}), (searching, {"sync": True}), (searching, {"stream": True})]
    )
    def test_a_stuck_model_runs_the_same_call_at_most_three_times(self, tool: Any, way: Any) -> None:
        ran: list[str] = []
        self.go(Policy.load("default"), [tool(ran)], stuck, **way)
        assert 1 <= len(ran) <= 3

    def test_distinct_calls_run_up_to_the_cap_exactly(self) -> None:
        ran: list[str] = []
        self.go(Policy([Budget(max_calls=3)]), [searching(ran)], roaming)
        assert ran == ["q0", "q1", "q2"]

    def test_a_look_after_an_edit_of_ones_own_runs(self) -> None:
        ran: list[str] = []

        def read_file(path: str) -> str:
            """Read a file."""
            ran.append("read")
            return "the very same text"

        def edit_file(path: str, text: str) -> str:
            """Write a file."""
            ran.append("edit")
            return "written"

        look = Say(calls=(Call("read_file", {"path": "a"}),))
        edits = [Say(calls=(Call("edit_file", {"path": "a", "text": f"v{n}"}),)) for n in range(4)]
        steps = [step for edit in edits for step in (look, edit)]
        done = self.go(Policy.load("default"), [read_file, edit_file], in_turn(*steps, look))
        assert ran == ["read", "edit"] * 4 + ["read"]
        assert done.answer == "Done."

    def test_of_five_calls_at_once_as_many_run_as_the_cap_lets_and_each_is_answered(self) -> None:
        ran: list[str] = []
        five = Say(calls=tuple(search(f"q{n}") for n in range(5)))
        done = self.go(Policy([Budget(max_calls=2)]), [searching(ran)], in_turn(five))
        assert len(ran) == 2
        assert len(done.results) == 5
        assert statuses(done).count("limit_reached") == 3

    def test_of_six_identical_calls_at_once_one_runs(self) -> None:
        ran: list[str] = []
        six = Say(calls=tuple(search("x") for _ in range(6)))
        done = self.go(Policy([Duplicates()]), [searching(ran)], in_turn(six))
        assert ran == ["x"]
        assert statuses(done).count("duplicate_call_blocked") == 5

    def test_calls_of_one_turn_run_at_the_same_time(self) -> None:
        here, there = asyncio.Event(), asyncio.Event()

        async def left() -> str:
            """Wait for the right one."""
            here.set()
            await there.wait()
            return "met"

        async def right() -> str:
            """Wait for the left one."""
            there.set()
            await here.wait()
            return "met"

        # Where one runs after the other it waits for ever: it is given up, and says so.
        waits = Policy([Budget(max_calls=9)], rules=[Rule(match="*", declared={"timeout": 2})])
        done = self.go(waits, [left, right], in_turn(Say(calls=(Call("left"), Call("right")))))
        assert statuses(done) == ["success", "success"]
