"""
crewai's agents and crews behind the guards: the contract, and what is its alone.
"""

import itertools
import json
import os

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest


pytest.importorskip("crewai")
os.environ.update(
    dict.fromkeys(("CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING", "OTEL_SDK_DISABLED"), "true")
    | {"CREWAI_TRACING_ENABLED": "false", "CREWAI_TESTING": "true"}
)

from crewai import Agent, BaseLLM, Crew, Task
from crewai.events import LLMStreamChunkEvent, crewai_event_bus
from crewai.tools import tool as made_tool
from pydantic import PrivateAttr

from guardrails import Budget, Policy
from guardrails.integrations.crewai import Guardrails

from . import page
from .behaviours.base import in_turn, roaming, search, searching, stuck
from .contract import Contract
from .driver import HELPER, MODEL, Asked, Call, Driver, Ran, Say, Script, Way, waited


# What the host warns of itself: it reads its own deprecated fields.
pytestmark = pytest.mark.filterwarnings(
    "ignore:(deprecated$|[a-z_]+ is deprecated and will be removed):DeprecationWarning"
)

END = "Now it's time you MUST give your absolute best final answer"
"""How the host asks for a final answer."""
NO_CHOICE = "`BaseLLM.call` takes no `tool_choice`; llms/base_llm.py:463."
NO_PAUSE = (
    "A call of a tool cannot wait for a person: what the hooks before it return lets it run or blocks it; "
    "agents/agent_executor.py:2218. `human_input` asks about the final answer only, agents/agent_executor.py:3101."
)


class Model(BaseLLM):
    """
    A model that answers as a script says, with native function calling or by text.
    """

    native: bool = True
    _script: Any = PrivateAttr()
    _asked: list[Asked] = PrivateAttr(default_factory=list)
    _ids: Any = PrivateAttr(default_factory=lambda: itertools.count(1))

    def __init__(self, script: Script, ids: Iterator[int] | None = None, **options: Any) -> None:
        super().__init__(model=MODEL, **options)
        self._script = script
        self._ids = itertools.count(1) if ids is None else ids

    @property
    def asked(self) -> list[Asked]:
        return self._asked

    def supports_function_calling(self) -> bool:
        return self.native

    def get_input_tokens_count(self, messages: Any, tools: Any = None, response_model: Any = None) -> int:
        return 1

    def call(self, messages: Any, tools: Any = None, *args: Any, **options: Any) -> Any:
        functions = {one["function"]["name"]: one["function"] for one in tools or ()}
        results = [one for one in messages if isinstance(one, dict) and one.get("role") == "tool"]
        listed = tuple(functions) if self.native else (() if END in str(messages[-1]) else ("text",))
        say = self._say(listed, functions, tuple(str(one["content"]) for one in results))
        if say.usage is not None:
            sent, received = say.usage
            self._track_token_usage_internal(
                {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
            )
        if not self.native and say.calls:
            return "\n".join(
                f"Thought: next\nAction: {call.tool}\nAction Input: {json.dumps(call.arguments)}" for call in say.calls
            )
        if say.calls:
            return [
                {
                    "id": call.id or f"call_{next(self._ids)}",
                    "type": "function",
                    "function": {
                        "name": call.tool,
                        "arguments": call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
                    },
                }
                for call in say.calls
            ]
        text = say.text if say.output is None else json.dumps(say.output)
        if self._effective_stream():
            for n, word in enumerate(text.split(" ") if text else ()):
                self._emit_stream_chunk_event(word if n == 0 else f" {word}", from_agent=options.get("from_agent"))
        return text if self.native or not text else f"Thought: done\nFinal Answer: {text}"

    async def acall(self, *args: Any, **options: Any) -> Any:
        return self.call(*args, **options)

    def _say(self, tools: tuple[str, ...], schemas: Mapping[str, Any], results: tuple[str, ...]) -> Say:
        asked = Asked(n=len(self._asked), tools=tools, choice=None, results=results, schemas=dict(schemas))
        self._asked.append(asked)
        said = self._script(asked)
        assert isinstance(said, Say)
        return said


def tools_of(functions: Sequence[Callable[..., Any]]) -> list[Any]:
    """
    *functions* as tools of the host.
    """
    return [made_tool(one) for one in functions]


def agent(model: Any, tools: Sequence[Any] = (), **options: Any) -> Any:
    """
    An agent of the host.
    """
    given = {"role": "searcher", "goal": "find", "backstory": "long", **options}
    return Agent(llm=model, tools=list(tools), **given)


class CrewAI(Driver):
    """
    The driver of `Agent`.
    """

    name = "crewai"
    kind = Guardrails
    cannot: ClassVar[Mapping[str, str]] = {
        "test_a_forced_tool_choice_holds_for_the_first_request_only": NO_CHOICE,
        "test_a_call_that_the_host_holds_is_charged_once_and_runs_an_hour_later": NO_PAUSE,
        "test_a_pause_of_one_call_runs_the_others_of_its_turn_once": NO_PAUSE,
    }

    def __init__(self) -> None:
        self._threads: dict[str, list[Any]] = {}
        self._ids = itertools.count(1)

    def go(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, way: Way, ran: Ran) -> None:
        model = Model(script, self._ids, stream=way.stream)
        ran.asked, made = model.asked, tools_of(tools)
        if way.helper is not None:
            inner = agent(Model(way.helper.script, self._ids), tools_of(way.helper.tools))
            inner = inner if adapter is None else adapter.agent(inner)

            def ask(task: str) -> str:
                """Let a way.helper work on a task."""
                return str(inner.kickoff(task).raw)

            made.append(made_tool(HELPER)(ask))
        one = agent(model, made)
        one = one if adapter is None else adapter.agent(one, way.thread)
        given = [*self._threads.get(way.thread or "", []), {"role": "user", "content": way.prompt}]
        with crewai_event_bus.scoped_handlers():

            @crewai_event_bus.on(LLMStreamChunkEvent)
            def chunk(_: Any, event: Any) -> None:
                ran.streamed.append(event.chunk)

            if way.sync or way.stream:
                out = one.kickoff(given, response_format=way.output)
                crewai_event_bus.flush()
            else:
                out = waited(one.kickoff_async(given, response_format=way.output), way)
        messages = [one for one in out.messages if one["role"] != "system"]
        self._threads[way.thread or ""] = messages if way.thread else []
        ran.results = [str(one["content"]) for one in messages if one["role"] == "tool"]
        called = [call["id"] for one in messages for call in one.get("tool_calls") or ()]
        ran.unanswered = [one for one in called if one not in {two.get("tool_call_id") for two in messages}]
        ran.answer, ran.output = out.raw, out.pydantic


class TestCrewAI(Contract):
    driver = CrewAI


# What is crewai's own


def told(out: Any) -> list[str]:
    """
    The results of tools in the messages of a run.
    """
    return [one["content"] for one in out.messages if one["role"] == "tool"]


def test_the_last_request_of_the_host_ends_by_the_digest_where_the_model_calls() -> None:
    model = Model(lambda asked: Say(calls=(search(f"q{asked.n}"),)))
    guard = Guardrails(Policy([Budget(max_calls=100)]))
    out = guard.agent(agent(model, tools_of([searching([])]), max_iter=3), "t").kickoff("go")
    assert out.raw == guard.session("t").digest()
    assert len(told(out)) == 3


def test_a_model_that_calls_by_text_is_stopped_at_the_cap() -> None:
    ran: list[str] = []
    model = Model(roaming, native=False)
    guard = Guardrails(Policy([Budget(max_calls=2)]))
    out = guard.agent(agent(model, tools_of([searching(ran)])), "t").kickoff("go")
    assert ran == ["q0", "q1"]
    assert out.raw == "I know nothing of it."
    assert guard.session("t").exhausted == "budget.max_calls"


def task(one: Any, **options: Any) -> Any:
    """
    A task of an agent.
    """
    return Task(description="look", expected_output="text", agent=one, **options)


def test_the_tasks_of_a_crew_share_a_budget() -> None:
    ran: list[str] = []
    agents = [agent(Model(roaming), tools_of([searching(ran)]), role=role) for role in ("one", "two")]
    guard = Guardrails(Policy([Budget(max_calls=3)]))
    crew = guard.crew(Crew(agents=agents, tasks=[task(one) for one in agents]), "c")
    assert crew.kickoff().raw == "I know nothing of it."
    assert len(ran) == 3
    assert guard.session("c").exhausted == "budget.max_calls"
    assert [out.raw for out in crew.kickoff_for_each([{"city": "Kyoto"}])] == ["I know nothing of it."]
    assert len(ran) == 3


def test_work_that_is_delegated_is_within_the_budget_of_who_delegates_it() -> None:
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


def test_the_program_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    model = Model(stuck)
    page.ran("crewai", capsys, model=model, replaced={'"openai/gpt-5-mini"': "model"})
    assert len(model.asked) == 7
