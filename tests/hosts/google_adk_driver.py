"""
google-adk as the contract drives it: an agent with a scripted model in a `Runner`.
"""

import asyncio
import json
import uuid

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool, FunctionTool
from google.genai import types
from pydantic import BaseModel

from guardrails.integrations.google_adk import GuardrailsPlugin
from tests.hosts.driver import HELPER, MODEL, Asked, Ran, Say, Script, Way, cancelled


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
    for call in said.calls:
        # As ADK's own clients do, such as `models/lite_llm.py`.
        made = json.loads(call.arguments) if isinstance(call.arguments, str) else dict(call.arguments)
        key = call.id or f"c-{uuid.uuid4()}"
        parts.append(types.Part(function_call=types.FunctionCall(id=key, name=call.tool, args=made)))
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


class Driver:
    """
    An app with the plugin.
    """

    name = "google_adk"
    cannot: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self.sessions = InMemorySessionService()

    def adapter(self, guarded: Any, **options: Any) -> GuardrailsPlugin:
        return GuardrailsPlugin(guarded, **options)

    def run(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, **how: Any) -> Ran:
        way, seen = Way(**how), list[Asked]()
        made: list[Any] = [FunctionTool(one, require_confirmation=one.__name__ in way.pausing) for one in tools]
        if way.helper is not None:
            inner = agent_of(way.helper.script, list(way.helper.tools), name=HELPER, input_schema=Task)
            made.append(AgentTool(inner))
        choice = {} if way.choice is None else forced(way.choice)
        return self.ran(agent_of(script, made, seen=seen, output_schema=way.output, **choice), adapter, seen, **how)

    def ran(self, agent: Any, adapter: Any, seen: list[Asked], **how: Any) -> Ran:
        way = Way(**how)
        plugins = adapter if isinstance(adapter, list) else [] if adapter is None else [adapter]
        app = App(name="app", root_agent=agent, plugins=plugins)
        runner = Runner(app=app, session_service=self.sessions)
        thread = way.thread or str(uuid.uuid4())
        before = asyncio.run(self._session(thread))
        message = types.Content(role="user", parts=[types.Part(text=way.prompt)])
        if way.resume is not None:
            parts = [_confirmed(call, way.resume) for call in pending(before) if call.name == CONFIRMATION]
            message = types.Content(role="user", parts=parts)
        mode = StreamingMode.SSE if way.stream else StreamingMode.NONE
        config = RunConfig(streaming_mode=mode, max_llm_calls=500)
        given = {"user_id": USER, "session_id": thread, "new_message": message, "run_config": config}
        ran, events = Ran(asked=seen), []

        async def go() -> None:
            async for event in runner.run_async(**given):
                events.append(event)  # noqa: PERF401  what came before an error counts

        try:
            if way.sync:
                events.extend(runner.run(**given))
            else:
                asyncio.run(go() if way.cancel is None else cancelled(go(), way.cancel))
        except BaseException as error:
            ran.error = error
        return told(ran, events, asyncio.run(self._session(thread)))

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
