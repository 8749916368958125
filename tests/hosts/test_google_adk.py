"""
google-adk's agents behind the guards: the contract, and what is its alone.
"""

import asyncio
import json
import uuid

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import pytest


pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool
from google.genai import types
from pydantic import BaseModel

from guardrails import Budget, Duplicates, Policy
from guardrails.integrations.google_adk import GuardrailsPlugin
from guardrails.testing.scripted_openai import Calls, call
from tests.conftest import FakeClock
from tests.system.clis.model import Model

from . import page
from .behaviours.base import in_turn, roaming, search, searching
from .contract import Contract
from .driver import HELPER, MODEL, Asked, Call, Driver, Ran, Say, Script, Way, waited


# `AgentTool` makes its runner in a form that the host itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")


USER = "user"
OUTPUT = "set_model_response"
CONFIRMATION = "adk_request_confirmation"


class ScriptedModel(BaseLlm):
    """
    Says what a script says.
    """

    model: str = MODEL
    script: Any
    seen: Any

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        asked = asked_by(llm_request, len(self.seen))
        self.seen.append(asked)
        said: Say = self.script(asked)
        words = said.text.split(" ") if stream and said.text else []
        for n, word in enumerate(words):
            text = word if n == len(words) - 1 else f"{word} "
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=True)
        yield response_of(said)


def asked_by(request: LlmRequest, n: int) -> Asked:
    declared = [one for tool in request.config.tools or [] for one in tool.function_declarations or []]
    declared = [one for one in declared if one.name != OUTPUT]
    parts = [part for content in request.contents for part in content.parts or []]
    return Asked(
        n=n,
        tools=tuple(str(one.name) for one in declared),
        choice=choice_of(request),
        results=tuple(
            json.dumps(part.function_response.response)
            for part in parts
            if part.function_response is not None and part.function_response.name != OUTPUT
        ),
        schemas={str(one.name): one.model_dump(mode="json", exclude_none=True) for one in declared},
    )


def choice_of(request: LlmRequest) -> str | None:
    held = request.config.tool_config
    calling = held.function_calling_config if held is not None else None
    if calling is None or calling.mode is None:
        return None
    if calling.mode == types.FunctionCallingConfigMode.ANY:
        names = calling.allowed_function_names or []
        return names[0] if len(names) == 1 else "required"
    return str(calling.mode.value).lower()


def response_of(said: Say) -> LlmResponse:
    parts = [types.Part(text=said.text)] if said.text else []
    for one in said.calls:
        # As ADK's own clients do, such as `models/lite_llm.py`.
        made = json.loads(one.arguments) if isinstance(one.arguments, str) else dict(one.arguments)
        key = one.id or f"c-{uuid.uuid4()}"
        parts.append(types.Part(function_call=types.FunctionCall(id=key, name=one.tool, args=made)))
    if said.output is not None:
        made_of = types.FunctionCall(id=f"c-{uuid.uuid4()}", name=OUTPUT, args=dict(said.output))
        parts.append(types.Part(function_call=made_of))
    usage = None
    if said.usage is not None:
        into, out = said.usage
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=into, candidates_token_count=out, total_token_count=into + out
        )
    return LlmResponse(
        content=types.Content(role="model", parts=parts),
        partial=False,
        usage_metadata=usage,
        model_version=MODEL,
        finish_reason=types.FinishReason.STOP,
    )


class Task(BaseModel):
    """
    What a sub-agent is asked.
    """

    task: str


class GoogleAdk(Driver):
    """
    An app with the plugin.
    """

    name = "google_adk"
    kind = GuardrailsPlugin
    cannot: ClassVar[Mapping[str, str]] = {
        "test_arguments_that_are_no_json_are_told_of_and_the_run_goes_on": (
            "a call's arguments are a dict, so that text that is no JSON is no call. The model's client raises before any "
            "callback hears of it (google/genai/types.py:1844, google/adk/models/lite_llm.py:223)"
        )
    }

    def __init__(self) -> None:
        self.sessions = InMemorySessionService()

    def go(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, way: Way, ran: Ran) -> None:
        made: list[Any] = [FunctionTool(one, require_confirmation=one.__name__ in way.pausing) for one in tools]
        if way.helper is not None:
            inner = agent_of(way.helper.script, list(way.helper.tools), name=HELPER, input_schema=Task)
            made.append(AgentTool(inner))
        choice = {} if way.choice is None else forced(way.choice)
        agent = agent_of(script, made, seen=ran.asked, output_schema=way.output, **choice)
        self.play(agent, [] if adapter is None else [adapter], way, ran)

    def play(self, agent: Any, plugins: Sequence[Any], way: Way, ran: Ran) -> Ran:
        """
        Run an *agent* that is made.
        """
        app = App(name="app", root_agent=agent, plugins=list(plugins))
        runner = Runner(app=app, session_service=self.sessions)
        thread = way.thread or str(uuid.uuid4())
        before = asyncio.run(self._session(thread))
        message = types.Content(role="user", parts=[types.Part(text=way.prompt)])
        if way.resume is not None:
            parts = [_confirmed(call, way.resume) for call in pending(before) if call.name == CONFIRMATION]
            message = types.Content(role="user", parts=parts)
        mode = StreamingMode.SSE if way.stream else StreamingMode.NONE
        config = RunConfig(streaming_mode=mode, max_llm_calls=500)
        given: Any = {"user_id": USER, "session_id": thread, "new_message": message, "run_config": config}

        async def events() -> list[Any]:
            return [event async for event in runner.run_async(**given)]

        made = list(runner.run(**given)) if way.sync else waited(events(), way)
        return told(ran, made, asyncio.run(self._session(thread)))

    async def _session(self, thread: str) -> Any:
        found = await self.sessions.get_session(app_name="app", user_id=USER, session_id=thread)
        return found or await self.sessions.create_session(app_name="app", user_id=USER, session_id=thread)


def agent_of(script: Script, tools: Sequence[Any], *, name: str = "agent", seen: Any = None, **more: Any) -> Any:
    model = ScriptedModel(script=script, seen=[] if seen is None else seen)
    return LlmAgent(name=name, description="Does it.", model=model, tools=list(tools), **more)


def _confirmed(call: Any, answer: bool) -> Any:
    said = types.FunctionResponse(id=call.id, name=CONFIRMATION, response={"confirmed": answer})
    return types.Part(function_response=said)


def forced(choice: str) -> dict[str, Any]:
    calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=[choice])
    config = types.ToolConfig(function_calling_config=calling)
    return {"generate_content_config": types.GenerateContentConfig(tool_config=config)}


def pending(session: Any) -> list[Any]:
    results = {response.id for event in session.events for response in event.get_function_responses()}
    return [call for event in session.events for call in event.get_function_calls() if call.id not in results]


def told(ran: Ran, events: Sequence[Any], session: Any) -> Ran:
    waits = [call for call in pending(session) if call.name == CONFIRMATION]
    ran.paused = [call.args["originalFunctionCall"]["name"] for call in waits]
    held = {call.args["originalFunctionCall"]["id"] for call in waits}
    results = {
        response.id: json.dumps(response.response)
        for event in session.events
        for response in event.get_function_responses()
        if response.name not in (OUTPUT, CONFIRMATION) and response.id not in held
    }
    ran.results = list(results.values())
    ran.unanswered = [] if ran.paused else [str(call.id) for call in pending(session)]
    ran.streamed = [text_of(event) for event in events if event.partial and text_of(event)]
    last = events[-1] if events else None
    if last is not None and last.is_final_response() and not last.get_function_responses():
        ran.answer = text_of(last)
        if any(call.name == OUTPUT for event in events for call in event.get_function_calls()):
            with suppress(json.JSONDecodeError):
                ran.output = json.loads(ran.answer)
    return ran


def text_of(event: Any) -> str:
    parts = event.content.parts if event.content is not None else None
    return "".join(part.text or "" for part in parts or [])


class TestGoogleAdk(Contract):
    driver = GoogleAdk


# What is google-adk's own


def ran_by(policy: Any, agent: Any, seen: Sequence[Asked] = (), *after: Any, **options: Any) -> Ran:
    """
    What came of *agent* behind *policy*, with plugins *after* that of the guards.
    """
    plugins = [GuardrailsPlugin(policy, **options), *after]
    done = GoogleAdk().play(agent, plugins, Way(thread="t"), Ran(asked=list(seen)))
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


def brings(driver: GoogleAdk, agent: Any, plugin: Any, *parts: Any) -> Ran:
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
    driver = GoogleAdk()
    agent = agent_of(in_turn(SHIP), [LongRunningFunctionTool(ship)])
    first = driver.play(agent, [GuardrailsPlugin(policy, clock=clock)], Way(thread="t"), Ran())
    assert (first.results, len(open_calls(policy))) == ([], 1)
    clock.advance(3_600)
    done = brings(driver, agent, GuardrailsPlugin(policy, clock=clock), result("ship", "c-ship", response))
    assert begun == [7]
    assert json.loads(done.results[-1])["status"] == status
    assert done.answer == "Done."
    session = policy.session("t", clock=clock)
    assert (session.ledger.progress["calls_used"], open_calls(policy)) == (1, {})


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


@pytest.mark.system
def test_the_program_of_the_page_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Model() as gemini:
        gemini.final = "I found nothing."
        gemini.says([Calls(call("search", {"query": "x"}))])
        monkeypatch.setenv("GOOGLE_API_KEY", "-")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.url)
        page.ran("google-adk", capsys)
    sent = [asked.body for asked in gemini.asked]
    assert sent[-1]["tools"] == sent[0]["tools"]
    assert "toolConfig" not in sent[0]
    results = [part for content in sent[-1]["contents"] for part in content["parts"] if "functionResponse" in part]
    assert len([part for part in results if part["functionResponse"]["response"]["status"] == "success"]) <= 3
