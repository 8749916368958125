"""
The named constructors of decisions, completions and what they are made of: each fills every field.
"""

from dataclasses import fields, replace
from typing import Any

from guardrails import Budget, Decision, Denial, Envelope, Policy, SessionState
from guardrails.core.engine.complete import Completion, Settle
from guardrails.core.engine.decide import Ask
from guardrails.core.engine.engine import Engine
from guardrails.core.engine.prepare import prepare
from guardrails.core.result import reading_of
from guardrails.core.state.entries import Entry, Pending
from guardrails.core.values.types import ToolCall
from tests.tables import table


def made(*guards: Any) -> tuple[Engine, SessionState]:
    return Engine(Policy(guards).chain, "s", life=lambda: "run 1"), SessionState()


def ask(engine: Engine, state: SessionState, n: int, *, claim: bool = True) -> Decision:
    call = ToolCall("t", {"n": n}, f"call {n}", None, n)
    return engine.apply(Ask(1_000 + n, call, engine.chain.plan("t"), claim), (state,))


def values(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def test_an_admitted_call_is_told_by_its_admission() -> None:
    engine, state = made()
    decision = ask(engine, state, 1)
    [pending] = state.pending.values()
    same = ("n", "seq", "cost", "tokens", "turn", "claimed", "at_ms")
    assert {name: values(decision)[name] for name in same} == {name: values(pending)[name] for name in same}
    assert (decision.session, decision.run, decision.marks, decision.allowed) == ("s", "run 1", None, True)


def test_a_call_that_is_asked_for_again_is_told_by_the_same_admission() -> None:
    engine, state = made()
    first, again, claimed = (ask(engine, state, 1, claim=claim) for claim in (False, False, True))
    assert values(again) == {**values(first), "repeated": True}
    assert (claimed.claim_n, claimed.claimed, claimed.at_ms) == (2, True, 1_001)


def test_a_refused_call_has_its_refusal_from_the_beginning() -> None:
    engine, state = made(Budget(max_calls=0))
    decision = ask(engine, state, 1)
    assert decision.envelope is not None
    assert (decision.code, decision.envelope.code, decision.seq) == ("budget.max_calls", "budget.max_calls", None)
    assert values(decision).keys() >= {"session", "run", "marks"}


@table("denial", [None, Denial(code="store.error", message="no")])
def test_a_call_of_which_nothing_is_known_runs_unless_it_is_denied(denial: Denial | None) -> None:
    decision = Decision.unknown(ToolCall("t", {}, "1", None, 1), 5, "s", ("store", "gone"), denial)
    assert (decision.allowed, decision.n, decision.errors) == (denial is None, 0, (("store", "gone"),))


def test_a_completion_says_what_the_envelope_says() -> None:
    engine, state = made()
    decision = ask(engine, state, 1)
    plan, prepared = engine.chain.plan("t"), prepare(reading_of(TimeoutError("late")), 1_000)
    envelope, completion = engine.apply(Settle(2_000, decision, prepared, plan), (state,))
    assert type(envelope) is Envelope
    assert values(completion) == values(replace(completion))
    assert type(completion) is Completion
    assert (completion.n, completion.late, completion.duration_ms, completion.run) == (2, False, 999, "run 1")
    assert (completion.retryable, completion.wait_ms) == (envelope.retryable, envelope.retry_after_ms)


def test_the_quick_ways_to_make_a_value_make_the_same_value() -> None:
    entry = Entry.begun(1, "t", 2, 3, True, turn=4, sketch=5)
    assert entry == Entry(1, "t", 2, 3, True, turn=4, sketch=5)
    made = {"n": 1, "expires_ms": 2, "cost": 3, "tokens": 4, "turn": 5, "claimed": True}
    told = {"id": "i", "seq": 1, "tool": "t", "sig": 2, "at_ms": 3, "entry": entry}
    assert Pending.opened("i", entry, **made) == Pending(**made, **told)  # type: ignore[arg-type]
    signed = ToolCall.signed("t", {}, "i", (b"s", 1, b"{}"), (), {"a": 1})
    assert signed == ToolCall("t", {}, "i", b"s", 1, canonical=b"{}", asked={"a": 1})
