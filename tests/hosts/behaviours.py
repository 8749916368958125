"""
What every host owes: behaviours that hold for its adapter, with its real package and a scripted model.

`tests/hosts/test_NAME.py` has `class TestNAME(Contract)` with a `driver`: a class, or a function, that makes one. It is made
anew for each test. What the host's own source makes impossible stands in `driver.cannot`, and is an expected failure.
"""

import asyncio
import gc
import json
import re
import threading
import traceback

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pydantic import BaseModel

from guardrails import (
    Approve,
    Budget,
    Denials,
    Duplicates,
    MemorySink,
    MemoryStore,
    Policy,
    Session,
    SqliteStore,
    Truncate,
    Validation,
)
from guardrails.core.chain import Rule
from guardrails.core.values.usage import Price
from guardrails.errors import StoreError
from tests.conftest import FakeClock
from tests.openai_api import problems
from tests.replaying import replay

from .driver import HELPER, MODEL, Asked, Call, Driver, Helper, Ran, Say, Script, looped


PAGE = (Path(__file__).parents[2] / "docs/hosts.md").read_text(encoding="utf-8")


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
    return Say("I know nothing of it.") if asked.off else restless(asked)


def restless(asked: Asked) -> Say:
    """
    A model that makes another call each time, whatever it is told.
    """
    return Say(calls=(search(f"q{asked.n}"),))


def in_turn(*steps: Say | Call | tuple[Call, ...]) -> Script:
    """
    A model that says one after the other, or makes the calls, and then says that it is done.
    """
    said = [one if isinstance(one, Say) else Say(calls=one if isinstance(one, tuple) else (one,)) for one in steps]
    return lambda asked: said[asked.n] if asked.n < len(said) else Say("Done.")


def envelope(text: str) -> Mapping[str, Any]:
    """
    The envelope that a model reads. Behind a hook its sentence stands before that of a refusal; pydantic-ai puts a failure
    into an `error`.
    """
    sentence, _, rest = text.partition("\n")
    read = json.loads(text if text[:1] == "{" else rest)
    assert isinstance(read, dict), text
    if read.keys() == {"error"}:
        return envelope(read["error"])
    if text[:1] != "{":
        assert sentence in (read.get("message"), read.get("limit_message"), read.get("user_facing_hint")), text
    return read


def statuses(ran: Ran) -> list[str]:
    """
    What each result that the model could read says of its call.
    """
    return [envelope(result)["status"] for result in ran.results]


class Behaviours:
    """
    One host in each test, made anew, and a tool `search`; *ran* is what it was asked.
    """

    driver: Callable[[], Any]

    @pytest.fixture(autouse=True)
    def _host(self, request: pytest.FixtureRequest) -> None:
        self.host: Driver = type(self).driver()
        self.ran: list[str] = []
        self.search = searching(self.ran)
        reason = self.host.cannot.get(getattr(request.node, "originalname", request.node.name))
        if reason is not None and request.function.__module__.startswith("tests.hosts.behaviours"):
            request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))

    def go(
        self,
        guarded: Policy | Session,
        tools: Sequence[Callable[..., Any]],
        script: Script,
        *,
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Ran:
        """
        A run behind a new adapter of *guarded*. Nothing is raised, and every call in the conversation has a result.
        """
        return self.again(self.host.adapter(guarded, **(options or {})), tools, script, **more)

    def again(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, **more: Any) -> Ran:
        """
        The same behind an *adapter* that is there.
        """
        ran = self.host.run(adapter, tools, script, **more)
        if ran.error is not None:
            raise ran.error
        assert ran.unanswered == []
        assert problems(ran.sent) == [], "the API would refuse a request"
        return ran


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
        self.go(Policy([Budget(max_calls=3)]), [self.search], roaming)
        assert self.ran == ["q0", "q1", "q2"]

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

        look, edits = (
            Call("read_file", {"path": "a"}),
            [Call("edit_file", {"path": "a", "text": f"v{n}"}) for n in range(4)],
        )
        steps = [step for edit in edits for step in (look, edit)]
        done = self.go(Policy.load("default"), [read_file, edit_file], in_turn(*steps, look))
        assert ran == ["read", "edit"] * 4 + ["read"]
        assert done.answer == "Done."

    @pytest.mark.parametrize(
        ("guard", "queries", "runs", "refused"),
        [
            (Budget(max_calls=2), ("q0", "q1", "q2", "q3", "q4"), 2, "limit_reached"),
            (Duplicates(), ("x",) * 6, 1, "duplicate_call_blocked"),
        ],
    )
    def test_of_calls_at_once_as_many_run_as_may_and_each_is_answered(
        self, guard: Any, queries: tuple[str, ...], runs: int, refused: str
    ) -> None:
        done = self.go(Policy([guard]), [self.search], in_turn(tuple(map(search, queries))))
        assert len(self.ran) == runs
        assert sorted(statuses(done)) == sorted(["success"] * runs + [refused] * (len(queries) - runs))

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
        done = self.go(waits, [left, right], in_turn((Call("left"), Call("right"))))
        assert statuses(done) == ["success", "success"]


class Calls(Behaviours):
    """
    Results, failures and refusals.
    """

    def test_the_model_reads_why_a_call_was_refused_and_what_to_do(self) -> None:
        done = self.go(Policy([Duplicates()]), [self.search], in_turn(search("x"), search("x")))
        refused = envelope(done.results[-1])
        assert refused["status"] == "duplicate_call_blocked"
        assert refused["code"] == "duplicates.window"
        assert refused["next_action_hint"]

    def test_an_argument_that_is_wrong_is_named_and_nothing_runs(self) -> None:
        ran: list[int] = []

        def book(nights: int) -> str:
            """Book a room."""
            ran.append(nights)
            return "booked"

        two = in_turn(Call("book", {"nights": "many"}), Call("book", {"nights": 2}))
        done = self.go(Policy.load("default"), [book], two)
        refused = envelope(done.results[0])
        assert refused["status"] == "validation_error"
        assert "nights" in json.dumps(refused["errors"])
        assert ran == [2]
        assert done.answer == "Done."

    def test_arguments_that_are_no_json_are_told_of_and_the_run_goes_on(self) -> None:
        ran, broken = list[str](), Call("search", '{"query": "x')
        done = self.go(Policy.load("default"), [searching(ran)], in_turn(broken, search("x")))
        assert envelope(done.results[0])["status"] == "validation_error"
        assert ran == ["x"]
        assert done.answer == "Done."
        done = self.go(Policy.load("default"), [searching(ran)], in_turn((search("y"), broken)))
        assert sorted(statuses(done)) == ["success", "validation_error"]
        assert ran == ["x", "y"]

    def test_a_tool_that_is_not_there_is_told_of_and_the_run_goes_on(self) -> None:
        done = self.go(Policy.load("default"), [self.search], in_turn(Call("find", {"query": "x"}), search("x")))
        assert "find" in done.results[0]
        assert any(word in done.results[0] for word in ("not", "no tool", "tool_missing"))
        assert self.ran == ["x"]
        assert done.answer == "Done."

    def test_an_exception_in_a_tool_is_data_and_the_run_goes_on(self) -> None:
        def search(query: str) -> str:
            """Search the web for a query."""
            raise ConnectionError("the index is down")

        done = self.go(Policy.load("default"), [search], in_turn(Call("search", {"query": "x"})))
        failed = envelope(done.results[0])
        assert failed["status"] == "error"
        assert failed["error_type"] == "connection"
        assert "the index is down" in failed["error_message"]
        assert done.answer == "Done."

    def test_an_object_that_a_tool_returns_reads_as_one(self) -> None:
        def look_up(city: str) -> dict[str, int]:
            """Look up the rooms of a city."""
            return {"rooms": 2}

        done = self.go(Policy.load("default"), [look_up], in_turn(Call("look_up", {"city": "Kyoto"})))
        assert envelope(done.results[0])["result"] == {"rooms": 2}

    def test_a_result_that_is_too_big_is_cut_and_says_so(self) -> None:
        policy = Policy([Truncate(max_bytes=2_048)])
        done = self.go(policy, [searching([], "row " * 20_000)], in_turn(search("x")))
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
        broken_off = self.host.run(adapter, [hang], in_turn(Call("hang")), thread="t", cancel=begun)
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


class Stay(BaseModel):
    """
    A structured output.
    """

    city: str
    nights: int


ONE_MORE: Any = {"allow": ["search"], "calls": 1}
"""Beyond a limit one more call runs."""
STAY = {"city": "Kyoto", "nights": 2}


def stay(output: Any) -> Stay:
    """
    It, in whatever form a host gives it.
    """
    return output if isinstance(output, Stay) else Stay.model_validate(output)


class ClientError(Exception):
    """
    What a model's client raises.
    """


class Ends(Behaviours):
    """
    Final answers.
    """

    def test_a_stuck_model_comes_to_a_final_answer(self) -> None:
        done = self.go(Policy.load("default"), [self.search], stuck)
        assert done.answer == "I know nothing of it."
        assert len(done.asked) <= 8

    @pytest.mark.parametrize(
        ("budget", "runs", "way"),
        [
            (Budget(max_calls=3), 3, {}),
            (Budget(max_calls=3), 3, {"sync": True}),
            (Budget(max_turns=3), 3, {}),
            (Budget(max_calls=2, at_limit=ONE_MORE), 3, {}),
            (Budget(max_calls=2, at_limit="ask"), 2, {}),
        ],
    )
    def test_a_model_at_the_cap_comes_to_a_final_answer(self, budget: Budget, runs: int, way: Any) -> None:
        done = self.go(Policy([budget]), [self.search], roaming, **way)
        assert self.ran == [f"q{n}" for n in range(runs)]
        assert done.answer == "I know nothing of it."
        assert [asked.off for asked in done.asked] == [False, False, False, True]

    def test_a_limit_that_is_near_is_told_once_to_the_model_and_to_the_operator(self) -> None:
        heard, policy = list[Any](), Policy([Budget(max_calls=4, warn_at=0.5)])
        done = self.go(policy, [self.search], roaming, options={"on_warning": lambda *told: heard.append(told)})
        assert ([code for code, _ in heard], str(done.results).count("Left: 2 calls of 4")) == (["budget.warning"], 1)

    def test_text_is_streamed_in_pieces_and_the_guards_are_the_same(self) -> None:
        done = self.go(Policy([Budget(max_calls=2)]), [self.search], roaming, stream=True)
        assert done.answer == "I know nothing of it."
        assert "".join(done.streamed) == done.answer
        assert len(done.streamed) > 1
        assert self.ran == ["q0", "q1"]

    def test_a_model_that_calls_with_tools_off_is_asked_once_more_and_the_digest_is_the_answer(self) -> None:
        policy = Policy([Budget(max_calls=2)])
        done = self.go(policy, [self.search], restless, thread="t")
        assert self.ran == ["q0", "q1"]
        assert [asked.off for asked in done.asked] == [False, False, True, True]
        assert done.answer == policy.session("t").digest()
        # The conversation is whole: the API would take its next request.
        self.go(policy, [self.search], in_turn(), thread="t")

    def test_a_model_that_calls_with_tools_off_and_then_answers_is_taken_at_its_word(self) -> None:
        def script(asked: Asked) -> Say:
            return Say("At last.") if asked.n == 3 else restless(asked)

        done = self.go(Policy([Budget(max_calls=2)]), [self.search], script)
        assert done.answer == "At last."

    def test_a_model_that_stays_silent_with_tools_off_is_answered_for_by_the_digest(self) -> None:
        policy = Policy([Budget(max_calls=1)])
        done = self.go(policy, [self.search], lambda asked: Say("") if asked.off else stuck(asked), thread="t")
        assert len(done.asked) == 3
        assert done.answer == policy.session("t").digest()

    def test_a_forced_tool_choice_holds_for_the_first_request_only(self) -> None:
        done = self.go(Policy.load("default"), [self.search], in_turn(search("x")), choice="search")
        assert done.asked[0].choice in ("search", "required")
        assert done.asked[1].choice in (None, "auto")
        assert done.answer == "Done."

    def test_a_structured_output_is_the_hosts_own(self) -> None:
        script = in_turn(search("x"), Say(output=STAY))
        done = self.go(Policy.load("default"), [self.search], script, output=Stay)
        assert stay(done.output) == Stay(city="Kyoto", nights=2)

    def test_a_structured_output_is_valid_at_the_end_too(self) -> None:
        done = self.go(
            Policy([Budget(max_calls=2)]),
            [self.search],
            lambda asked: Say(output=STAY) if asked.off else restless(asked),
            output=Stay,
        )
        assert stay(done.output) == Stay(city="Kyoto", nights=2)
        assert self.ran == ["q0", "q1"]

    def test_what_a_models_client_raises_is_raised_by_the_host_and_nothing_stays_held(self) -> None:
        def script(asked: Asked) -> Say:
            if asked.n == 1:
                raise ClientError("overloaded")
            return Say(calls=(search("x"),))

        policy = Policy([Budget(max_calls=5, max_tokens=10_000)])
        adapter = self.host.adapter(policy)
        failed = self.host.run(adapter, [self.search], script, thread="t")
        raised, causes = failed.error, []
        while raised is not None:
            causes.append(type(raised))
            raised = raised.__cause__ or raised.__context__
        assert ClientError in causes
        assert policy.session("t").ledger.read(
            lambda state, _: ((state.own.get("budget") or {}).get("holds", {}), dict(state.pending))
        ) == ({}, {})
        assert self.again(adapter, [self.search], in_turn(), thread="t").answer == "Done."

    def test_a_model_that_never_called_a_tool_is_left_alone(self) -> None:
        done = self.go(Policy.load("default"), [self.search], in_turn(Say("Good morning.")))
        assert done.answer == "Good morning."
        assert len(done.asked) == 1
        assert not done.asked[0].off
        assert stuck(done.asked[0]).calls


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
        policy = Policy([Budget(max_calls=2)])
        adapter = self.host.adapter(policy)
        for thread in ("a", "b"):
            self.again(adapter, [self.search], roaming, thread=thread)
        assert len(self.ran) == 4
        assert [policy.session(thread).ledger.progress["calls_used"] for thread in ("a", "b")] == [2, 2]

    def test_runs_without_a_thread_do_not_share_a_budget(self) -> None:
        adapter = self.host.adapter(Policy([Budget(max_calls=2)]))
        for _ in range(2):
            self.again(adapter, [self.search], roaming)
        assert len(self.ran) == 4

    def test_a_second_run_of_a_thread_goes_on_with_its_budget_and_more_can_be_given(self) -> None:
        policy = Policy([Budget(max_calls=2)])
        adapter = self.host.adapter(policy)
        self.again(adapter, [self.search], roaming, thread="t")
        assert self.again(adapter, [self.search], roaming, thread="t").answer == "I know nothing of it."
        assert len(self.ran) == 2
        policy.session("t").extend(max_calls=3)
        self.again(adapter, [self.search], roaming, thread="t")
        assert len(self.ran) == 5

    def test_two_agents_that_are_given_one_session_share_its_budget(self) -> None:
        session = Policy([Budget(max_calls=3)]).session("shared")
        self.go(session, [self.search], in_turn(search("a"), search("b")))
        self.go(session, [self.search], roaming)
        assert len(self.ran) == 3
        assert session.exhausted == "budget.max_calls"
        # Each may have a tool of its own by the same name, also while the other works.
        self.ran.clear()
        session = Policy([Budget(max_calls=3), Validation()]).session("names")
        other = type(self).driver()

        def search_pages(page: int) -> str:
            """Look at a page."""
            self.ran.append(f"page {page}")
            return "found"

        search_pages.__name__ = "search"
        asks = in_turn(Call("search", {"page": 1}))

        def meanwhile(asked: Asked) -> Say:
            if asked.n == 1:
                with ThreadPoolExecutor() as apart:
                    apart.submit(other.run, other.adapter(session), [search_pages], asks).result()
            return restless(asked) if asked.n < 2 else Say("Done.")

        self.go(session, [self.search], meanwhile)
        assert self.ran == ["q0", "page 1", "q1"]

    def test_a_sub_agent_uses_the_budget_of_the_agent_that_asks_it(self) -> None:
        def script(asked: Asked) -> Say:
            return roaming(asked) if asked.n else Say(calls=(Call(HELPER, {"task": "look"}),))

        def helping(asked: Asked) -> Say:
            return Say("nothing") if asked.off else Say(calls=(search(f"h{asked.n}"),))

        helper = Helper([self.search], helping)
        done = self.go(Policy([Budget(max_calls=4)]), [self.search], script, helper=helper, thread="t")
        assert len(self.ran) == 3
        assert self.ran[0] == "h0"
        assert done.answer == "I know nothing of it."
        # One too many makes no call.
        self.ran.clear()
        once = lambda asked: Say("nothing") if asked.off or asked.results else Say(calls=(search("h"),))  # noqa: E731
        asks = [Call(HELPER, {"task": f"look {n}"}) for n in range(2)]
        self.go(Policy([Budget(max_children=1)]), [], in_turn(*asks), helper=Helper([self.search], once))
        assert self.ran == ["h"]

    def test_a_session_is_gone_on_with_by_its_name_in_another_process(self, tmp_path: Path) -> None:
        for script in (in_turn(search("a"), search("b")), roaming):
            self.host = type(self).driver()
            policy, store = Policy([Budget(max_calls=3)]), SqliteStore(tmp_path / "sessions.db")
            self.go(policy, [self.search], script, options={"store": store}, thread="t")
            store.close()
        assert len(self.ran) == 3

    @pytest.mark.parametrize("stream", [False, True])
    def test_usage_is_charged_at_the_policys_prices(self, stream: bool) -> None:
        policy = Policy([Budget(max_tokens=1_000)], prices={MODEL: Price(input_mtok=1.0, output_mtok=2.0)})
        script = in_turn(Say(calls=(search("x"),), usage=(10, 5)), Say("Done.", usage=(20, 5)))
        self.go(policy, [self.search], script, thread="t", stream=stream)
        session = policy.session("t")
        assert session.ledger.progress["tokens_left"] == 960
        assert session.ledger.cost_usd == pytest.approx(50e-6)
        assert session.ledger.unpriced == 0

    def test_turns_are_counted_with_their_number_of_calls_and_each_request_is_told_of(self) -> None:
        sink = MemorySink()
        script = in_turn((search("a"), search("b")), search("c"))
        done = self.go(Policy.load("default"), [self.search], script, options={"records": sink}, thread="t")
        assert [one["calls"] for one in sink.records if one["event"] == "turn"] == [2, 1, 0]
        assert len([one for one in sink.records if one["event"] == "request"]) == len(done.asked) == 3

    def test_the_records_of_a_run_replay_to_the_same_decisions(self, clock: FakeClock) -> None:
        sink, policy = MemorySink(), Policy([Budget(max_calls=4), Duplicates(), Denials()])
        calls = (search("a"), search("b"), search("a"))
        script = lambda asked: Say("Done.") if asked.off else Say(calls=calls)  # noqa: E731
        self.go(policy, [self.search], script, options={"records": sink, "clock": clock}, thread="t")
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

        calls = [Call("search", {"query": query}) for query in "ab"]
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
        helper = Helper([search], in_turn(Call("search", {"query": "c"}), Say("Found.")))
        asks = in_turn(Call(HELPER, {"task": "look"}))
        done = self.go(policy, [search], asks, options={"store": store}, helper=helper)
        assert (ran, done.answer) == (["c"], "Done.")

    def test_a_stuck_model_before_a_store_that_is_gone_comes_to_an_end(self) -> None:
        store = Breaking()
        store.broken = True
        done = self.go(Policy.load("default"), [self.search], stuck, options={"store": store})
        assert self.ran == []
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


HOUR = 3_600
PAY = Call("pay", {"amount": 5})


class Bank:
    """
    The tool `pay`, and what it paid.
    """

    def __init__(self) -> None:
        self.paid: list[int] = []
        paid = self.paid

        def pay(amount: int) -> str:
            """Pay an amount."""
            paid.append(amount)
            return "paid"

        self.pay: Callable[[int], str] = pay


def once(asked: Asked) -> Say:
    """
    A model that pays, and is done once it reads of it.
    """
    return Say("Done.") if asked.results else Say(calls=(PAY,))


class Pauses(Behaviours):
    """
    Approvals.
    """

    def test_a_call_waits_until_a_person_approves_it_and_then_runs_once(self, clock: FakeClock) -> None:
        bank, policy = Bank(), Policy([Approve(tools=("pay",)), Budget(max_calls=5)])
        adapter = self.host.adapter(policy, clock=clock)
        asks = in_turn(PAY, PAY)
        waits = self.again(adapter, [bank.pay], asks, thread="t")
        assert [envelope(result)["code"] for result in waits.results] == ["approve.pending"] * 2
        assert waits.answer == "Done."
        session = policy.session("t", clock=clock)
        [parked] = session.pending()
        assert (bank.paid, session.ledger.progress["calls_used"]) == ([], 1)

        clock.advance(HOUR)
        session.approve(parked)
        paid = self.again(adapter, [bank.pay], asks, thread="t")
        assert bank.paid == [5]
        assert [envelope(result)["status"] for result in paid.results[-2:]] == ["success", "denied"]
        assert session.ledger.progress["calls_used"] == 2

    @pytest.mark.parametrize(
        ("approver", "paid", "said"),
        [(lambda parked: parked.arguments == {"amount": 5}, [5], "success"), (lambda _: "too much", [], "too much")],
    )
    def test_a_call_that_an_approver_answers_runs_at_once_or_is_told_why(
        self, approver: Any, paid: list[int], said: str
    ) -> None:
        bank = Bank()
        done = self.go(Policy([Approve(tools=("pay",))]), [bank.pay], once, options={"approver": approver})
        assert bank.paid == paid
        assert said in done.results[0]

    def test_a_call_that_the_host_holds_is_charged_once_and_runs_an_hour_later(self, clock: FakeClock) -> None:
        bank, policy, sink = Bank(), Policy([Budget(max_calls=5)]), MemorySink()
        options = {"clock": clock, "records": sink}
        held = self.go(policy, [bank.pay], once, options=options, thread="t", pausing=["pay"])
        assert (held.paused, bank.paid) == (["pay"], [])

        clock.advance(HOUR)
        done = self.go(policy, [bank.pay], once, options=options, thread="t", pausing=["pay"], resume=True)
        assert (done.paused, bank.paid) == ([], [5])
        assert envelope(done.results[-1])["status"] == "success"
        assert done.answer == "Done."
        session = policy.session("t", clock=clock)
        assert session.ledger.progress["calls_used"] == 1
        assert session.ledger.read(lambda state, _: dict(state.pending)) == {}
        assert all(again.same for again in replay(policy.chain, sink.records))

    def test_a_pause_of_one_call_runs_the_others_of_its_turn_once(self) -> None:
        bank, policy = Bank(), Policy([Budget(max_calls=5)])

        def script(asked: Asked) -> Say:
            return Say("Done.") if len(asked.results) == 2 else Say(calls=(search("x"), PAY))

        tools: list[Callable[..., Any]] = [self.search, bank.pay]
        held = self.go(policy, tools, script, thread="t", pausing=["pay"])
        assert held.paused == ["pay"]
        done = self.go(policy, tools, script, thread="t", pausing=["pay"], resume=True)
        assert (self.ran, bank.paid, done.answer) == (["x"], [5], "Done.")
        assert policy.session("t").ledger.progress["calls_used"] == 2


def programs_print(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Runs the programs about *host*; each prints what the page says.
    """
    programs = re.findall(r"```python\n([^`]*)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    own = [each for each in programs if f"guardrails.integrations.{host} import" in each[0]]
    assert own, host
    for program, printed in own:
        exec(compile(program, "hosts.md", "exec"), {})
        # What a host prints of its own stands in frames.
        lines = [line for line in capsys.readouterr().out.splitlines() if line and line[0] not in "╭│╰"]
        assert lines == printed.splitlines()


class Pages(Behaviours):
    """
    The programs of the page of the hosts.
    """

    @pytest.mark.system
    @pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
    def test_the_programs_of_the_page_print_what_it_says(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with self.host.page(monkeypatch), looped():
            programs_print(self.host.name, capsys)
        # The program of a reader leaves its connection to the loop that ended.
        gc.collect()


class Contract(Loops, Calls, Ends, Sessions, Pauses):
    """
    All that a host owes.
    """
