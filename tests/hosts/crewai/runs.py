"""
What is crewai's alone: crews, delegation, models that call by text, and what its tools say of themselves.
"""

import asyncio
import json
import threading

from typing import Any

import pytest

from crewai import Crew, Process, Task
from crewai.flow.flow import Flow, start
from crewai.tools import BaseTool
from crewai.tools import tool as made_tool
from crewai.tools.tool_failure import ToolExecutionFailedError

from guardrails import Budget, Duplicates, Policy, current_session
from guardrails.integrations.crewai import Guardrails
from tests.hosts.behaviours.base import envelope, in_turn, roaming, search, searching, stuck
from tests.hosts.driver import Asked, Call, Say

from .driver import Model, agent, tools_of


def told(out: Any) -> list[str]:
    """
    The results of tools in the messages of a run.
    """
    return [one["content"] for one in out.messages if one["role"] == "tool"]


def task(one: Any, **options: Any) -> Any:
    """
    A task of an agent.
    """
    return Task(description="look", expected_output="text", agent=one, **options)


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


class Crews:
    """
    Agents that share a budget.
    """

    def test_the_tasks_of_a_crew_share_a_budget(self) -> None:
        ran: list[str] = []
        agents = [agent(Model(roaming), tools_of([searching(ran)]), role=role) for role in ("one", "two")]
        guard = Guardrails(Policy([Budget(max_calls=3)]))
        crew = guard.crew(Crew(agents=agents, tasks=[task(one) for one in agents]), "c")
        assert crew.kickoff().raw == "I know nothing of it."
        assert len(ran) == 3
        assert guard.session("c").exhausted_by == "budget.max_calls"

    def test_a_look_in_one_task_refuses_none_in_another(self) -> None:
        ran: list[str] = []
        script = lambda asked: Say("Done.") if asked.results else Say(calls=(search("x"),))  # noqa: E731
        agents = [agent(Model(script), tools_of([searching(ran)]), role=role) for role in ("one", "two")]
        guard = Guardrails(Policy([Duplicates(), Budget(max_calls=9)]))
        crew = guard.crew(Crew(agents=agents, tasks=[task(one) for one in agents]), "c")
        assert asyncio.run(crew.kickoff_async()).raw == "Done."
        assert ran == ["x", "x"]
        assert asyncio.run(crew.akickoff()).raw == "Done."
        assert ran == ["x"] * 4
        assert guard.session("c").progress["calls_used"] == 4

    def test_tasks_that_run_beside_each_other_have_a_part_each(self) -> None:
        ran: list[str] = []
        agents = [agent(Model(roaming), tools_of([searching(ran)]), role=role) for role in ("one", "two", "three")]
        tasks = [task(one, async_execution=one is not agents[2]) for one in agents]
        guard = Guardrails(Policy([Budget(max_calls=8)]))
        out = guard.crew(Crew(agents=agents, tasks=tasks), "c").kickoff()
        assert out.raw == "I know nothing of it."
        assert [one.raw for one in out.tasks_output] == ["I know nothing of it."] * 3
        assert len(ran) == 8

    def test_work_that_is_delegated_is_within_the_budget_of_who_delegates_it(self) -> None:
        ran: list[str] = []
        asks = {"task": "look", "context": "none", "coworker": "worker"}

        def script(asked: Asked) -> Say:
            return roaming(asked) if asked.n else Say(calls=(Call("delegate_work_to_coworker", asks),))

        boss = agent(Model(script), tools_of([searching(ran)]), role="boss", allow_delegation=True)
        worker = agent(Model(in_turn(Say(calls=(search("w"),)))), tools_of([searching(ran)]), role="worker")
        guard = Guardrails(Policy([Budget(max_calls=4)]))
        out = guard.crew(Crew(agents=[boss, worker], tasks=[task(boss)]), "c").kickoff()
        assert out.raw == "I know nothing of it."
        assert ran[0] == "w"
        assert len(ran) == 3
        assert guard.session("c").progress["calls_used"] == 4

    def test_a_manager_that_is_an_agent_is_guarded(self) -> None:
        ran: list[str] = []
        asks = {"task": "look", "context": "none", "coworker": "worker"}
        calls = (Call("delegate_work_to_coworker", asks),)
        manager = agent(
            Model(lambda asked: Say("Enough.") if asked.off else Say(calls=calls)),
            role="manager",
            allow_delegation=True,
        )
        worker = agent(Model(lambda asked: Say("nothing")), tools_of([searching(ran)]), role="worker")
        crew = Crew(agents=[worker], tasks=[task(worker)], process=Process.hierarchical, manager_agent=manager)
        guard = Guardrails(Policy([Budget(max_calls=2)]))
        assert guard.crew(crew, "c").kickoff().raw == "Enough."
        assert guard.session("c").progress["calls_used"] == 2

    def test_each_run_of_kickoff_for_each_has_a_session_of_its_own(self) -> None:
        ran: list[str] = []
        one = agent(
            Model(lambda asked: Say("Done.") if asked.off else Say(calls=(search(f"q{asked.n}"),))),
            tools_of([searching(ran)]),
        )
        crew = Guardrails(Policy([Budget(max_calls=2)])).crew(Crew(agents=[one], tasks=[task(one)]))
        assert [out.raw for out in crew.kickoff_for_each([{"n": 1}, {"n": 2}])] == ["Done.", "Done."]
        assert len(ran) == 4

    def test_a_streamed_crew_is_guarded(self) -> None:
        ran: list[str] = []
        one = agent(Model(roaming), tools_of([searching(ran)]))
        crew = Guardrails(Policy([Budget(max_calls=2)])).crew(Crew(agents=[one], tasks=[task(one)], stream=True))
        streaming = crew.kickoff()
        assert "".join(chunk.content for chunk in streaming) == "I know nothing of it."
        assert streaming.result.raw == "I know nothing of it."
        assert ran == ["q0", "q1"]


class Tools:
    """
    What the tools of the host say of themselves.
    """

    def test_a_result_that_is_the_answer_is_the_tools_own(self) -> None:
        @made_tool("search", result_as_answer=True)
        def one(query: str) -> str:
            """Search the web for a query."""
            return f"hit {query}"

        model = Model(in_turn(Say(calls=(search("x"),))))
        assert Guardrails(Policy.load("default")).agent(agent(model, [one])).kickoff("go").raw == "hit x"

    def test_a_refusal_is_no_answer(self) -> None:
        @made_tool("search", result_as_answer=True)
        def one(query: str) -> str:
            """Search the web for a query."""
            raise ValueError("no such thing")

        model = Model(in_turn(Say(calls=(search("x"),))))
        assert Guardrails(Policy.load("default")).agent(agent(model, [one])).kickoff("go").raw == "Done."

    def test_a_tool_is_used_as_often_as_it_may_be(self) -> None:
        ran: list[str] = []
        one = made_tool("search", max_usage_count=2)(searching(ran))
        out = (
            Guardrails(Policy([Budget(max_calls=9)]))
            .agent(agent(Model(in_turn(*(Say(calls=(search(f"q{n}"),)) for n in range(3)))), [one]))
            .kickoff("go")
        )
        assert ran == ["q0", "q1"]
        assert "usage limit" in told(out)[-1]

    def test_a_cache_that_is_asked_for_keeps_results_and_no_refusals(self) -> None:
        ran: list[str] = []

        def flaky(query: str) -> str:
            """Search the web for a query."""
            ran.append(query)
            if len(ran) == 1:
                raise ConnectionError("the index is down")
            return "found"

        one = made_tool("search")(flaky)
        model = Model(in_turn(*[Say(calls=(search("x"),))] * 3))
        guard = Guardrails(Policy([Budget(max_calls=9)]))
        out = guard.agent(agent(model, [one], cache=True), "t").kickoff("go")
        assert [envelope(result)["status"] for result in told(out)] == ["error", "success", "success"]
        assert ran == ["x", "x"]
        assert guard.session("t").progress["calls_used"] == 2

    def test_a_failure_of_a_tool_is_one_of_the_hosts(self) -> None:
        def fail(query: str) -> str:
            """Search the web for a query."""
            raise ConnectionError("the index is down")

        model = Model(in_turn(Say(calls=(search("x"),))))
        out = Guardrails(Policy.load("default")).agent(agent(model, [made_tool("search")(fail)])).kickoff("go")
        [failure] = out.tool_failures
        assert failure.failure.code == "connection"

    def test_a_class_of_tools_keeps_its_own_way(self) -> None:
        class Search(BaseTool):
            name: str = "search"
            description: str = "Search the web."
            found: str = "hit"

            def _run(self, query: str) -> dict[str, str]:
                session = current_session()
                assert session is not None
                return {"found": f"{self.found} {query}"}

        guarded = Guardrails(Policy.load("default")).agent(agent(Model(in_turn(Say(calls=(search("x"),)))), [Search()]))
        assert json.loads(told(guarded.kickoff("go"))[0])["result"] == {"found": "hit x"}

    def test_a_tool_that_is_called_outside_of_a_run_is_the_hosts_own(self) -> None:
        ran: list[str] = []
        one = Guardrails(Policy([Budget(max_calls=1)])).agent(agent(Model(stuck), tools_of([searching(ran)])))
        assert [one.tools[0].run(query="x") for _ in range(3)] == ["nothing found"] * 3
        assert one.llm.call("hello") == "I know nothing of it."
