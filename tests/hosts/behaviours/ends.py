"""
How a run ends: by an answer of the model's, forced if need be, and never by an exception of ours.
"""

from typing import Any

import pytest

from pydantic import BaseModel

from guardrails import Budget, Policy
from tests.hosts.driver import Asked, Say

from .base import Behaviours, in_turn, roaming, search, searching, stuck


class Stay(BaseModel):
    """
    A structured output.
    """

    city: str
    nights: int


ONE_MORE: Any = {"allow": ["search"], "calls": 1}
"""An `at_limit`."""
STAY = {"city": "Kyoto", "nights": 2}


def stay(output: Any) -> Stay:
    """
    It, in whatever form a host gives it.
    """
    return output if isinstance(output, Stay) else Stay.model_validate(output)


class ClientError(Exception):
    """
    What a model's client raises.
    """


class Ends(Behaviours):
    """
    Final answers.
    """

    def test_a_stuck_model_comes_to_a_final_answer(self) -> None:
        done = self.go(Policy.load("default"), [searching([])], stuck)
        assert done.answer == "I know nothing of it."
        assert len(done.asked) <= 8

    @pytest.mark.parametrize(
        ("budget", "runs", "way"),
        [
            (Budget(max_calls=3), 3, {}),
            (Budget(max_calls=3), 3, {"sync": True}),
            (Budget(max_turns=3), 3, {}),
            (Budget(max_calls=2, at_limit=ONE_MORE), 3, {}),
            (Budget(max_calls=2, at_limit="ask"), 2, {}),
        ],
    )
    def test_a_model_at_the_cap_comes_to_a_final_answer(self, budget: Budget, runs: int, way: Any) -> None:
        ran: list[str] = []
        done = self.go(Policy([budget]), [searching(ran)], roaming, **way)
        assert ran == [f"q{n}" for n in range(runs)]
        assert done.answer == "I know nothing of it."
        assert [asked.off for asked in done.asked] == [False, False, False, True]

    def test_text_is_streamed_in_pieces_and_the_guards_are_the_same(self) -> None:
        ran: list[str] = []
        done = self.go(Policy([Budget(max_calls=2)]), [searching(ran)], roaming, stream=True)
        assert done.answer == "I know nothing of it."
        assert "".join(done.streamed) == done.answer
        assert len(done.streamed) > 1
        assert ran == ["q0", "q1"]

    def test_a_model_that_calls_with_tools_off_is_asked_once_more_and_the_digest_is_the_answer(self) -> None:
        ran: list[str] = []
        policy = Policy([Budget(max_calls=2)])
        done = self.go(policy, [searching(ran)], lambda asked: Say(calls=(search(f"q{asked.n}"),)), thread="t")
        assert ran == ["q0", "q1"]
        assert [asked.off for asked in done.asked] == [False, False, True, True]
        assert done.answer == policy.session("t").digest()
        # The conversation is whole: the API would take its next request.
        self.go(policy, [searching(ran)], in_turn(), thread="t")

    def test_a_model_that_calls_with_tools_off_and_then_answers_is_taken_at_its_word(self) -> None:
        def script(asked: Asked) -> Say:
            return Say("At last.") if asked.n == 3 else Say(calls=(search(f"q{asked.n}"),))

        done = self.go(Policy([Budget(max_calls=2)]), [searching([])], script)
        assert done.answer == "At last."

    def test_a_model_that_stays_silent_with_tools_off_is_answered_for_by_the_digest(self) -> None:
        policy = Policy([Budget(max_calls=1)])
        script = lambda asked: Say("") if asked.off else Say(calls=(search("x"),))  # noqa: E731
        done = self.go(policy, [searching([])], script, thread="t")
        assert len(done.asked) == 3
        assert done.answer == policy.session("t").digest()

    def test_a_forced_tool_choice_holds_for_the_first_request_only(self) -> None:
        done = self.go(Policy.load("default"), [searching([])], in_turn(Say(calls=(search("x"),))), choice="search")
        assert done.asked[0].choice in ("search", "required")
        assert done.asked[1].choice in (None, "auto")
        assert done.answer == "Done."

    def test_a_structured_output_is_the_hosts_own(self) -> None:
        script = in_turn(Say(calls=(search("x"),)), Say(output=STAY))
        done = self.go(Policy.load("default"), [searching([])], script, output=Stay)
        assert stay(done.output) == Stay(city="Kyoto", nights=2)

    def test_a_structured_output_is_valid_at_the_end_too(self) -> None:
        ran: list[str] = []
        script = lambda asked: Say(output=STAY) if asked.off else Say(calls=(search(f"q{asked.n}"),))  # noqa: E731
        done = self.go(Policy([Budget(max_calls=2)]), [searching(ran)], script, output=Stay)
        assert stay(done.output) == Stay(city="Kyoto", nights=2)
        assert ran == ["q0", "q1"]

    def test_what_a_models_client_raises_is_raised_by_the_host_and_nothing_stays_held(self) -> None:
        def script(asked: Asked) -> Say:
            if asked.n == 1:
                raise ClientError("overloaded")
            return Say(calls=(search("x"),))

        policy = Policy([Budget(max_calls=5, max_tokens=10_000)])
        adapter = self.host.adapter(policy)
        failed = self.host.run(adapter, [searching([])], script, thread="t")
        raised, causes = failed.error, []
        while raised is not None:
            causes.append(type(raised))
            raised = raised.__cause__ or raised.__context__
        assert ClientError in causes
        assert policy.session("t").ledger.read(
            lambda state, _: ((state.own.get("budget") or {}).get("holds", {}), dict(state.pending))
        ) == ({}, {})
        assert self.again(adapter, [searching([])], in_turn(), thread="t").answer == "Done."

    def test_a_model_that_never_called_a_tool_is_left_alone(self) -> None:
        done = self.go(Policy.load("default"), [searching([])], in_turn(Say("Good morning.")))
        assert done.answer == "Good morning."
        assert len(done.asked) == 1
        assert not done.asked[0].off
        assert stuck(done.asked[0]).calls
