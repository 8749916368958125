"""
What is crewai's alone: crews and delegation.
"""

import asyncio
import threading

from typing import Any

from crewai import Crew, Process, Task

from guardrails import Budget, Duplicates, Policy
from guardrails.integrations.crewai import Guardrails
from tests.hosts.behaviours.base import in_turn, roaming, search, searching
from tests.hosts.driver import Asked, Call, Say

from .driver import Model, agent, tools_of


def task(one: Any, **options: Any) -> Any:
    """
    A task of an agent.
    """
    return Task(description="look", expected_output="text", agent=one, **options)


class Crews:
    """
    Agents that share a budget.
    """

    def test_a_task_that_the_host_runs_again_after_an_error_keeps_its_budget(self) -> None:
        ran: list[str] = []

        def script(asked: Asked) -> Say:
            if asked.n == 1:
                raise ValueError("broken")
            return roaming(asked)

        one = agent(Model(script), tools_of([searching(ran)]))
        guard = Guardrails(Policy([Budget(max_calls=2)]))
        assert guard.crew(Crew(agents=[one], tasks=[task(one)]), "c").kickoff().raw == "I know nothing of it."
        assert ran == ["q0", "q2"]

    def test_the_tasks_of_a_crew_share_a_budget(self) -> None:
        ran: list[str] = []
        agents = [agent(Model(roaming), tools_of([searching(ran)]), role=role) for role in ("one", "two")]
        guard = Guardrails(Policy([Budget(max_calls=3)]))
        crew = guard.crew(Crew(agents=agents, tasks=[task(one) for one in agents]), "c")
        assert crew.kickoff().raw == "I know nothing of it."
        assert len(ran) == 3
        assert guard.session("c").exhausted_by == "budget.max_calls"

    def test_agents_that_two_tools_run_at_once_have_a_share_each(self) -> None:
        ran: list[str] = []
        both = threading.Barrier(2)
        guard = Guardrails(Policy([Budget(max_calls=9)]))

        def ask(task: str) -> str:
            """Let a helper work on a task."""

            def script(asked: Asked) -> Say:
                if not asked.n:
                    both.wait(10)
                return Say("Found.") if asked.results else Say(calls=(search(task),))

            return str(guard.agent(agent(Model(script), tools_of([searching(ran)]))).kickoff(task).raw)

        calls = tuple(Call("ask", {"task": one}) for one in "ab")
        one = guard.agent(agent(Model(in_turn(Say(calls=calls))), tools_of([ask])), "t")
        assert one.kickoff("go").raw == "Done."
        assert sorted(ran) == ["a", "b"]
        assert guard.session("t").progress == {"calls_used": 4, "calls_left": 5}

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
