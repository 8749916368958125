"""
How a run of pydantic-ai ends, and what it asks of its model.
"""

from pydantic_ai.usage import UsageLimits

from guardrails import Budget, MemorySink, Policy
from guardrails.integrations.pydantic_ai import GuardrailsCapability
from tests.hosts.behaviours.base import in_turn, roaming, search, searching
from tests.hosts.driver import Say

from .driver import FIVE, agent, run


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

    def test_a_further_message_of_the_user_lets_a_conversation_go_on_as_the_policy_says(self) -> None:
        ran: list[str] = []
        cap = GuardrailsCapability(Policy([Budget(max_calls=1, go_on={"max_calls": 2})]))
        one = agent(roaming, searching(ran), guarded=cap)
        first = run(one)
        assert ran == ["q0"]
        again = run(agent(roaming, searching(ran), guarded=cap), "and", message_history=first.all_messages())
        assert ran == ["q0", "q0", "q1"]
        assert again.output == "I know nothing of it."

    def test_each_response_is_charged_once_with_its_number_of_calls(self) -> None:
        sink = MemorySink()
        cap = GuardrailsCapability(FIVE, records=sink)
        run(agent(in_turn(Say(calls=(search("x"), search("y")))), searching([]), guarded=cap))
        turns = [record for record in sink.records if record["event"] == "turn"]
        charges = [record for record in sink.records if record["event"] == "charge"]
        assert [turn["calls"] for turn in turns] == [2, 0]
        assert [charge["tokens"] for charge in charges] == [15, 15]
