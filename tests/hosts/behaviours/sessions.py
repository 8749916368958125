"""
Whose budget it is: threads, runs, agents that share one, sub-agents; and what is counted of it.
"""

import asyncio
import traceback

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from guardrails import (
    Budget,
    Denials,
    Duplicates,
    MemorySink,
    MemoryStore,
    Policy,
    SqliteStore,
    Validation,
)
from guardrails.core.values.usage import Price
from guardrails.errors import StoreError
from tests.conftest import FakeClock
from tests.hosts.driver import HELPER, MODEL, Asked, Call, Helper, Say
from tests.replaying import replay

from .base import Behaviours, asearching, in_turn, roaming, search, searching, statuses, stuck


class Breaking(MemoryStore):
    """
    A store that fails once it is *broken*.
    """

    broken = False

    def update(self, *given: Any) -> Any:
        if self.broken:
            raise StoreError("the disk is gone")
        return super().update(*given)

    def forget(self, name: str) -> None:
        if self.broken:
            raise OSError("no space left on device")
        super().forget(name)


class Waiting(MemoryStore):
    """
    A store that notes who asks it in a thread whose event loop runs.
    """

    blocks = True

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def update(self, *given: Any) -> Any:
        self._note()
        return super().update(*given)

    def forget(self, key: str) -> None:
        self._note()
        super().forget(key)

    def _note(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        frames = [one for one in traceback.extract_stack() if "/guardrails/integrations/" in one.filename]
        self.asked += [f"{one.filename}:{one.lineno} {one.name}" for one in frames[-1:]]


class Sessions(Behaviours):
    """
    Sessions and their records.
    """

    def test_each_thread_has_a_session_of_its_name(self) -> None:
        ran: list[str] = []
        policy = Policy([Budget(max_calls=2)])
        adapter = self.host.adapter(policy)
        for thread in ("a", "b"):
            self.again(adapter, [searching(ran)], roaming, thread=thread)
        assert len(ran) == 4
        assert [policy.session(thread).ledger.progress["calls_used"] for thread in ("a", "b")] == [2, 2]

    def test_runs_without_a_thread_do_not_share_a_budget(self) -> None:
        ran: list[str] = []
        adapter = self.host.adapter(Policy([Budget(max_calls=2)]))
        for _ in range(2):
            self.again(adapter, [searching(ran)], roaming)
        assert len(ran) == 4

    def test_a_second_run_of_a_thread_goes_on_with_its_budget_and_more_can_be_given(self) -> None:
        ran: list[str] = []
        policy = Policy([Budget(max_calls=2)])
        adapter = self.host.adapter(policy)
        self.again(adapter, [searching(ran)], roaming, thread="t")
        assert self.again(adapter, [searching(ran)], roaming, thread="t").answer == "I know nothing of it."
        assert len(ran) == 2
        policy.session("t").extend(max_calls=3)
        self.again(adapter, [searching(ran)], roaming, thread="t")
        assert len(ran) == 5

    def test_two_agents_that_are_given_one_session_share_its_budget(self) -> None:
        ran: list[str] = []
        session = Policy([Budget(max_calls=3)]).session("shared")
        self.go(session, [searching(ran)], in_turn(Say(calls=(search("a"),)), Say(calls=(search("b"),))))
        self.go(session, [searching(ran)], roaming)
        assert len(ran) == 3
        assert session.exhausted == "budget.max_calls"
        # Each may have a tool of its own by the same name, also while the other works.
        ran, session = [], Policy([Budget(max_calls=3), Validation()]).session("names")
        other = type(self).driver()

        def search_pages(page: int) -> str:
            """Look at a page."""
            ran.append(f"page {page}")
            return "found"

        search_pages.__name__ = "search"
        asks = in_turn(Say(calls=(Call("search", {"page": 1}),)))

        def meanwhile(asked: Asked) -> Say:
            if asked.n == 1:
                with ThreadPoolExecutor() as apart:
                    apart.submit(other.run, other.adapter(session), [search_pages], asks).result()
            return Say(calls=(search(f"q{asked.n}"),)) if asked.n < 2 else Say("Done.")

        self.go(session, [searching(ran)], meanwhile)
        assert ran == ["q0", "page 1", "q1"]

    def test_a_sub_agent_uses_the_budget_of_the_agent_that_asks_it(self) -> None:
        ran: list[str] = []

        def script(asked: Asked) -> Say:
            return roaming(asked) if asked.n else Say(calls=(Call(HELPER, {"task": "look"}),))

        def helping(asked: Asked) -> Say:
            return Say("nothing") if asked.off else Say(calls=(search(f"h{asked.n}"),))

        helper = Helper([searching(ran)], helping)
        done = self.go(Policy([Budget(max_calls=4)]), [searching(ran)], script, helper=helper, thread="t")
        assert len(ran) == 3
        assert ran[0] == "h0"
        assert done.answer == "I know nothing of it."
        # One too many makes no call.
        ran.clear()
        once = lambda asked: Say("nothing") if asked.off or asked.results else Say(calls=(search("h"),))  # noqa: E731
        asks = [Say(calls=(Call(HELPER, {"task": f"look {n}"}),)) for n in range(2)]
        self.go(Policy([Budget(max_children=1)]), [], in_turn(*asks), helper=Helper([searching(ran)], once))
        assert ran == ["h"]

    def test_a_session_is_gone_on_with_by_its_name_in_another_process(self, tmp_path: Path) -> None:
        ran: list[str] = []
        for script in (in_turn(Say(calls=(search("a"),)), Say(calls=(search("b"),))), roaming):
            self.host = type(self).driver()
            policy, store = Policy([Budget(max_calls=3)]), SqliteStore(tmp_path / "sessions.db")
            self.go(policy, [searching(ran)], script, options={"store": store}, thread="t")
            store.close()
        assert len(ran) == 3

    @pytest.mark.parametrize("stream", [False, True])
    def test_usage_is_charged_at_the_policys_prices(self, stream: bool) -> None:
        policy = Policy([Budget(max_tokens=1_000)], prices={MODEL: Price(input_mtok=1.0, output_mtok=2.0)})
        script = in_turn(Say(calls=(search("x"),), usage=(10, 5)), Say("Done.", usage=(20, 5)))
        self.go(policy, [searching([])], script, thread="t", stream=stream)
        session = policy.session("t")
        assert session.ledger.progress["tokens_left"] == 960
        assert session.ledger.cost_usd == pytest.approx(50e-6)
        assert session.ledger.unpriced == 0

    def test_turns_are_counted_with_their_number_of_calls_and_each_request_is_told_of(self) -> None:
        sink = MemorySink()
        script = in_turn(Say(calls=(search("a"), search("b"))), Say(calls=(search("c"),)))
        done = self.go(Policy.load("default"), [searching([])], script, options={"records": sink}, thread="t")
        assert [one["calls"] for one in sink.records if one["event"] == "turn"] == [2, 1, 0]
        assert len([one for one in sink.records if one["event"] == "request"]) == len(done.asked) == 3

    def test_the_records_of_a_run_replay_to_the_same_decisions(self, clock: FakeClock) -> None:
        sink, policy = MemorySink(), Policy([Budget(max_calls=4), Duplicates(), Denials()])
        calls = (search("a"), search("b"), search("a"))
        script = lambda asked: Say("Done.") if asked.off else Say(calls=calls)  # noqa: E731
        self.go(policy, [searching([])], script, options={"records": sink, "clock": clock}, thread="t")
        again = list(replay(policy.chain, sink.records))
        assert again
        assert all(one.same for one in again)
        assert {record["session_id"] for record in sink.records} == {"t"}

    @pytest.mark.parametrize(("on_error", "ran_all"), [("deny", False), ("allow", True)])
    def test_a_store_that_fails_does_not_lose_the_conversation(self, on_error: Any, ran_all: bool) -> None:
        ran, store = [], Breaking()

        def search(query: str) -> str:
            """Search the web for a query."""
            ran.append(query)
            store.broken = True
            return "found"

        calls = [Say(calls=(Call("search", {"query": query}),)) for query in "ab"]
        policy = Policy([Budget(max_calls=5)], on_error=on_error)
        done = self.go(policy, [search], in_turn(*calls), options={"store": store})
        assert ran == (["a", "b"] if ran_all else ["a"])
        assert statuses(done) == ["success", "success" if ran_all else "denied"]
        assert done.answer == "Done."
        if "test_a_sub_agent_uses_the_budget_of_the_agent_that_asks_it" in self.host.cannot:
            return
        # It fails while a sub-agent works, whose share nobody can give back.
        store.broken = False
        ran.clear()
        helper = Helper([search], in_turn(Say(calls=(Call("search", {"query": "c"}),)), Say("Found.")))
        asks = in_turn(Say(calls=(Call(HELPER, {"task": "look"}),)))
        done = self.go(policy, [search], asks, options={"store": store}, helper=helper)
        assert (ran, done.answer) == (["c"], "Done.")

    def test_a_stuck_model_before_a_store_that_is_gone_comes_to_an_end(self) -> None:
        ran: list[str] = []
        store = Breaking()
        store.broken = True
        done = self.go(Policy.load("default"), [searching(ran)], stuck, options={"store": store})
        assert ran == []
        assert done.answer == "I know nothing of it."
        assert len(done.asked) <= 8

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("ending", ["answered", "silent", "failed"])
    def test_no_event_loop_waits_for_a_store(self, ending: str, stream: bool) -> None:
        def script(asked: Asked) -> Say:
            if asked.n and ending == "failed":
                raise ConnectionError("the endpoint is gone")
            if asked.off:
                return Say("Done." if ending == "answered" else "")
            return roaming(asked)

        store, policy = Waiting(), Policy([Budget(max_calls=3, max_tokens=100_000)])
        adapter = self.host.adapter(policy, store=store)
        self.host.run(adapter, [asearching([])], script, thread="t", stream=stream)
        assert store.asked == []
