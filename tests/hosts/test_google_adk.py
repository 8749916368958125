"""
google-adk's agents behind the guards: the contract, and what is its alone.
"""

import asyncio
import json
import threading
import warnings

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest


pytest.importorskip("google.adk")

from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.tools import AgentTool, BaseTool, FunctionTool, LongRunningFunctionTool, ToolContext
from google.genai import types
from pydantic import BaseModel

from guardrails import Budget, Duplicates, Policy
from guardrails.integrations.google_adk import GuardrailsPlugin
from guardrails.session.steps import current_session
from guardrails.testing.scripted_openai import Calls, call
from tests.conftest import FakeClock
from tests.system.clis.model import Model

from . import google_adk_driver, page
from .behaviours.base import in_turn, roaming, search, searching, stuck
from .contract import Contract
from .driver import Asked, Call, Ran, Say
from .google_adk_driver import USER, agent_of, told


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from google.adk.agents import LoopAgent, ParallelAgent, SequentialAgent

# `AgentTool` makes its runner in a form that the host itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")


class Driver(google_adk_driver.Driver):
    cannot: ClassVar[Mapping[str, str]] = {
        "test_arguments_that_are_no_json_are_told_of_and_the_run_goes_on": (
            "a call's arguments are a dict, so that text that is no JSON is no call. The model's client raises before any "
            "callback hears of it (google/genai/types.py:1844, google/adk/models/lite_llm.py:223)"
        )
    }


class TestGoogleAdk(Contract):
    driver = Driver


# What is google-adk's own


def ran_by(policy: Any, agent: Any, seen: Sequence[Asked] = (), *after: Any, **options: Any) -> Ran:
    """
    What came of *agent* behind *policy*, with plugins *after* that of the guards.
    """
    done = Driver().ran(agent, [GuardrailsPlugin(policy, **options), *after], list(seen), thread="t")
    if done.error is not None:
        raise done.error
    assert done.unanswered == []
    return done


def test_a_hand_over_passes_and_both_agents_share_the_session() -> None:
    ran: list[str] = []
    seen: list[Asked] = []
    clerk = agent_of(roaming, [searching(ran)], name="clerk", seen=seen)
    first = in_turn(Say(calls=(search("a"),)), Say(calls=(Call("transfer_to_agent", {"agent_name": "clerk"}),)))
    policy = Policy([Budget(max_calls=3)])
    done = ran_by(policy, agent_of(first, [searching(ran)], sub_agents=[clerk]))
    assert ran == ["a", "q0", "q1"]
    assert done.answer == "I know nothing of it."
    assert policy.session("t").ledger.progress["calls_used"] == 3


def test_an_agent_as_a_tool_gets_its_share_and_gives_back_what_is_left() -> None:
    ran: list[str] = []
    helper = agent_of(roaming, [searching(ran)], name="helper")
    script = in_turn(Say(calls=(Call("helper", {"request": "look"}),)))
    policy = Policy([Budget(max_calls=9)])
    ran_by(policy, agent_of(script, [AgentTool(helper)]))
    assert len(ran) == 7
    session = policy.session("t")
    assert session.ledger.progress["calls_left"] == 1
    assert session.ledger.read(lambda state, _: dict(state.pending)) == {}


@pytest.mark.filterwarnings("ignore:LoopAgent is deprecated:DeprecationWarning")
def test_a_loop_of_agents_whose_tools_are_off_ends() -> None:
    seen: list[Asked] = []
    ran: list[str] = []
    loop = LoopAgent(name="loop", sub_agents=[agent_of(stuck, [searching(ran)], seen=seen)])
    done = ran_by(Policy.load("default"), loop, seen)
    assert 1 <= len(ran) <= 3
    assert len(seen) <= 9
    assert done.answer


@pytest.mark.filterwarnings("ignore:(Sequential|Parallel)Agent is deprecated:DeprecationWarning")
@pytest.mark.parametrize("kind", [SequentialAgent, ParallelAgent])
def test_agents_after_and_beside_each_other_share_the_budget_and_each_answers(kind: Any) -> None:
    ran: list[str] = []
    agents = [agent_of(roaming, [searching(ran)], name=f"a{n}") for n in range(2)]
    ran_by(Policy([Budget(max_calls=5)]), kind(name="all", sub_agents=agents))
    assert len(ran) == 5


def test_users_whose_sessions_have_one_id_are_told_apart_by_a_name_of_ones_own() -> None:
    ran: list[str] = []
    policy = Policy([Budget(max_calls=2)])
    named = lambda session: f"{session.user_id}/{session.id}"  # noqa: E731
    ran_by(policy, agent_of(roaming, [searching(ran)]), named=named)
    assert policy.session("t").ledger.progress["calls_used"] == 0
    assert GuardrailsPlugin(policy).session("user/t").ledger.progress["calls_used"] == 2


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


@pytest.mark.parametrize(("response", "status"), [({"result": "sent"}, "success"), ({"error": "lost"}, "error")])
def test_a_long_running_call_is_charged_once_and_settled_when_its_result_comes(
    clock: FakeClock, response: Any, status: str
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


def test_a_call_that_a_person_refuses_is_not_counted() -> None:
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


def test_pictures_keep_their_form() -> None:
    picture = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))
    for result in (picture, [picture, "a cat"], {"picture": picture, "of": "a cat"}, {"pictures": [picture]}):
        kept: list[Any] = []

        def draw(result: Any = result) -> Any:
            """Draw a cat."""
            return result

        class Watch(BasePlugin):
            async def on_event_callback(self, *, event: Any, kept: Any = kept, **more: Any) -> None:
                kept.extend(event.get_function_responses())

        tool = FunctionTool(draw)
        one = agent_of(in_turn(Say(calls=(Call("draw"),))), [tool])
        ran_by(Policy([Budget(max_calls=1)]), one, [], Watch("watch"))
        assert [part.inline_data.data for part in kept[0].parts] == [b"png"]
        assert "limit_reached" in json.dumps(kept[0].response)


def test_a_failure_of_an_mcp_server_is_one() -> None:
    class Remote(BaseTool):
        async def run_async(self, *, args: Any, tool_context: Any) -> Any:
            return {"content": [{"type": "text", "text": args["text"]}], "isError": args["text"] == "gone"}

        def _get_declaration(self) -> Any:
            schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
            return types.FunctionDeclaration(name="remote", description="Far.", parameters_json_schema=schema)

    calls = [Say(calls=(Call("remote", {"text": text}),)) for text in ("there", "gone")]
    done = ran_by(Policy.load("default"), agent_of(in_turn(*calls), [Remote(name="remote", description="Far.")]))
    right, wrong = map(json.loads, done.results)
    assert (right["status"], right["result"]) == ("success", "there")
    assert (wrong["status"], wrong["error_message"]) == ("error", "gone")


def test_a_schema_in_googles_own_form_is_checked_too() -> None:
    ran: list[Any] = []

    class Count(BaseTool):
        async def run_async(self, *, args: Any, tool_context: Any) -> Any:
            ran.append(args)
            return "counted"

        def _get_declaration(self) -> Any:
            number = types.Schema(type=types.Type.INTEGER, nullable=True)
            words = types.Schema(type=types.Type.STRING, enum=["up", "down"])
            schema = types.Schema(type=types.Type.OBJECT, properties={"n": number, "to": words}, required=["to"])
            return types.FunctionDeclaration(name="count", description="Count.", parameters=schema)

    wrong, right = {"n": "many", "to": "up"}, {"n": None, "to": "down"}
    calls = [Say(calls=(Call("count", arguments),)) for arguments in (wrong, right)]
    done = ran_by(Policy.load("default"), agent_of(in_turn(*calls), [Count(name="count", description="Count.")]))
    assert json.loads(done.results[0])["status"] == "validation_error"
    assert ran == [right]


def test_contexts_models_and_defaults_reach_the_function() -> None:
    got: list[Any] = []

    class Place(BaseModel):
        city: str

    def book(place: Place, tool_context: ToolContext, nights: int = 2) -> str:
        """Book a room."""
        tool_context.state["booked"] = place.city
        got.append(
            (place, nights, current_session() is not None, threading.current_thread() is threading.main_thread())
        )
        return "booked"

    script = in_turn(Say(calls=(Call("book", {"place": {"city": "Kyoto"}}),)))
    done = ran_by(Policy.load("default"), agent_of(script, [book]))
    assert got == [(Place(city="Kyoto"), 2, True, True)]
    assert json.loads(done.results[0])["result"] == "booked"


@pytest.mark.system
def test_the_program_of_the_page_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Model() as gemini:
        gemini.answer = "I found nothing."
        gemini.says([Calls(call("search", {"query": "x"}))])
        monkeypatch.setenv("GOOGLE_API_KEY", "-")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.url)
        page.ran("google-adk", capsys)
    sent = [asked.body for asked in gemini.asked]
    assert sent[-1]["tools"] == sent[0]["tools"]
    assert "toolConfig" not in sent[0]
    results = [part for content in sent[-1]["contents"] for part in content["parts"] if "functionResponse" in part]
    assert len([part for part in results if part["functionResponse"]["response"]["status"] == "success"]) <= 3
