"""
Results that come later: long-running tools, and people who confirm.
"""

import asyncio
import json

from typing import Any

import pytest

from google.adk.apps import App
from google.adk.apps.app import ResumabilityConfig
from google.adk.runners import Runner
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.genai import types

from guardrails import Budget, Duplicates, Policy
from guardrails.integrations.google_adk import GuardrailsPlugin
from tests.conftest import FakeClock
from tests.hosts.behaviours.base import in_turn, search, searching
from tests.hosts.driver import Call, Ran, Say

from .driver import USER, Driver, agent_of, told


SHIP = Say(calls=(Call("ship", {"order": 7}, "c-ship"),))


def open_calls(policy: Policy, **more: Any) -> dict[str, Any]:
    session = policy.session("t", **more)
    return session.ledger.read(lambda state, _: {str(key): one for key, one in state.pending.items()})


def brings(driver: Driver, agent: Any, plugin: Any, *parts: Any) -> Ran:
    """
    The next run of the thread, whose message brings results.
    """
    runner = Runner(app=App(name="app", root_agent=agent, plugins=[plugin]), session_service=driver.sessions)
    message = types.Content(role="user", parts=list(parts))
    events = list(runner.run(user_id=USER, session_id="t", new_message=message))
    return told(Ran(), events, asyncio.run(driver._session("t")))


def result(name: str, key: str, response: Any) -> Any:
    return types.Part(function_response=types.FunctionResponse(id=key, name=name, response=response))


class Later:
    @pytest.mark.parametrize(("response", "status"), [({"result": "sent"}, "success"), ({"error": "lost"}, "error")])
    def test_a_long_running_call_is_charged_once_and_settled_when_its_result_comes(
        self, clock: FakeClock, response: Any, status: str
    ) -> None:
        begun: list[int] = []

        def ship(order: int) -> None:
            """Ship an order."""
            begun.append(order)

        policy = Policy([Budget(max_calls=3), Duplicates()])
        driver = Driver()
        agent = agent_of(in_turn(SHIP), [LongRunningFunctionTool(ship)])
        first = driver.ran(agent, GuardrailsPlugin(policy, clock=clock), [], thread="t")
        assert first.error is None
        assert (first.results, len(open_calls(policy))) == ([], 1)
        clock.advance(3_600)
        done = brings(driver, agent, GuardrailsPlugin(policy, clock=clock), result("ship", "c-ship", response))
        assert begun == [7]
        assert json.loads(done.results[-1])["status"] == status
        assert done.answer == "Done."
        session = policy.session("t", clock=clock)
        assert (session.ledger.progress["calls_used"], open_calls(policy)) == (1, {})

    def test_a_call_that_a_person_refuses_is_not_counted(self) -> None:
        paid: list[int] = []

        def ship(order: int) -> str:
            """Ship an order."""
            paid.append(order)
            return "sent"

        policy, driver = Policy([Budget(max_calls=3)]), Driver()
        agent = agent_of(in_turn(SHIP), [FunctionTool(ship, require_confirmation=True)])
        plugin = GuardrailsPlugin(policy)
        driver.ran(agent, plugin, [], thread="t")
        done = driver.ran(agent, plugin, [], thread="t", resume=False)
        assert (done.error, paid) == (None, [])
        assert "rejected" in done.results[-1]
        assert (policy.session("t").ledger.progress["calls_used"], open_calls(policy)) == (0, {})

    def test_a_confirmed_call_is_refused_where_the_session_is_used_up(self) -> None:
        ran: list[str] = []

        def ship(order: int) -> str:
            """Ship an order."""
            ran.append("ship")
            return "sent"

        policy, driver = Policy([Budget(max_calls=1)]), Driver()
        both = Say(calls=(*SHIP.calls, search("x")))
        agent = agent_of(in_turn(both), [FunctionTool(ship, require_confirmation=True), searching(ran)])
        plugin = GuardrailsPlugin(policy)
        driver.ran(agent, plugin, [], thread="t")
        done = driver.ran(agent, plugin, [], thread="t", resume=True)
        assert ran == ["x"]
        assert json.loads(done.results[0])["status"] == "limit_reached"

    @pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning")
    def test_a_resumable_app_goes_on_where_it_waited(self) -> None:
        begun: list[int] = []

        def ship(order: int) -> None:
            """Ship an order."""
            begun.append(order)

        policy, driver = Policy([Budget(max_calls=3)]), Driver()
        agent, plugin = agent_of(in_turn(SHIP), [LongRunningFunctionTool(ship)]), GuardrailsPlugin(policy)
        driver.ran(agent, plugin, [], thread="t")
        app = App(
            name="app",
            root_agent=agent,
            plugins=[plugin],
            resumability_config=ResumabilityConfig(is_resumable=True),
        )
        runner = Runner(app=app, session_service=driver.sessions)
        message = types.Content(role="user", parts=[result("ship", "c-ship", {"result": "sent"})])
        events = list(runner.run(user_id=USER, session_id="t", new_message=message))
        done = told(Ran(), events, asyncio.run(driver._session("t")))
        assert (begun, json.loads(done.results[-1])["status"]) == ([7], "success")
        assert policy.session("t").ledger.progress["calls_used"] == 1
