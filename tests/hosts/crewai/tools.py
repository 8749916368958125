"""
What is crewai's alone: what its tools say of themselves.
"""

from crewai.tools import tool as made_tool

from guardrails import Budget, Policy
from guardrails.integrations.crewai import Guardrails
from tests.hosts.behaviours.base import envelope, in_turn, search
from tests.hosts.driver import Say

from .driver import Model, agent
from .runs import told


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
        assert guard.session("t").ledger.progress["calls_used"] == 2
