"""
How a run of pydantic-ai ends, and what it asks of its model.
"""

from typing import Any

import pytest

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, PromptedOutput, RunContext, Tool, capture_run_messages
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.usage import UsageLimits

from guardrails import Budget, MemorySink, Policy
from guardrails.integrations.pydantic_ai import GuardrailsCapability
from tests.hosts.behaviours.base import envelope, in_turn, roaming, search, searching
from tests.hosts.driver import Call, Say

from .driver import FIVE, Scripted, agent, outcomes, run, told


TWO = Policy([Budget(max_calls=2)])


class City(BaseModel):
    name: str


class Ends:
    """
    An answer within the limits of the host.
    """

    def test_the_last_request_of_the_hosts_limit_is_one_for_an_answer(self) -> None:
        ran: list[str] = []
        done = run(agent(roaming, searching(ran)), usage_limits=UsageLimits(request_limit=4))
        assert (done.output, done.usage.requests, len(ran)) == ("I know nothing of it.", 4, 3)

    def test_a_model_that_calls_with_its_last_request_is_answered_for_by_the_digest(self) -> None:
        cap, always = GuardrailsCapability(FIVE), lambda asked: Say(calls=(search(f"q{asked.n}"),))
        done = run(agent(always, searching([]), guarded=cap), usage_limits=UsageLimits(request_limit=3))
        assert done.output == cap.session(done.conversation_id).digest()

    def test_a_last_request_may_end_with_a_call_that_others_run(self) -> None:
        tool = Tool(lambda v: v, name="deploy", requires_approval=True)
        once = agent(in_turn(Say(calls=(Call("deploy", {"v": "1"}),))), tool, output_type=[str, DeferredToolRequests])
        waits = run(once, usage_limits=UsageLimits(request_limit=1))
        assert [call.tool_name for call in waits.output.approvals] == ["deploy"]

    def test_other_limits_of_the_host_hold_as_they_did(self) -> None:
        with pytest.raises(UsageLimitExceeded):
            run(agent(roaming, searching([])), usage_limits=UsageLimits(tool_calls_limit=2))
        with pytest.raises(UsageLimitExceeded):
            run(agent(roaming, searching([])), usage_limits=UsageLimits(total_tokens_limit=40))

    @pytest.mark.parametrize("kind", [City, PromptedOutput(City)])
    def test_of_a_structured_output_that_never_comes_the_host_tells_in_its_own_error(self, kind: Any) -> None:
        always = lambda asked: Say(calls=(search(f"q{asked.n}"),))  # noqa: E731
        with capture_run_messages() as messages, pytest.raises(UnexpectedModelBehavior, match="2 tool calls were made"):
            run(agent(always, searching([]), guarded=TWO, output_type=kind))
        assert len(messages) == 7

    def test_text_beside_a_structured_output_may_be_the_digest(self) -> None:
        always = lambda asked: Say(calls=(search(f"q{asked.n}"),))  # noqa: E731
        done = run(agent(always, searching([]), guarded=TWO, output_type=[str, City]))
        assert "2 tool calls were made" in str(done.output)

    def test_a_tool_that_is_not_there_called_again_and_again_ends_no_run(self) -> None:
        nobody, ran = Call("find", {"query": "x"}), list[str]()
        script = lambda asked: Say("Done.") if asked.off else Say(calls=(nobody, search(f"q{asked.n}")))  # noqa: E731
        done = run(agent(script, searching(ran), guarded=Policy.load("default")))
        assert (done.output, ran) == ("Done.", ["q0"])
        assert outcomes(done)[:4] == ["retried", "success", "retried", "denied"]
        assert "There is no tool `find`" in told(done)[0]

    def test_a_choice_that_changes_from_step_to_step_holds_for_each(self) -> None:
        class Steps(AbstractCapability[Any]):
            def get_model_settings(self) -> Any:
                return lambda ctx: {"tool_choice": [["search"], ["look"], ["look"]][ctx.run_step - 1]}

        def look(at: str) -> str:
            return at

        scripted = Scripted(in_turn(Say(calls=(search("x"),)), Say(calls=(Call("look", {"at": "y"}),))))
        caps = [GuardrailsCapability(FIVE), Steps()]
        run(Agent(scripted.model, tools=[searching([]), look], capabilities=caps))
        assert [asked.choice for asked in scripted.asked] == ["search", "look", None]

    def test_a_run_goes_on_in_the_session_of_its_conversation_without_being_told(self) -> None:
        cap = GuardrailsCapability(FIVE)
        once = in_turn(Say(calls=(search("x"),)))
        first = run(agent(once, searching([]), guarded=cap))
        more = agent(in_turn(Say(calls=(search("y"),))), searching([]), guarded=cap)
        run(more, "and", message_history=first.all_messages())
        assert cap.session(first.conversation_id).progress["calls_used"] == 2

    def test_a_further_message_of_the_user_lets_a_conversation_go_on_as_the_policy_says(self) -> None:
        ran: list[str] = []
        cap = GuardrailsCapability(Policy([Budget(max_calls=1, go_on={"max_calls": 2})]))
        one = agent(roaming, searching(ran), guarded=cap)
        first = run(one)
        assert ran == ["q0"]
        again = run(agent(roaming, searching(ran), guarded=cap), "and", message_history=first.all_messages())
        assert ran == ["q0", "q0", "q1"]
        assert again.output == "I know nothing of it."

    def test_an_agent_that_a_tool_runs_uses_no_more_than_its_share(self) -> None:
        ran: list[str] = []
        cap = GuardrailsCapability(FIVE, share={"max_calls": 2})
        inner = agent(roaming, searching(ran), guarded=cap)

        async def ask() -> str:
            return str((await inner.run("go")).output)

        done = run(agent(in_turn(Say(calls=(Call("ask"),))), ask, guarded=cap))
        assert ran == ["q0", "q1"]
        assert envelope(told(done)[0])["result"] == "I know nothing of it."
        assert cap.session(done.conversation_id).progress["calls_left"] == 2

    def test_an_agent_with_a_policy_of_its_own_has_a_session_of_its_own(self) -> None:
        inner = agent(in_turn(Say(calls=(search("x"),)), Say(calls=(search("y"),))), searching([]), guarded=TWO)

        async def ask(ctx: RunContext[Any]) -> str:
            return str((await inner.run("go", usage=ctx.usage)).output)

        cap = GuardrailsCapability(FIVE)
        done = run(agent(in_turn(Say(calls=(Call("ask"),))), ask, guarded=cap))
        assert envelope(told(done)[0])["result"] == "Done."
        assert cap.session(done.conversation_id).progress["calls_used"] == 1

    def test_each_response_is_charged_once_with_its_number_of_calls(self) -> None:
        sink = MemorySink()
        cap = GuardrailsCapability(FIVE, records=sink)
        run(agent(in_turn(Say(calls=(search("x"), search("y")))), searching([]), guarded=cap))
        turns = [record for record in sink.records if record["event"] == "turn"]
        charges = [record for record in sink.records if record["event"] == "charge"]
        assert [turn["calls"] for turn in turns] == [2, 0]
        assert [charge["tokens"] for charge in charges] == [15, 15]
