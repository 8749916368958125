"""
What is crewai's alone: what its tools say of themselves.
"""

import json

from crewai.tools import BaseTool
from crewai.tools import tool as made_tool

from guardrails import Budget, Policy, current_session
from guardrails.integrations.crewai import Guardrails
from tests.hosts.behaviours.base import envelope, in_turn, search, searching, stuck
from tests.hosts.driver import Say

from .driver import Model, agent, tools_of
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
