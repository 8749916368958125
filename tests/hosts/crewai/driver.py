"""
The driver of crewai: its own `Agent`, and a model of its own kind with a script.
"""

import asyncio
import itertools
import json
import os

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar


os.environ.update(
    dict.fromkeys(("CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING", "OTEL_SDK_DISABLED"), "true")
    | {"CREWAI_TRACING_ENABLED": "false", "CREWAI_TESTING": "true"}
)

from crewai import Agent, BaseLLM
from crewai.events import LLMStreamChunkEvent, crewai_event_bus
from crewai.tools import tool as made_tool
from pydantic import PrivateAttr

from guardrails.integrations.crewai import Guardrails
from tests.hosts.driver import HELPER, MODEL, Asked, Helper, Ran, Say, Script, cancelled


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


class CrewAI:
    """
    The driver of `Agent`.
    """

    name = "crewai"
    cannot: ClassVar[Mapping[str, str]] = {
        "test_a_forced_tool_choice_holds_for_the_first_request_only": NO_CHOICE,
        "test_a_call_that_the_host_holds_is_charged_once_and_runs_an_hour_later": NO_PAUSE,
        "test_a_pause_of_one_call_runs_the_others_of_its_turn_once": NO_PAUSE,
    }

    def __init__(self) -> None:
        self._threads: dict[str, list[Any]] = {}
        self._ids = itertools.count(1)

    def adapter(self, guarded: Any, **options: Any) -> Guardrails:
        return Guardrails(guarded, **options)

    def run(
        self,
        adapter: Any,
        tools: Sequence[Callable[..., Any]],
        script: Script,
        *,
        prompt: str = "go",
        thread: str | None = None,
        stream: bool = False,
        sync: bool = False,
        choice: str | None = None,
        output: type | None = None,
        helper: Helper | None = None,
        pausing: Sequence[str] = (),
        resume: bool = False,
        cancel: Any = None,
    ) -> Ran:
        model = Model(script, self._ids, stream=stream)
        made = tools_of(tools)
        if helper is not None:
            inner = agent(Model(helper.script, self._ids), tools_of(helper.tools))
            inner = inner if adapter is None else adapter.agent(inner)

            def ask(task: str) -> str:
                """Let a helper work on a task."""
                return str(inner.kickoff(task).raw)

            made.append(made_tool(HELPER)(ask))
        one = agent(model, made)
        one = one if adapter is None else adapter.agent(one, thread)
        given = [*self._threads.get(thread or "", []), {"role": "user", "content": prompt}]
        ran = Ran(asked=model.asked)
        try:
            with crewai_event_bus.scoped_handlers():

                @crewai_event_bus.on(LLMStreamChunkEvent)
                def chunk(_: Any, event: Any) -> None:
                    ran.streamed.append(event.chunk)

                if sync or stream:
                    out = one.kickoff(given, response_format=output)
                    crewai_event_bus.flush()
                elif cancel is not None:
                    out = asyncio.run(cancelled(one.kickoff_async(given), cancel))
                else:
                    out = asyncio.run(one.kickoff_async(given, response_format=output))
        except BaseException as error:
            ran.error = error
            return ran
        messages = [one for one in out.messages if one["role"] != "system"]
        self._threads[thread or ""] = messages if thread else []
        ran.results = [str(one["content"]) for one in messages if one["role"] == "tool"]
        called = [call["id"] for one in messages for call in one.get("tool_calls") or ()]
        ran.unanswered = [one for one in called if one not in {two.get("tool_call_id") for two in messages}]
        ran.answer, ran.output = out.raw, out.pydantic
        return ran
