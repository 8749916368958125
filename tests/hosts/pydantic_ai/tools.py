"""
What tools of pydantic-ai raise and return, and what the model reads of it.
"""

from typing import Any

import pytest

from pydantic_ai import BinaryContent, ModelRetry, Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import UserPromptPart

from guardrails import Budget, Policy
from tests.hosts.behaviours.base import envelope, in_turn, search, searching
from tests.hosts.driver import Call, Say

from .driver import agent, outcomes, run, told


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
