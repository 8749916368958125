"""
google-adk's agents behind the guards: the contract, and what is its alone.
"""

import asyncio
import json
import uuid

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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

from guardrails import Budget, Duplicates, Policy
from guardrails.integrations.google_adk import GuardrailsPlugin
from guardrails.testing.scripted_openai import Calls, call
from tests.conftest import FakeClock
from tests.system.clis.model import Model
from tests.tables import table

from .behaviours import Contract, Pages, in_turn, roaming, search, searching
from .driver import HELPER, MODEL, Asked, Call, Driver, Ran, Say, Script, Task, Way, waited


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
        for word in said.words if stream else ():
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=word)]), partial=True)
        # ADK's own clients read the arguments so, such as `models/lite_llm.py`.
        made = [(one.key, one.tool, one.values) for one in said.calls]
        made += [] if said.output is None else [(Call(OUTPUT).key, OUTPUT, dict(said.output))]
        calls = [types.Part(function_call=types.FunctionCall(id=key, name=name, args=args)) for key, name, args in made]
        names = "prompt_token_count", "candidates_token_count"
        used = {} if said.usage is None else dict(zip(names, said.usage, strict=True))
        yield LlmResponse(
            content=types.Content(role="model", parts=[types.Part(text=said.text)] * bool(said.text) + calls),
            partial=False,
            usage_metadata=types.GenerateContentResponseUsageMetadata(**used) if used else None,
            model_version=MODEL,
            finish_reason=types.FinishReason.STOP,
        )


def asked_by(request: LlmRequest, n: int) -> Asked:
    listed = [one for tool in request.config.tools or [] for one in tool.function_declarations or []]
    schemas = {str(one.name): one.model_dump(mode="json", exclude_none=True) for one in listed if one.name != OUTPUT}
    responses = [part.function_response for content in request.contents for part in content.parts or []]
    results = (json.dumps(one.response) for one in responses if one is not None and one.name != OUTPUT)
    calling = request.config.tool_config and request.config.tool_config.function_calling_config
    choice = None if calling is None or calling.mode is None else str(calling.mode.value).lower()
    if calling is not None and choice == "any":
        choice = (calling.allowed_function_names or ["required"])[0]
    return Asked(n, tuple(schemas), choice, tuple(results), schemas)


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

    def play(self, agent: Any, plugins: Sequence[Any], way: Way, ran: Ran, *parts: Any) -> Ran:
        """
        Run an *agent* that is made; the message of the user has *parts* in place of the prompt.
        """
        runner = Runner(app=App(name="app", root_agent=agent, plugins=list(plugins)), session_service=self.sessions)
        thread = way.thread or str(uuid.uuid4())
        before = asyncio.run(self._session(thread))
        if way.resume is not None:
            waits = (call for call in pending(before) if call.name == CONFIRMATION)
            parts = tuple(result(CONFIRMATION, call.id, {"confirmed": way.resume}) for call in waits)
        message = types.Content(role="user", parts=[*parts] or [types.Part(text=way.prompt)])
        mode = StreamingMode.SSE if way.stream else StreamingMode.NONE
        config = RunConfig(streaming_mode=mode, max_llm_calls=500)
        given: Any = {"user_id": USER, "session_id": thread, "new_message": message, "run_config": config}

        async def events() -> list[Any]:
            return [event async for event in runner.run_async(**given)]

        made = list(runner.run(**given)) if way.sync else waited(events(), way)
        left = pending(asyncio.run(self._session(thread)))
        ran.paused = [call.args["originalFunctionCall"]["name"] for call in left if call.name == CONFIRMATION]
        ran.unanswered = [] if ran.paused else [str(call.id) for call in left]
        ran.streamed = [text_of(event) for event in made if event.partial and text_of(event)]
        last = made[-1] if made else None
        if last is not None and last.is_final_response() and not last.get_function_responses():
            ran.answer = text_of(last)
        if way.output is not None:
            ran.output = json.loads(ran.answer or "")
        return ran

    @contextmanager
    def page(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with Model() as gemini:
            gemini.final = "I found nothing."
            gemini.says([Calls(call("search", {"query": "x"}))])
            monkeypatch.setenv("GOOGLE_API_KEY", "-")
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.url)
            yield
        sent = [asked.body for asked in gemini.asked]
        assert sent[-1]["tools"] == sent[0]["tools"]
        assert "toolConfig" not in sent[0]

    async def _session(self, thread: str) -> Any:
        found = await self.sessions.get_session(app_name="app", user_id=USER, session_id=thread)
        return found or await self.sessions.create_session(app_name="app", user_id=USER, session_id=thread)


def agent_of(script: Script, tools: Sequence[Any], *, name: str = "agent", seen: Any = None, **more: Any) -> Any:
    model = ScriptedModel(script=script, seen=[] if seen is None else seen)
    return LlmAgent(name=name, description="Does it.", model=model, tools=list(tools), **more)


def result(name: str, key: str, response: Any) -> Any:
    return types.Part(function_response=types.FunctionResponse(id=key, name=name, response=response))


def forced(choice: str) -> dict[str, Any]:
    calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=[choice])
    config = types.ToolConfig(function_calling_config=calling)
    return {"generate_content_config": types.GenerateContentConfig(tool_config=config)}


def pending(session: Any) -> list[Any]:
    results = {response.id for event in session.events for response in event.get_function_responses()}
    return [call for event in session.events for call in event.get_function_calls() if call.id not in results]


def text_of(event: Any) -> str:
    parts = event.content.parts if event.content is not None else None
    return "".join(part.text or "" for part in parts or [])


class TestGoogleAdk(Contract, Pages):
    driver = GoogleAdk


# What is google-adk's own


def ran_by(policy: Policy, agent: Any, *after: Any, **options: Any) -> tuple[Ran, Any]:
    """
    What came of *agent* behind *policy*, with plugins *after* that of the guards; and the session.
    """
    done = GoogleAdk().play(agent, [GuardrailsPlugin(policy, **options), *after], Way(thread="t"), Ran())
    assert done.unanswered == []
    return done, policy.session("t").ledger


def test_a_hand_over_passes_and_both_agents_share_the_session() -> None:
    ran: list[str] = []
    clerk = agent_of(roaming, [searching(ran)], name="clerk")
    first = in_turn(search("a"), Call("transfer_to_agent", {"agent_name": "clerk"}))
    agent = agent_of(first, [searching(ran)], sub_agents=[clerk])
    done, ledger = ran_by(Policy([Budget(max_calls=3)]), agent)
    assert ran == ["a", "q0", "q1"]
    assert done.answer == "I know nothing of it."
    assert ledger.progress["calls_used"] == 3


def test_an_agent_as_a_tool_gets_its_share_and_gives_back_what_is_left() -> None:
    ran: list[str] = []
    helper = agent_of(roaming, [searching(ran)], name="helper")
    script = in_turn(Call("helper", {"request": "look"}))
    _, ledger = ran_by(Policy([Budget(max_calls=9)]), agent_of(script, [AgentTool(helper)]))
    assert len(ran) == 7
    assert ledger.progress["calls_left"] == 1
    assert ledger.read(lambda state, _: dict(state.pending)) == {}


def test_users_whose_sessions_have_one_id_are_told_apart_by_a_name_of_ones_own() -> None:
    policy, named = Policy([Budget(max_calls=2)]), lambda session: f"{session.user_id}/{session.id}"
    _, ledger = ran_by(policy, agent_of(roaming, [searching([])]), named=named)
    assert ledger.progress["calls_used"] == 0
    assert GuardrailsPlugin(policy).session("user/t").ledger.progress["calls_used"] == 2


@pytest.mark.parametrize(("response", "status"), [({"result": "sent"}, "success"), ({"error": "lost"}, "error")])
def test_a_long_running_call_is_charged_once_and_settled_when_its_result_comes(
    clock: FakeClock, response: Any, status: str
) -> None:
    begun, asked = list[int](), list[Asked]()

    def ship(order: int) -> None:
        """Ship an order."""
        begun.append(order)

    driver, policy = GoogleAdk(), Policy([Budget(max_calls=3), Duplicates()])
    ships = in_turn(Call("ship", {"order": 7}, "c-ship"))
    agent, guard = agent_of(ships, [LongRunningFunctionTool(ship)], seen=asked), GuardrailsPlugin(policy, clock=clock)
    driver.play(agent, [guard], Way(thread="t"), Ran())
    session = policy.session("t", clock=clock)
    assert session.ledger.read(lambda state, _: len(state.pending)) == 1
    clock.advance(3_600)
    done = driver.play(agent, [guard], Way(thread="t"), Ran(), result("ship", "c-ship", response))
    assert (begun, done.answer) == ([7], "Done.")
    assert json.loads(asked[-1].results[-1])["status"] == status
    assert session.ledger.progress["calls_used"] == 1
    assert session.ledger.read(lambda state, _: dict(state.pending)) == {}


class Watch(BasePlugin):
    """
    Notes the results that the model is to read.
    """

    def __init__(self) -> None:
        super().__init__("watch")
        self.kept: list[Any] = []

    async def on_event_callback(self, *, event: Any, **_: Any) -> None:
        self.kept += event.get_function_responses()


PICTURE = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))


@table("drawn", [PICTURE, [PICTURE, "a cat"], {"picture": PICTURE, "of": "a cat"}, {"pictures": [PICTURE]}])
def test_pictures_keep_their_form(drawn: Any) -> None:
    def draw() -> Any:
        """Draw a cat."""
        return drawn

    watch = Watch()
    ran_by(Policy([Budget(max_calls=1)]), agent_of(in_turn(Call("draw")), [FunctionTool(draw)]), watch)
    assert [part.inline_data.data for part in watch.kept[0].parts] == [b"png"]
    assert "limit_reached" in json.dumps(watch.kept[0].response)
