"""
What the model reads of one call, and what the tool sees of it.
"""

import asyncio
import json
import threading

import pytest

from guardrails import Budget, Duplicates, Policy, Truncate
from guardrails.core.chain import Rule
from tests.hosts.driver import Asked, Call, Say

from .base import Behaviours, asearching, envelope, in_turn, search, searching, statuses


class Calls(Behaviours):
    """
    Results, failures and refusals.
    """

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

    def test_arguments_that_are_no_json_are_told_of_and_the_run_goes_on(self) -> None:
        ran: list[str] = []
        broken = Say(calls=(Call("search", '{"query": "x'),))
        done = self.go(Policy.load("default"), [searching(ran)], in_turn(broken, Say(calls=(search("x"),))))
        assert envelope(done.results[0])["status"] == "validation_error"
        assert ran == ["x"]
        assert done.answer == "Done."
        beside = Say(calls=(search("y"), *broken.calls))
        done = self.go(Policy.load("default"), [searching(ran)], in_turn(beside))
        assert sorted(statuses(done)) == ["success", "validation_error"]
        assert ran == ["x", "y"]

    def test_a_tool_that_is_not_there_is_told_of_and_the_run_goes_on(self) -> None:
        ran: list[str] = []
        nobody = Say(calls=(Call("find", {"query": "x"}),))
        done = self.go(Policy.load("default"), [searching(ran)], in_turn(nobody, Say(calls=(search("x"),))))
        assert "find" in done.results[0]
        assert any(word in done.results[0] for word in ("not", "no tool", "tool_missing"))
        assert ran == ["x"]
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

    def test_an_object_that_a_tool_returns_reads_as_one(self) -> None:
        def look_up(city: str) -> dict[str, int]:
            """Look up the rooms of a city."""
            return {"rooms": 2}

        done = self.go(Policy.load("default"), [look_up], in_turn(Say(calls=(Call("look_up", {"city": "Kyoto"}),))))
        assert envelope(done.results[0])["result"] == {"rooms": 2}

    def test_a_result_that_is_too_big_is_cut_and_says_so(self) -> None:
        policy = Policy([Truncate(max_bytes=2_048)])
        done = self.go(policy, [searching([], "row " * 20_000)], in_turn(Say(calls=(search("x"),))))
        cut = envelope(done.results[0])
        assert cut["is_complete"] is False
        assert len(done.results[0]) < 4_096

    @pytest.mark.parametrize("sync", [False, True])
    def test_a_tool_that_takes_too_long_is_given_up(self, sync: bool) -> None:
        over = threading.Event()

        def hang() -> str:
            """Ends late."""
            over.wait(20)
            return "late"

        async def never() -> str:
            """Never ends."""
            await asyncio.Event().wait()
            return "never"

        def script(asked: Asked) -> Say:
            if asked.n:
                over.set()
            return Say("Done.") if asked.n else Say(calls=(Call("hang" if sync else "never"),))

        limit = Rule(match="*", declared={"timeout": 0.05})
        done = self.go(Policy([Budget(max_calls=5)], rules=[limit]), [hang if sync else never], script)
        assert envelope(done.results[0])["error_type"] == "timeout"
        assert done.answer == "Done."

    def test_a_cancelled_run_settles_its_call_and_the_thread_goes_on(self) -> None:
        begun = threading.Event()

        async def hang() -> str:
            """Never ends."""
            begun.set()
            await asyncio.Event().wait()
            return "never"

        policy = Policy([Budget(max_calls=5)])
        adapter = self.host.adapter(policy)
        broken_off = self.host.run(adapter, [hang], in_turn(Say(calls=(Call("hang"),))), thread="t", cancel=begun)
        assert broken_off.error is not None
        session = policy.session("t")
        assert session.ledger.read(lambda state, _: dict(state.pending)) == {}
        assert session.ledger.progress["calls_used"] == 1
        done = self.again(adapter, [hang], in_turn(), thread="t")
        assert done.answer == "Done."

    def test_names_descriptions_and_schemas_of_tools_reach_the_model_unchanged(self) -> None:
        def book(city: str, nights: int = 1, tags: list[str] | None = None) -> str:
            """Book a room in a city."""
            return "booked"

        tools = [book, asearching([])]
        bare = self.host.run(None, tools, in_turn())
        guarded = self.go(Policy.load("default"), tools, in_turn())
        assert set(bare.asked[0].schemas) == {"book", "search"}
        assert json.dumps(guarded.asked[0].schemas) == json.dumps(bare.asked[0].schemas)
