"""
What a guard is.
"""

import copy
import dataclasses

from typing import Annotated, Any

import pytest

from annotated_types import Ge

from guardrails import Budget, Denial, Duplicates, Envelope, Guard, Nudge, Policy, PolicyError, Streak, Tool, guard
from guardrails.core.chain import ACTS, Chain
from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import overrides
from tests.core.guards.calls import ok
from tests.tables import table


@guard
class MyTwoCents(Guard):
    """
    Cap what is said of money; also a person's own guard in whole.
    """

    limit: Annotated[int, Ge(1)] | None = None
    words: tuple[str, ...] = ("cent",)

    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Denial | Nudge | None:
        if self.limit is None or (mine or 0) < self.limit:
            return None
        return Denial(code="my_two_cents.limit", message="Enough.", hint="Say something else.")

    def admit(self, call: Any, state: Any, mine: Any, facts: Any) -> int:
        return (mine or 0) + 1

    def shape(self, envelope: Envelope, call: Any, outcome: Any, state: Any, mine: Any, facts: Any) -> Envelope:
        envelope.nudge("That was one cent.")
        return envelope


def test_a_persons_own_guard_looks_counts_and_shapes(clock: Any) -> None:
    session = Policy([MyTwoCents(limit=2)]).session("s", clock=clock)
    seen = [session.call("t", {"n": n}, ok) for n in range(3)]
    assert [envelope.code for envelope in seen] == [None, None, "my_two_cents.limit"]
    assert seen[0].next_action_hint == "That was one cent."
    assert seen[2].next_action_hint == "Say something else."


def test_a_guard_is_named_after_its_class_and_prints_what_is_set() -> None:
    assert MyTwoCents.name == "my_two_cents"
    assert str(MyTwoCents(limit=3)) == "MyTwoCents(limit=3)"
    assert (str(MyTwoCents()), MyTwoCents().settings()) == ("MyTwoCents()", {})
    assert MyTwoCents(mode="observe").settings() == {"mode": "observe"}


def test_a_guard_is_frozen_keyword_only_and_holds_no_state() -> None:
    made: Any = MyTwoCents(limit=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.limit = 4
    with pytest.raises((AttributeError, TypeError)):
        made.other = 1
    with pytest.raises(TypeError, match="no setting `limt`, did you mean `limit`"):
        MyTwoCents(limt=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        MyTwoCents(*[3])
    assert hash(made) == hash(copy.deepcopy(made))
    assert made == copy.deepcopy(made) != MyTwoCents(limit=4)


@table("cls", GUARDS)
def test_every_guard_has_one_name_that_is_its_file_its_key_and_the_prefix_of_its_codes(cls: type[Guard]) -> None:
    room, _, file = cls.__module__.rpartition(".")
    assert (room.startswith("guardrails.core.guards"), file) == (True, cls.name)
    assert cls().mode == "enforce"
    assert cls.__doc__
    assert any(overrides(cls, method) for method in ACTS)


@table("cls", GUARDS)
def test_a_guard_without_settings_that_says_nothing_ever_costs_nothing(cls: type[Guard]) -> None:
    plan = Chain([cls()]).plan("t")
    if cls().for_tool(Tool(name="t")) is None:
        assert (plan.checks, plan.admits, plan.settles, plan.shapes) == ((), (), (), ())


@table("mode", ["off", "observe"])
def test_what_is_off_is_not_there_and_what_observes_changes_nothing(mode: Any, clock: Any) -> None:
    refused = ["budget.max_calls", "streak.max_same", "duplicates.window"]
    whole = Policy([Budget(max_calls=1), Duplicates(), Streak(max_same=1)], mode=mode)
    for policy, codes in ((Policy([MyTwoCents(limit=1, mode=mode)]), ["my_two_cents.limit"]), (whole, refused)):
        seen: list[Any] = []
        session = policy.session("s", clock=clock, on_decision=seen.append)
        envelopes = [session.call("t", {}, ok) for _ in range(2)]
        assert (all(one.ok for one in envelopes), session.exhausted) == (True, None)
        assert "cent" not in "".join(one.to_json() for one in envelopes)
        observed = [[denial.code for denial in decision.observed] for decision in seen]
        assert observed == [[], codes if mode == "observe" else []]


def test_settings_are_checked_where_the_guard_is_used() -> None:
    with pytest.raises(PolicyError, match=r"my_two_cents\.limit: must be at least 1"):
        Policy([MyTwoCents(limit=0)])
