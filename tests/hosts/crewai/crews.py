"""
What is crewai's alone: crews and delegation.
"""

import asyncio

from typing import Any

from crewai import Crew, Task

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

    def test_the_tasks_of_a_crew_share_a_budget(self) -> None:
        ran: list[str] = []
        agents = [agent(Model(roaming), tools_of([searching(ran)]), role=role) for role in ("one", "two")]
        guard = Guardrails(Policy([Budget(max_calls=3)]))
        crew = guard.crew(Crew(agents=agents, tasks=[task(one) for one in agents]), "c")
        assert crew.kickoff().raw == "I know nothing of it."
        assert len(ran) == 3
        assert guard.session("c").exhausted == "budget.max_calls"
        assert [out.raw for out in crew.kickoff_for_each([{"city": "Kyoto"}])] == ["I know nothing of it."]
        assert len(ran) == 3

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
        assert guard.session("c").ledger.progress["calls_used"] == 4

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
        assert guard.session("c").ledger.progress["calls_used"] == 4

    def test_a_streamed_crew_is_guarded(self) -> None:
        ran: list[str] = []
        one = agent(Model(roaming), tools_of([searching(ran)]))
        crew = Guardrails(Policy([Budget(max_calls=2)])).crew(Crew(agents=[one], tasks=[task(one)], stream=True))
        streaming = crew.kickoff()
        assert "".join(chunk.content for chunk in streaming) == "I know nothing of it."
        assert streaming.result.raw == "I know nothing of it."
        assert ran == ["q0", "q1"]
