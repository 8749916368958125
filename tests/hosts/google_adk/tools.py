"""
Calls as ADK makes them: callbacks of others, media, contexts, results of MCP.
"""

import json
import threading

from typing import Any

import pytest

from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.genai import types
from pydantic import BaseModel

from guardrails import Budget, Duplicates, MemorySink, Policy, Retryable, Rule, current_session
from guardrails.integrations.google_adk import GuardrailsPlugin
from tests.hosts.behaviours.base import in_turn, roaming, search, searching
from tests.hosts.behaviours.ends import Stay
from tests.hosts.driver import Asked, Call, Ran, Say

from .driver import Driver, ScriptedModel, agent_of


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


class Rescue(BasePlugin):
    """
    Makes something of what tools raise.
    """

    def __init__(self) -> None:
        super().__init__(name="rescue")

    async def on_tool_error_callback(self, *, error: Exception, **more: Any) -> dict[str, Any]:
        return {"rescued": str(error)}


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

    def test_a_call_that_a_callback_answers_is_not_counted(self) -> None:
        ran: list[str] = []
        agent = agent_of(ONE, [searching(ran)], before_tool_callback=lambda **given: {"result": "cached"})
        policy = Policy([Budget(max_calls=3)])
        done = went(policy, agent)
        assert (ran, json.loads(done.results[0])) == ([], {"result": "cached"})
        assert policy.session("t").progress["calls_used"] == 0

    @pytest.mark.parametrize("first", [True, False])
    def test_a_plugin_that_stands_before_hears_first_of_what_a_tool_raises(self, first: bool) -> None:
        def search(query: str) -> str:
            """Search the web for a query."""
            raise ConnectionError("down")

        policy, agent = Policy([Budget(max_calls=3)]), agent_of(ONE, [search])
        done = went(policy, agent, *([Rescue()] if first else []), after=() if first else (Rescue(),))
        read = json.loads(done.results[0])
        assert read == {"rescued": "down"} if first else read["error_type"] == "connection"
        assert policy.session("t").progress["calls_used"] == 1
        assert policy.session("t")._read(lambda state, _: dict(state.pending)) == {}

    def test_a_call_that_is_made_again_reads_as_its_last_attempt(self, clock: Any) -> None:
        ran: list[str] = []

        def search(query: str) -> dict[str, Any]:
            """Search the web for a query."""
            ran.append(query)
            if len(ran) < 2:
                raise ConnectionError("down")
            return {"success": False, "error": "there is no such row"}

        policy = Policy([Retryable(auto=True)], rules=[Rule(match="search", declared={"read_only": True})])
        with policy.session("s", clock=clock, sleep=clock.advance) as session:
            done = went(session, agent_of(ONE, [search]), Rescue())
        read = json.loads(done.results[0])
        assert (read["error_message"], read["attempts"], ran) == ("there is no such row", 2, ["x", "x"])

    def test_a_request_that_a_callback_answers_holds_nothing(self) -> None:
        def before(callback_context: Any, llm_request: Any) -> Any:
            if any(part.function_response for content in llm_request.contents for part in content.parts):
                return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="From the cache.")]))
            return None

        policy = Policy([Budget(max_calls=3, max_tokens=10_000)])
        done = went(policy, agent_of(ONE, [searching([])], before_model_callback=before))
        assert done.answer == "From the cache."
        assert policy.session("t")._read(lambda state, _: dict(state.holds)) == {}

    def test_tools_of_the_agent_are_left_alone(self) -> None:
        tool = FunctionTool(searching([]))
        run = tool.run_async
        went(Policy.load("default"), agent_of(ONE, [tool]))
        assert tool.run_async == run
        assert "run_async" not in vars(tool)

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

    def test_a_choice_that_forces_any_tool_holds_once_in_each_run(self) -> None:
        config = types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="ANY"))
        more = {"generate_content_config": types.GenerateContentConfig(tool_config=config)}
        driver, plugin = Driver(), GuardrailsPlugin(Policy.load("default"))
        for n in range(2):
            seen: list[Asked] = []
            script = in_turn(Say(calls=(search(f"x{n}"),)))
            driver.ran(agent_of(script, [searching([])], seen=seen, **more), plugin, seen, thread="t")
            assert [asked.choice for asked in seen] == ["required", "auto"]
        assert config.function_calling_config.mode == "ANY"

    def test_an_output_that_is_never_valid_does_not_go_on_for_ever(self) -> None:
        seen: list[Asked] = []
        script = lambda asked: Say(output={"city": 1})  # noqa: E731
        agent = agent_of(script, [searching([])], seen=seen, output_schema=Stay)
        went(Policy.load("default"), agent, seen=seen)
        assert len(seen) <= 6

    def test_an_output_that_is_not_valid_at_the_end_is_asked_for_once_more(self) -> None:
        def script(asked: Asked) -> Say:
            outputs: dict[int, Any] = {1: {"city": 1}, 2: {"city": "Kyoto", "nights": 2}}
            return Say(output=outputs[asked.n]) if asked.off else Say(calls=(search("x"),))

        agent = agent_of(script, [searching([])], output_schema=Stay)
        assert went(Policy([Budget(max_calls=1)]), agent).output == {"city": "Kyoto", "nights": 2}

    def test_a_model_that_cannot_be_asked_once_more_is_answered_for_by_the_digest(self) -> None:
        def script(asked: Asked) -> Say:
            if asked.n == 2:
                raise ConnectionError("overloaded")
            return Say("") if asked.off else Say(calls=(search("x"),))

        policy = Policy([Budget(max_calls=1, max_tokens=10_000)])
        done = went(policy, agent_of(script, [searching([])]))
        session = policy.session("t")
        assert done.answer == session.digest()
        assert session._read(lambda state, _: dict(state.holds)) == {}

    def test_thoughts_alone_are_no_answer_and_are_not_told_as_one(self) -> None:
        sink = MemorySink()
        seen: list[Asked] = []
        driver, plugin = Driver(), GuardrailsPlugin(Policy.load("default"), records=sink)
        script = in_turn(Say(" "), Say("At last."))
        done = driver.ran(agent_of(script, [searching([])], seen=seen), plugin, seen, thread="t")
        assert (done.answer, len(seen)) == ("At last.", 2)
        assert len([one for one in sink.records if one["event"] == "request"]) == 2

    def test_a_streamed_thought_before_a_call_and_an_empty_end_are_pieces_of_one_response(self) -> None:
        class Pieces(ScriptedModel):
            async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
                async for said in super().generate_content_async(llm_request, stream):
                    thought = types.Part(text="Let me see.", thought=True)
                    yield LlmResponse(content=types.Content(role="model", parts=[thought]))
                    yield said
                    end = said.model_copy(update={"content": None, "finish_reason": types.FinishReason.STOP})
                    yield end

        ran: list[str] = []
        sink = MemorySink()
        agent = agent_of(ONE, [searching(ran)])
        agent.model = Pieces(script=ONE, seen=[])
        plugin = GuardrailsPlugin(Policy.load("default"), records=sink)
        done = Driver().ran(agent, plugin, [], thread="t", stream=True)
        assert (done.error, ran) == (None, ["x"])
        assert [one["calls"] for one in sink.records if one["event"] == "turn"] == [1, 0]

    def test_a_streamed_run_that_ignores_tools_off_ends_with_the_digest(self) -> None:
        ran: list[str] = []
        policy = Policy([Budget(max_calls=2)])
        script = lambda asked: Say("Let me see.", calls=(search(f"q{asked.n}"),))  # noqa: E731
        done = went(policy, agent_of(script, [searching(ran)]), stream=True)
        assert ran == ["q0", "q1"]
        assert done.answer == policy.session("t").digest()

    def test_two_policies_hold_beside_each_other(self) -> None:
        ran: list[str] = []
        wide, narrow = Policy([Budget(max_calls=5)]), Policy([Budget(max_calls=2)])
        plugins = [GuardrailsPlugin(wide, name="wide"), GuardrailsPlugin(narrow, name="narrow")]
        done = Driver().ran(agent_of(roaming, [searching(ran)]), plugins, [], thread="t")
        assert (done.error, ran, done.answer) == (None, ["q0", "q1"], "I know nothing of it.")
        assert [policy.session("t").progress["calls_used"] for policy in (wide, narrow)] == [2, 2]

    def test_a_second_message_goes_on_if_the_policy_says_so_and_a_hand_over_does_not(self) -> None:
        ran: list[str] = []
        policy, driver = Policy([Budget(max_calls=2, go_on={"max_calls": 1})]), Driver()
        plugin = GuardrailsPlugin(policy)
        for _ in range(2):
            clerk = agent_of(roaming, [searching(ran)], name="clerk")
            hands = in_turn(Say(calls=(search("a"),)), Say(calls=(Call("transfer_to_agent", {"agent_name": "clerk"}),)))
            driver.ran(agent_of(hands, [searching(ran)], sub_agents=[clerk]), plugin, [], thread="t")
        assert len(ran) == 3

    def test_the_limit_of_the_host_is_still_the_hosts(self) -> None:
        policy = Policy([Budget(max_calls=50), Duplicates()])
        seen: list[Asked] = []
        done = Driver().ran(agent_of(roaming, [searching([])], seen=seen), [GuardrailsPlugin(policy)], seen, most=3)
        assert "max number of llm calls" in str(done.error).lower()
