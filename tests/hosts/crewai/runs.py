"""
What is crewai's alone: its models that call by text, flows, and what ends a run.
"""

from typing import Any

from crewai.flow.flow import Flow, start

from guardrails import Budget, Policy
from guardrails.integrations.crewai import Guardrails
from tests.hosts.behaviours.base import roaming, search, searching, stuck
from tests.hosts.driver import Say

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
        assert guard.session("t").exhausted == "budget.max_calls"

    def test_a_stuck_model_that_calls_by_text_comes_to_a_final_answer(self) -> None:
        ran: list[str] = []
        model = Model(stuck, native=False)
        out = Guardrails(Policy.load("default")).agent(agent(model, tools_of([searching(ran)]))).kickoff("go")
        assert 1 <= len(ran) <= 3
        assert out.raw == "I know nothing of it."

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
