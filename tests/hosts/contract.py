"""
What every host owes: behaviours that hold for its adapter, with its real package and a scripted model.

`tests/hosts/test_NAME.py` has `class TestNAME(Contract)` with a `driver`: a class, or a function, that makes one. It is made
anew for each test.
"""

import json

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from guardrails import Budget, Denials, Duplicates, MemorySink, Policy
from guardrails.core.records.replay import replay
from tests.conftest import FakeClock

from .driver import Asked, Call, Driver, Ran, Say, Script


def searching(ran: list[str], result: str = "nothing found") -> Callable[[str], str]:
    """
    The tool `search`, which notes in *ran* what it is asked.
    """

    def search(query: str) -> str:
        """Search the web for a query."""
        ran.append(query)
        return result

    return search


def asearching(ran: list[str], result: str = "nothing found") -> Callable[[str], Any]:
    """
    The same, asynchronous.
    """

    async def search(query: str) -> str:
        """Search the web for a query."""
        ran.append(query)
        return result

    return search


def search(query: str, id: str | None = None) -> Call:
    """
    A call of it.
    """
    return Call("search", {"query": query}, id)


def stuck(asked: Asked) -> Say:
    """
    A model that makes the same call until its tools are off.
    """
    return Say("I know nothing of it.") if asked.off else Say(calls=(search("x"),))


def roaming(asked: Asked) -> Say:
    """
    A model that makes another call each time until its tools are off.
    """
    return Say("I know nothing of it.") if asked.off else Say(calls=(search(f"q{asked.n}"),))


def in_turn(*said: Say) -> Script:
    """
    A model that says one after the other, and then that it is done.
    """
    return lambda asked: said[asked.n] if asked.n < len(said) else Say("Done.")


def envelope(text: str) -> Mapping[str, Any]:
    """
    The envelope that a model reads.
    """
    read = json.loads(text)
    assert isinstance(read, dict), text
    return read


class Contract:
    """
    The behaviours, one test each.
    """

    driver: Callable[[], Driver]

    @pytest.fixture(autouse=True)
    def _host(self, request: pytest.FixtureRequest) -> None:
        self.host: Driver = type(self).driver()
        reason = self.host.cannot.get(getattr(request.node, "originalname", request.node.name))
        if reason is not None and request.function.__qualname__.startswith("Contract."):
            request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))

    def go(
        self,
        guarded: Any,
        tools: Sequence[Callable[..., Any]],
        script: Script,
        *,
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Ran:
        """
        A run behind a new adapter of *guarded*. Nothing is raised, and every call in the conversation has a result.
        """
        ran = self.host.run(self.host.adapter(guarded, **(options or {})), tools, script, **more)
        if ran.error is not None:
            raise ran.error
        assert ran.unanswered == []
        return ran

    def test_a_stuck_model_runs_the_same_call_at_most_three_times(self) -> None:
        ran: list[str] = []
        self.go(Policy.load("default"), [searching(ran)], stuck)
        assert 1 <= len(ran) <= 3

    def test_a_stuck_model_comes_to_a_final_answer(self) -> None:
        done = self.go(Policy.load("default"), [searching([])], stuck)
        assert done.answer == "I know nothing of it."
        assert len(done.asked) <= 8

    def test_distinct_calls_run_up_to_the_cap_exactly(self) -> None:
        ran: list[str] = []
        self.go(Policy([Budget(max_calls=3)]), [searching(ran)], roaming)
        assert ran == ["q0", "q1", "q2"]

    def test_a_model_at_the_cap_comes_to_a_final_answer(self) -> None:
        done = self.go(Policy([Budget(max_calls=3)]), [searching([])], roaming)
        assert done.answer == "I know nothing of it."
        assert [asked.off for asked in done.asked] == [False, False, False, True]

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
        assert [envelope(result)["status"] for result in done.results].count("limit_reached") == 3

    def test_of_six_identical_calls_at_once_one_runs(self) -> None:
        ran: list[str] = []
        six = Say(calls=tuple(search("x") for _ in range(6)))
        done = self.go(Policy([Duplicates()]), [searching(ran)], in_turn(six))
        assert ran == ["x"]
        assert [envelope(result)["status"] for result in done.results].count("duplicate_call_blocked") == 5

    def test_the_model_reads_why_a_call_was_refused_and_what_to_do(self) -> None:
        done = self.go(
            Policy([Duplicates()]), [searching([])], in_turn(Say(calls=(search("x"),)), Say(calls=(search("x"),)))
        )
        refused = envelope(done.results[-1])
        assert refused["status"] == "duplicate_call_blocked"
        assert refused["code"] == "duplicates.window"
        assert refused["next_action_hint"]
        assert done.asked[-1].results[-1] == done.results[-1]

    def test_an_argument_that_is_wrong_is_named_and_nothing_runs(self) -> None:
        ran: list[int] = []

        def book(nights: int) -> str:
            """Book a room."""
            ran.append(nights)
            return "booked"

        wrong = Say(calls=(Call("book", {"nights": "many"}),))
        right = Say(calls=(Call("book", {"nights": 2}),))
        done = self.go(Policy.load("default"), [book], in_turn(wrong, right))
        refused = envelope(done.results[0])
        assert refused["status"] == "validation_error"
        assert "nights" in json.dumps(refused["errors"])
        assert ran == [2]
        assert done.answer == "Done."

    def test_an_exception_in_a_tool_is_data_and_the_run_goes_on(self) -> None:
        def search(query: str) -> str:
            """Search the web for a query."""
            raise ConnectionError("the index is down")

        done = self.go(Policy.load("default"), [search], in_turn(Say(calls=(Call("search", {"query": "x"}),))))
        failed = envelope(done.results[0])
        assert failed["status"] == "error"
        assert failed["error_type"] == "connection"
        assert "the index is down" in failed["error_message"]
        assert done.answer == "Done."

    def test_the_records_of_a_run_replay_to_the_same_decisions(self, clock: FakeClock) -> None:
        sink, policy = MemorySink(), Policy([Budget(max_calls=4), Duplicates(), Denials()])
        calls = (search("a"), search("b"), search("a"))
        script = lambda asked: Say("Done.") if asked.off else Say(calls=calls)  # noqa: E731
        self.go(policy, [searching([])], script, options={"records": sink, "clock": clock}, thread="t")
        again = list(replay(policy.chain, sink.records))
        assert again
        assert all(one.same for one in again)
        assert {record["session_id"] for record in sink.records} == {"t"}
