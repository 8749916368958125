"""
What is crewai's alone: its models that call by text, flows, and what ends a run.
"""

import asyncio
import threading

from typing import Any

import pytest

from crewai.flow.flow import Flow, start
from crewai.tools.tool_failure import ToolExecutionFailedError

from guardrails import Budget, Duplicates, Policy
from guardrails.integrations.crewai import Guardrails
from tests.hosts.behaviours.base import envelope, in_turn, roaming, search, searching, stuck
from tests.hosts.driver import Asked, Call, Say

from .driver import Model, agent, tools_of


def told(out: Any) -> list[str]:
    """
    The results of tools in the messages of a run.
    """
    return [one["content"] for one in out.messages if one["role"] == "tool"]


class Runs:
    """
    Runs of agents and crews.
    """

    def test_the_bare_host_ends_a_stuck_model_by_an_exception(self) -> None:
        ran: list[str] = []
        with pytest.raises(ToolExecutionFailedError):
            agent(Model(stuck), tools_of([searching(ran)])).kickoff("go")
        assert len(ran) == 5

    def test_what_is_given_stays_as_it_was(self) -> None:
        ran: list[str] = []
        bare = agent(Model(in_turn(Say(calls=(search("x"),)))), tools_of([searching(ran)]))
        kinds = type(bare), type(bare.llm), type(bare.tools[0])
        guarded = Guardrails(Policy([Budget(max_calls=5)])).agent(bare)
        assert (type(bare), type(bare.llm), type(bare.tools[0])) == kinds
        assert isinstance(guarded, kinds[0])
        assert isinstance(guarded.llm, kinds[1])
        assert isinstance(guarded.tools[0], kinds[2])
        assert bare.kickoff("go").raw == "Done."
        assert ran == ["x"]

    @pytest.mark.parametrize("policy", [Policy([Duplicates()]), Policy([Budget(max_calls=100)])])
    def test_a_policy_that_lets_repeats_be_refused_or_run_is_not_ended_by_the_host(self, policy: Policy) -> None:
        script = in_turn(*[Say(calls=(search("x"),))] * 9)
        out = Guardrails(policy).agent(agent(Model(script), tools_of([searching([])]))).kickoff("go")
        assert out.raw == "Done."
        assert len(told(out)) == 9

    def test_calls_of_a_tool_that_is_not_there_come_to_a_final_answer(self) -> None:
        def script(asked: Asked) -> Say:
            return Say("At last.") if asked.off else Say(calls=(Call("find", {"query": "x"}),))

        guard = Guardrails(Policy([Budget(max_calls=100)]))
        out = guard.agent(agent(Model(script), tools_of([searching([])]))).kickoff("go")
        assert out.raw == "At last."
        assert len(told(out)) == 4

    def test_the_last_request_of_the_host_ends_by_the_digest_where_the_model_calls(self) -> None:
        model = Model(lambda asked: Say(calls=(search(f"q{asked.n}"),)))
        guard = Guardrails(Policy([Budget(max_calls=100)]))
        out = guard.agent(agent(model, tools_of([searching([])]), max_iter=3), "t").kickoff("go")
        assert out.raw == guard.session("t").digest()
        assert len(told(out)) == 3

    def test_a_model_that_calls_by_text_is_stopped_at_the_cap(self) -> None:
        ran: list[str] = []
        model = Model(roaming, native=False)
        guard = Guardrails(Policy([Budget(max_calls=2)]))
        out = guard.agent(agent(model, tools_of([searching(ran)])), "t").kickoff("go")
        assert ran == ["q0", "q1"]
        assert out.raw == "I know nothing of it."
        assert guard.session("t").exhausted_by == "budget.max_calls"

    def test_a_stuck_model_that_calls_by_text_comes_to_a_final_answer(self) -> None:
        ran: list[str] = []
        model = Model(stuck, native=False)
        out = Guardrails(Policy.load("default")).agent(agent(model, tools_of([searching(ran)]))).kickoff("go")
        assert 1 <= len(ran) <= 3
        assert out.raw == "I know nothing of it."

    def test_a_model_that_calls_by_text_at_the_end_is_answered_for_by_the_digest(self) -> None:
        model = Model(lambda asked: Say(calls=(search(f"q{asked.n}"),)), native=False)
        guard = Guardrails(Policy([Budget(max_calls=1)]))
        out = guard.agent(agent(model, tools_of([searching([])])), "t").kickoff("go")
        assert out.raw == guard.session("t").digest().strip()
        assert len(model.asked) == 3

    def test_calls_of_one_turn_run_in_threads_at_the_same_time(self) -> None:
        both = threading.Barrier(2, timeout=5)

        def left() -> str:
            """Wait for the right one."""
            both.wait()
            return "met"

        def right() -> str:
            """Wait for the left one."""
            both.wait()
            return "met"

        model = Model(in_turn(Say(calls=(Call("left"), Call("right")))))
        out = Guardrails(Policy([Budget(max_calls=5)])).agent(agent(model, tools_of([left, right]))).kickoff("go")
        assert [envelope(one)["result"] for one in told(out)] == ["met", "met"]

    def test_a_run_in_a_flow_is_guarded(self) -> None:
        ran: list[str] = []
        one = Guardrails(Policy([Budget(max_calls=2)])).agent(agent(Model(roaming), tools_of([searching(ran)])))

        class Looking(Flow):
            @start()
            def look(self) -> Any:
                return one.kickoff("go")

            @start()
            async def look_later(self) -> Any:
                return None

        assert Looking().kickoff() is not None or ran
        assert ran == ["q0", "q1"]

    def test_runs_of_one_agent_have_a_budget_each_without_a_thread(self) -> None:
        ran: list[str] = []
        model = Model(lambda asked: Say("Done.") if asked.off else Say(calls=(search(f"q{asked.n}"),)))
        one = Guardrails(Policy([Budget(max_calls=2)])).agent(agent(model, tools_of([searching(ran)])))
        one.kickoff("go")
        asyncio.run(one.kickoff_async("go"))
        assert len(ran) == 4

    def test_an_answer_that_a_guardrail_of_the_host_refuses_is_made_again_without_tools(self) -> None:
        ran: list[str] = []
        judged: list[str] = []

        def enough(out: Any) -> tuple[bool, Any]:
            judged.append(out.raw)
            return len(judged) > 1, out.raw

        one = agent(Model(roaming), tools_of([searching(ran)]), guardrail=enough)
        assert Guardrails(Policy([Budget(max_calls=2)])).agent(one).kickoff("go").raw == "I know nothing of it."
        assert (ran, len(judged)) == (["q0", "q1"], 2)

    def test_the_latest_policy_guards_an_agent_that_was_guarded_before(self) -> None:
        ran: list[str] = []
        first = Guardrails(Policy([Budget(max_calls=9)])).agent(agent(Model(roaming), tools_of([searching(ran)])))
        Guardrails(Policy([Budget(max_calls=1)])).agent(first).kickoff("go")
        assert ran == ["q0"]
