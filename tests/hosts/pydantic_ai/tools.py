"""
What tools of pydantic-ai raise and return, and what the model reads of it.
"""

import asyncio

from typing import Any

import pytest

from pydantic_ai import BinaryContent, ModelRetry, Tool, ToolReturn
from pydantic_ai.capabilities import Hooks
from pydantic_ai.exceptions import SkipToolExecution, ToolFailed
from pydantic_ai.messages import UserPromptPart

from guardrails import Budget, Duplicates, Policy, Retryable, Rule
from tests.hosts.behaviours.base import envelope, in_turn, search, searching
from tests.hosts.driver import Call, Say

from .driver import agent, outcomes, returned, run, told


class Tools:
    """
    In the form of the host.
    """

    def test_a_retry_that_a_tool_asks_for_stays_one_and_more_of_them_end_no_run(self) -> None:
        def find(query: str) -> str:
            raise ModelRetry("use two words")

        calls = [Say(calls=(Call("find", {"query": f"q{n}"}),)) for n in range(4)]
        done = run(agent(in_turn(*calls), find, guarded=Policy.load("default")))
        assert outcomes(done) == ["retried", "failed", "failed", "failed"]
        assert [envelope(text)["error_message"] for text in told(done)] == ["use two words"] * 4
        assert envelope(told(done)[0])["next_action"] == "fix_arguments"
        assert done.output == "Done."

    def test_what_a_tool_calls_its_failure_is_one(self) -> None:
        def find(query: str) -> str:
            raise ToolFailed("permission denied for this index")

        done = run(agent(in_turn(Say(calls=(Call("find", {"query": "x"}),))), find))
        assert outcomes(done) == ["failed"]
        assert envelope(told(done)[0])["error_type"] == "permission"

    @pytest.mark.parametrize("kind", [ModelRetry, ToolFailed])
    def test_a_call_that_is_made_again_reads_as_its_last_attempt(self, clock: Any, kind: Any) -> None:
        ran: list[str] = []

        def find(query: str) -> str:
            ran.append(query)
            if len(ran) < 2:
                raise kind("503 Service Unavailable")
            return "found"

        policy = Policy([Retryable(auto=True)], rules=[Rule(match="find", declared={"read_only": True})])
        with policy.session("s", clock=clock, sleep=clock.advance) as session:
            done = run(agent(in_turn(Say(calls=(Call("find", {"query": "x"}),))), find, guarded=session))
        assert outcomes(done) == ["success"]
        assert (envelope(told(done)[0])["result"], envelope(told(done)[0])["attempts"]) == ("found", 2)

    @pytest.mark.parametrize("kind", [ModelRetry, ToolFailed])
    def test_what_a_validator_of_arguments_says_is_wrong_with_them(self, kind: Any) -> None:
        ran: list[str] = []

        def odd(ctx: Any, query: str) -> None:
            if query == "x":
                raise kind("one letter finds nothing")

        tool = Tool(searching(ran), args_validator=odd)
        calls = [Say(calls=(search("x"),)), Say(calls=(search("x"),)), Say(calls=(search("words"),))]
        done = run(agent(in_turn(*calls), tool, guarded=Policy.load("default")))
        assert outcomes(done) == ["failed", "failed", "success"]
        assert envelope(told(done)[0])["errors"] == [{"field": "", "message": "one letter finds nothing"}]
        assert ran == ["words"]

    def test_a_refusal_reads_as_a_denial_of_the_host(self) -> None:
        twice = in_turn(Say(calls=(search("x"),)), Say(calls=(search("x"),)))
        assert outcomes(run(agent(twice, searching([]), guarded=Policy([Duplicates()])))) == [
            "success",
            "denied",
        ]

    def test_a_tool_that_is_out_of_the_hosts_time_has_timed_out(self) -> None:
        async def wait() -> str:
            await asyncio.Event().wait()
            return "never"

        done = run(agent(in_turn(Say(calls=(Call("wait"),))), Tool(wait, timeout=0.01)))
        assert envelope(told(done)[0])["error_type"] == "timeout"

    def test_what_another_capability_puts_in_the_place_of_a_call_is_its_result(self) -> None:
        hooks: Any = Hooks()

        @hooks.on.before_tool_execute
        async def cached(ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            raise SkipToolExecution("from the cache")

        ran: list[str] = []
        done = run(agent(in_turn(Say(calls=(search("x"),))), searching(ran), also=[hooks]))
        assert (envelope(told(done)[0])["result"], ran) == ("from the cache", [])

    def test_a_file_stays_a_file_and_a_limit_is_told_beside_it(self) -> None:
        image = BinaryContent(b"abc", media_type="image/png")
        two = Policy([Budget(max_calls=2)])
        script = in_turn(Say(calls=(Call("look", id="a"),)), Say(calls=(Call("look", id="b"),)))
        done = run(agent(script, Tool(lambda: image, name="look"), guarded=two))
        assert told(done) == [image, image]
        said = [
            part.content
            for message in done.all_messages()
            for part in message.parts
            if isinstance(part, UserPromptPart)
        ]
        assert len(said) == 2
        assert "Tool call limit reached (2)" in str(said[1])

    def test_pieces_of_one_result_are_no_matches(self) -> None:
        pieces = ["a hill", BinaryContent(b"abc", media_type="image/png")]
        script = in_turn(Say(calls=(Call("look", id="a"),)))
        done = run(agent(script, Tool(lambda: pieces, name="look"), guarded=Policy.load("default")))
        assert told(done) == [pieces]
        assert "matches" not in str(done.all_messages())

    def test_what_a_tool_returns_beside_its_value_is_kept(self) -> None:
        tool = Tool(lambda: ToolReturn("found", content="see below", metadata={"page": 1}), name="look")
        done = run(agent(in_turn(Say(calls=(Call("look"),))), tool))
        [part] = returned(done.all_messages())
        assert (envelope(part.content)["result"], part.metadata) == ("found", {"page": 1})

    def test_an_event_says_that_arguments_are_wrong(self) -> None:
        async def events() -> list[Any]:
            wrong = in_turn(Say(calls=(Call("search", {"q": 1}),)), Say(calls=(search("x"),)))
            async with agent(wrong, searching([])).run_stream_events("go") as stream:
                return [event.args_valid async for event in stream if event.event_kind == "function_tool_call"]

        assert asyncio.run(events()) == [False, True]
