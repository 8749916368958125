"""
crewai's agents and crews behind the guards: the contract, and what is its alone.
"""

import json
import os

from collections.abc import Callable, Mapping, Sequence
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

from .behaviours import Contract, Pages, in_turn, restless, roaming, search, searching
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

    def __init__(self, script: Script, asked: list[Asked] | None = None, **options: Any) -> None:
        super().__init__(model=MODEL, **options)
        self._script, self._asked = script, [] if asked is None else asked

    def supports_function_calling(self) -> bool:
        return self.native

    def get_input_tokens_count(self, messages: Any, tools: Any = None, response_model: Any = None) -> int:
        return 1

    def call(self, messages: Any, tools: Any = None, *args: Any, **options: Any) -> Any:
        schemas = {one["function"]["name"]: one["function"] for one in tools or ()}
        results = [str(one["content"]) for one in messages if isinstance(one, dict) and one.get("role") == "tool"]
        names = tuple(schemas) if self.native else (() if END in str(messages[-1]) else ("text",))
        self._asked.append(Asked(len(self._asked), names, None, tuple(results), schemas))
        said: Say = self._script(self._asked[-1])
        if said.usage is not None:
            used = dict(zip(("prompt_tokens", "completion_tokens"), said.usage, strict=True))
            self._track_token_usage_internal({**used, "total_tokens": sum(said.usage)})
        if said.calls and self.native:
            made = [(one.key, {"name": one.tool, "arguments": one.text}) for one in said.calls]
            return [{"id": key, "type": "function", "function": function} for key, function in made]
        if said.calls:
            return "\n".join(f"Thought: next\nAction: {one.tool}\nAction Input: {one.text}" for one in said.calls)
        text = said.text if said.output is None else json.dumps(said.output)
        for word in said.words if self._effective_stream() else ():
            self._emit_stream_chunk_event(word, from_agent=options.get("from_agent"))
        return text if self.native or not text else f"Thought: done\nFinal Answer: {text}"

    async def acall(self, *args: Any, **options: Any) -> Any:
        return self.call(*args, **options)


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

    def go(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, way: Way, ran: Ran) -> None:
        model, made = Model(script, ran.asked, stream=way.stream), tools_of(tools)
        if way.helper is not None:
            inner = agent(Model(way.helper.script), tools_of(way.helper.tools))
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
        called = [call["id"] for one in messages for call in one.get("tool_calls") or ()]
        ran.unanswered = [one for one in called if one not in {two.get("tool_call_id") for two in messages}]
        ran.answer, ran.output = out.raw, out.pydantic


class TestCrewAI(Contract, Pages):
    driver = CrewAI


# What is crewai's own


def test_the_last_request_of_the_host_ends_by_the_digest_where_the_model_calls() -> None:
    model = Model(restless)
    guard = Guardrails(Policy([Budget(max_calls=100)]))
    out = guard.agent(agent(model, tools_of([searching([])]), max_iter=3), "t").kickoff("go")
    assert out.raw == guard.session("t").digest()
    assert [one["role"] for one in out.messages].count("tool") == 3


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
    worker = agent(Model(in_turn(search("w"))), tools_of([searching(ran)]), role="worker")
    guard = Guardrails(Policy([Budget(max_calls=4)]))
    out = guard.crew(Crew(agents=[boss, worker], tasks=[task(boss)]), "c").kickoff()
    assert out.raw == "I know nothing of it."
    assert ran[0] == "w"
    assert len(ran) == 3
    assert guard.session("c").ledger.progress["calls_used"] == 4
