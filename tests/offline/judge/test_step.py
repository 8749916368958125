"""
One call through a chain, the short way and by `decide` and `complete`.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import (
    Budget,
    Denials,
    Duplicates,
    Growth,
    Loops,
    Policy,
    Rate,
    Retryable,
    SessionState,
    Streak,
    Tool,
    ToolFilter,
    Validation,
)
from guardrails.core.engine.chain import Chain, Rule
from guardrails.core.engine.complete import Prepared, complete
from guardrails.core.engine.decide import Decision, decide
from guardrails.core.engine.transitions import charge_response, open_turn
from guardrails.core.guards.base import Guard, guard
from guardrails.core.state.state import Pending
from guardrails.core.values.types import Mode, Nudge, Outcome, Problem, ToolCall, pending_key
from guardrails.offline.judge.passing import SUCCESS
from guardrails.offline.judge.reach import reach_of
from guardrails.offline.judge.step import Side, way_of


@guard
class Grumbling(Guard):
    """
    Fails, nudges or counts, by the tool.
    """

    def check(self, call: ToolCall, state: SessionState, facts: Any) -> Nudge | None:
        if call.tool == "c":
            raise ValueError("no")
        return Nudge(code="grumbling.b", hint="hm") if call.tool == "b" else None

    def charge(self, call: ToolCall, state: SessionState, facts: Any) -> dict[str, int]:
        if call.tool == "d":
            raise ValueError("no")
        return {"grumbling": state.meter("grumbling") + 1}


GUARDS: list[st.SearchStrategy[Guard]] = [
    st.builds(
        Budget,
        max_calls=st.none() | st.integers(0, 8),
        max_turns=st.none() | st.integers(1, 3),
        max_tokens=st.none() | st.integers(0, 300),
        max_cost_usd=st.none() | st.sampled_from([0.15, 0.35, 2.0]),
        final_answer_reserve_usd=st.sampled_from([0.0, 0.0, 0.1]),
        on_unpriced=st.sampled_from(["deny", "warn"]),
        max_elapsed=st.none() | st.sampled_from([2.0, 60.0]),
    ),
    st.builds(Growth, max_calls_per_second=st.none() | st.integers(1, 5), max_tokens_per_minute=st.just(500)),
    st.builds(Rate, max_calls_per_second=st.none() | st.integers(1, 3)),
    st.builds(Streak, max_same=st.none() | st.integers(1, 4), max_failures=st.none() | st.integers(1, 3)),
    st.builds(Denials, max_turns_in_a_row=st.integers(1, 3)),
    st.builds(Loops),
    st.builds(Duplicates, rule=st.sampled_from(["always", "evidence"])),
    st.builds(Retryable, max_retries=st.integers(0, 3), backoff=st.sampled_from([0.5, 2.0])),
    st.just(ToolFilter(deny=("a",))),
    st.just(Validation()),
    st.just(Grumbling()),
]
RULES = (
    Rule(match=("a",), declared={"cost_usd": 0.1}, guards={"budget": {"max_calls": 3, "max_elapsed": 1.0}}),
    Rule(match=("b",), declared={"timeout": 0.5, "stable": True}, guards={"duplicates": {"rule": "evidence"}}),
)


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    guards = [draw(made) for made in GUARDS if draw(st.booleans())]
    mode: Mode = draw(st.sampled_from(["enforce", "enforce", "observe"]))
    rules = RULES if draw(st.booleans()) else ()
    return Policy(guards, rules=rules, mode=mode, on_error="deny" if draw(st.booleans()) else "allow").chain


@dataclass
class Called:
    tool: str
    argument: int | None
    wait_ms: int
    outcome: Outcome | None
    evidence: tuple[int, int, int]
    duration_ms: int
    turn: bool
    tokens: int | None
    cost: int | None
    model: str | None
    problem: bool


calls = st.builds(
    Called,
    tool=st.sampled_from("abcd"),
    argument=st.none() | st.integers(0, 2),
    wait_ms=st.sampled_from([0, 0, 10, 11, 700, 3_000, 700_000, 40_000_000_000]),
    outcome=st.sampled_from([SUCCESS, SUCCESS, None, Outcome(None, "timeout"), Outcome(None, "other", "", None, 5)]),
    evidence=st.tuples(st.integers(1, 2), st.integers(0, 1), st.integers(0, 2)),
    duration_ms=st.sampled_from([0, 0, 5, 800, 4_000, 800_000]),
    turn=st.booleans(),
    tokens=st.none() | st.integers(0, 100),
    cost=st.none() | st.sampled_from([0, 1_000, 100_000]),
    model=st.none() | st.just("m"),
    problem=st.sampled_from([False, False, False, True]),
)


@dataclass
class Plain(Side):
    """
    The same by nothing but `decide` and `complete`.
    """

    open: list[tuple[int, Decision, Outcome, tuple[int, int, int]]] = field(default_factory=list)

    def step(
        self, call: ToolCall, now: int, way: Any, outcome: Any, evidence: Any, end_ms: int, said: str | None = None
    ) -> Decision:
        self.settle(now)
        plan = way.plan
        decision = decide(self.chain, call, self.state, now, claim=True, plan=plan)
        if decision.envelope is None:
            if outcome is None:
                self.state.pending[pending_key(call.id, call.sig, decision.seq)].expires_ms = now
            elif end_ms > now:
                self.open.append((end_ms, decision, outcome, evidence))
            else:
                complete(
                    self.chain,
                    decision,
                    Prepared(outcome, None, evidence[0], None, *evidence[1:]),
                    self.state,
                    now,
                    plan,
                )
        return decision

    def settle(self, now: int) -> None:
        for one in sorted(self.open, key=lambda each: each[0]):
            if one[0] <= now:
                self.open.remove(one)
                complete(self.chain, one[1], Prepared(one[2], None, one[3][0], None, *one[3][1:]), self.state, one[0])

    def respond(self, now: int, cost: int | None, tokens: int | None, *, turn: bool, model: str | None = None) -> None:
        self.settle(now)
        if turn:
            open_turn(self.chain, self.state, now, 0)
        untold = tokens is None and model is not None
        if tokens is not None or untold:
            charge_response(self.chain, self.state, now, cost, tokens or 0, model, untold=untold)


@given(chain=chains(), story=st.lists(calls, max_size=25), looks=st.sets(st.integers(0, 24)), told=st.booleans())
def test_the_short_way_leaves_the_state_that_decide_and_complete_leave(
    chain: Chain,
    story: list[Called],
    looks: set[int],
    told: bool,
) -> None:
    """
    Whoever looks at the state has calls that passed entered first; mostly nobody looks. Turns are *told*, or not.
    """
    short, plain = Side(chain, reach_of(chain)), Plain(chain, None)
    now = 1_800_000_000_000
    for number, called in enumerate(story):
        now += called.wait_ms
        turn = called.turn and told
        if turn or called.tokens is not None:
            for side in (short, plain):
                side.respond(now, called.cost, called.tokens, turn=turn, model=called.model)
        problems = (Problem("n", "odd", "value"),) if called.problem else ()
        call = ToolCall(called.tool, {}, str(number), None, called.argument, problems)
        args = now, way_of(chain.plan(called.tool)), called.outcome, called.evidence, now + called.duration_ms
        said, full = short.step(call, *args), plain.step(call, *args)
        if number in looks or number == len(story) - 1:
            short.enter()
            assert short.state == plain.state
        if said is None:
            assert (full.allowed, full.nudges, full.observed) == (True, (), ())
        else:
            assert (said.code, said.nudges, said.observed) == (full.code, full.nudges, full.observed)


def made(policy: Policy) -> Side:
    return Side(policy.chain, reach_of(policy.chain))


def test_a_call_that_simply_passes_has_no_decision() -> None:
    side = made(Policy([Budget(max_calls=5), Duplicates()]))
    assert (
        side.step(ToolCall("a", {}, "1", None, 7), 1_000, way_of(side.chain.plan("a")), SUCCESS, (1, 0, 0), 1_000)
        is None
    )
    assert side.state.pending == {}
    assert side.state.window[0].status == "ok"


def test_a_late_result_changes_nothing() -> None:
    policy = Policy([Duplicates()], tools=[Tool(name="a", timeout=1.0)])
    side = made(policy)
    side.step(ToolCall("a", {}, "1", None, 7), 0, way_of(side.chain.plan("a")), SUCCESS, (1, 0, 0), 5_000)
    side.step(ToolCall("b", {}, "2", None, 8), 4_000, way_of(side.chain.plan("b")), SUCCESS, (1, 0, 0), 4_000)
    side.settle(9_000)
    assert side.state.window[0].status == "expired"


@pytest.mark.parametrize("outcome", [SUCCESS, Outcome(None, "timeout")])
def test_what_is_not_over_is_not_seen(outcome: Outcome) -> None:
    side = made(Policy([Duplicates()]))
    side.step(ToolCall("a", {}, "1", None, 7), 0, way_of(side.chain.plan("a")), outcome, (1, 0, 0), 5_000)
    side.settle(4_999)
    assert side.passing is None
    assert [type(pending) for pending in side.state.pending.values()] == [Pending]
    side.settle(5_000)
    assert side.state.pending == {}
