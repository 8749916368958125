"""
Calls as ADK makes them: callbacks of others, media, contexts, results of MCP.
"""

import json
import threading

from typing import Any

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.genai import types
from pydantic import BaseModel

from guardrails import Budget, MemorySink, Policy, current_session
from guardrails.integrations.google_adk import GuardrailsPlugin
from tests.hosts.behaviours.base import in_turn, search, searching
from tests.hosts.driver import Asked, Call, Ran, Say

from .driver import Driver, agent_of


ONE = in_turn(Say(calls=(search("x"),)))


def went(policy: Any, agent: Any, *before: Any, seen: Any = None, after: tuple[Any, ...] = (), **more: Any) -> Ran:
    """
    What came of *agent* behind *policy*, with plugins *before* and *after* that of the guards.
    """
    plugins = [*before, GuardrailsPlugin(policy), *after]
    done = Driver().ran(agent, plugins, [] if seen is None else seen, thread="t", **more)
    if done.error is not None:
        raise done.error
    assert done.unanswered == []
    return done


class Tools:
    def test_callbacks_of_the_agent_still_hear_of_every_call(self) -> None:
        told: list[Any] = []

        def before(tool: Any, args: Any, tool_context: Any) -> None:
            told.append(("before", tool.name, args))

        def after(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> dict[str, Any]:
            told.append(("after", tool.name, tool_response["result"]))
            return {**tool_response, "seen": True}

        agent = agent_of(ONE, [searching([])], before_tool_callback=before, after_tool_callback=after)
        done = went(Policy.load("default"), agent)
        assert told == [("before", "search", {"query": "x"}), ("after", "search", "nothing found")]
        assert json.loads(done.results[0])["seen"] is True

    def test_pictures_keep_their_form(self) -> None:
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
            went(Policy([Budget(max_calls=1)]), agent_of(in_turn(Say(calls=(Call("draw"),))), [tool]), Watch("watch"))
            assert [part.inline_data.data for part in kept[0].parts] == [b"png"]
            assert "limit_reached" in json.dumps(kept[0].response)

    def test_a_failure_of_an_mcp_server_is_one(self) -> None:
        class Remote(BaseTool):
            async def run_async(self, *, args: Any, tool_context: Any) -> Any:
                return {"content": [{"type": "text", "text": args["text"]}], "isError": args["text"] == "gone"}

            def _get_declaration(self) -> Any:
                schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
                return types.FunctionDeclaration(name="remote", description="Far.", parameters_json_schema=schema)

        calls = [Say(calls=(Call("remote", {"text": text}),)) for text in ("there", "gone")]
        done = went(Policy.load("default"), agent_of(in_turn(*calls), [Remote(name="remote", description="Far.")]))
        right, wrong = map(json.loads, done.results)
        assert (right["status"], right["result"]) == ("success", "there")
        assert (wrong["status"], wrong["error_message"]) == ("error", "gone")

    def test_a_schema_in_googles_own_form_is_checked_too(self) -> None:
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
        done = went(Policy.load("default"), agent_of(in_turn(*calls), [Count(name="count", description="Count.")]))
        assert json.loads(done.results[0])["status"] == "validation_error"
        assert ran == [right]

    def test_contexts_models_and_defaults_reach_the_function(self) -> None:
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
        done = went(Policy.load("default"), agent_of(script, [book]))
        assert got == [(Place(city="Kyoto"), 2, True, True)]
        assert json.loads(done.results[0])["result"] == "booked"

    def test_thoughts_alone_are_no_answer_and_are_not_told_as_one(self) -> None:
        sink = MemorySink()
        seen: list[Asked] = []
        driver, plugin = Driver(), GuardrailsPlugin(Policy.load("default"), records=sink)
        script = in_turn(Say(" "), Say("At last."))
        done = driver.ran(agent_of(script, [searching([])], seen=seen), plugin, seen, thread="t")
        assert (done.answer, len(seen)) == ("At last.", 2)
        assert len([one for one in sink.records if one["event"] == "request"]) == 2
