"""
Whether a failure is worth another try: by its kind, by what is declared, by what was learned.
"""

from collections.abc import Sequence
from pathlib import Path
from socket import gaierror
from sqlite3 import OperationalError
from ssl import SSLCertVerificationError
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Duplicates, Envelope, MemorySink, Policy, Retryable, Tool
from guardrails.core.chain import Chain, Rule
from guardrails.core.guards.loop_score import LoopScore
from guardrails.core.retries.model import text_of
from guardrails.core.retries.serving import LOOPS
from guardrails.core.state import SessionState
from guardrails.core.values.errors import INSTEAD, NEVER_AGAIN, TRANSIENT
from guardrails.core.values.types import ERROR_TYPES
from tests.conftest import FakeClock
from tests.core.guards.calls import Busy, gives, make, said
from tests.core.retries.conftest import constant, text
from tests.replaying import replay
from tests.tables import table


ADVICE = ("retryable", "retry_after_ms", "max_retries_remaining", "next_action")
RESET, SLOW = ConnectionResetError("reset"), TimeoutError("slow")


def session(clock: Any, *guards: Any, tool: Tool | None = None, records: Any = None, **settings: Any) -> Any:
    policy = Policy([Retryable(**settings), *guards], tools=[tool] if tool else ())
    return policy.session("s", clock=clock, records=records)


@table(("settings", "error", "seen"), [
    (
        {"max_retries": 2, "max_same_error": 99},
        Envelope.error("other", "warming up", retryable=True, retry_after_ms=500, max_retries_remaining=1),
        [(True, 500, 1, "retry"), (True, 500, 1, "retry"), (False, None, 0, "give_up")],
    ),
    ({}, Envelope.error("timeout", "locked", next_action="ask_user"), [(False, None, 0, "ask_user")]),
])  # fmt: skip
def test_a3_a_tools_own_claims_hold_until_evidence_is_against_them(
    settings: Any, error: Any, seen: Any, clock: Any
) -> None:
    flaky = session(clock, **settings)
    for advice in seen:
        assert said(flaky.call("get", {}, gives(error)), *ADVICE) == advice
        clock.advance(1)


@table(("kind", "declared"), [
    (kind, word) for kind in ERROR_TYPES for word in (None, True, False) if (kind, word) != ("other", None)
])  # fmt: skip
def test_a3_each_kind_of_failure_says_one_next_action(kind: Any, declared: bool | None, clock: Any) -> None:
    envelope = session(clock, tool=Tool(name="t", retryable=declared)).call("t", {}, gives(Envelope.error(kind, "x")))
    passing = kind in TRANSIENT if declared is None else declared and kind not in NEVER_AGAIN
    expected = "retry" if passing else INSTEAD.get(kind, "give_up")
    assert said(envelope, "retryable", "next_action") == (passing, expected)
    assert envelope.next_action_hint
    assert bool(envelope.retryable_after_correction) is (expected in ("fix_arguments", "fix_precondition"))


# What a learned model makes of a failure


NO_MODEL = str(Path(__file__).with_name("there-is-none.json"))
"""Not there, so the shipped beliefs are asked."""


def always(tmp_path: Path, logit: float, **changes: Any) -> str:
    """
    A model that says the same of everything.
    """
    path = tmp_path / "model.json"
    path.write_bytes(constant(logit, **changes))
    return str(path)


class Answered(Exception):
    def __init__(self, status_code: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status_code


@table(("error", "retryable", "most_ms"), [
    (SLOW, True, 2_000), (SSLCertVerificationError("certificate verify failed"), False, 0),
    (Answered(429, "Quota exceeded: 1000 requests per day"), False, 0), (gaierror(-2, "Name or service not known"), False, 0),
    (OperationalError("database is locked"), True, 1_000), (Answered(409, "conflict: the resource has changed"), True, 5_000),
    (Answered(423, "Locked"), True, 5_000), (Answered(500, "internal server error"), True, 5_000),
    (Answered(503, "Service Unavailable"), True, 30_000),
])  # fmt: skip
def test_a10_day_one_is_sensible(error: Exception, retryable: bool, most_ms: int, clock: Any) -> None:
    envelope = session(clock, model=NO_MODEL).call("get", {}, gives(error))
    assert envelope.retryable is retryable
    assert (envelope.retry_after_ms or 0) <= most_ms
    assert not retryable or 0.3 < envelope.retry_success_probability < 0.9


KNOWN = {"evidence": {"t": {"rate_limit": 500.0}}}
CLAIM = Envelope.error("other", "busy", retryable=True, max_retries_remaining=1)


@table(("logit", "learned", "tool", "error", "retryable"), [
    # What may have taken effect is not repeated, however likely it works.
    *((6.0, {}, {"idempotent": safe}, error, safe) for error in (SLOW, RESET) for safe in (False, True)),
    (6.0, {}, {"idempotent": False}, Busy(), True),
    # A declaration, or what a tool says of its failure, counts until evidence says otherwise.
    (0.0, {}, {"retryable": False}, Busy(), False), (0.0, KNOWN, {"retryable": False}, Busy(), True),
    (-1.0, {}, {}, CLAIM, True), (-5.0, {}, {}, CLAIM, False),
    # An expensive tool is retried less.
    (0.0, {}, {"cost_usd": 0.1}, Busy(), True), (0.0, {}, {"cost_usd": 0.6}, Busy(), False),
    # What is learned outweighs what the kind suggests, either way.
    *((logit, {}, {}, Envelope.error(kind, "no"), logit > 0) for kind in ERROR_TYPES for logit in (-6.0, 6.0)),
])  # fmt: skip
def test_what_is_learned_is_weighed(
    logit: float, learned: Any, tool: Any, error: Any, retryable: bool, tmp_path: Path, clock: Any
) -> None:
    one = session(clock, tool=Tool(name="t", **tool), model=always(tmp_path, logit, **learned))
    envelope = one.call("t", {}, gives(error))
    assert (bool(envelope.retryable), envelope.next_action == "retry") == (retryable, retryable)


KINDS_SEEN = st.sampled_from([None, "timeout", "rate_limit", "auth"])


@given(st.lists(st.tuples(st.sampled_from("ab"), KINDS_SEEN, st.integers(0, 90)), max_size=25))
def test_a_replay_goes_by_what_was_advised_then(steps: list[tuple[str, Any, int]]) -> None:
    clock, sink = FakeClock(), MemorySink()
    policy = Policy([Retryable(model=NO_MODEL), Duplicates(), Budget(max_calls=20)])
    one = policy.session("s", clock=clock, records=sink)
    for argument, kind, wait in steps:
        one.call("t", {"q": argument}, gives(1 if kind is None else Envelope.error(kind, "no")))
        clock.advance(wait)
    one.close()
    # Without any model loaded: the present one may say something else.
    state = SessionState()
    assert all(made.same for made in replay(Chain(policy.chain.guards), sink.records, state))
    live = one.ledger.read(lambda kept, now: list(kept.window))
    assert [(e.retry_at_ms, e.retries_left) for e in state.window] == [(e.retry_at_ms, e.retries_left) for e in live]


NO_HOTEL = Envelope.error("not_found", "no such hotel")
YEAR = Envelope.error("not_found", "no", next_action="ask_user", next_action_hint="Ask for the year.")


@table(("worked", "tool", "error", "action", "hint", "user"), [
    (0.8, "book", NO_HOTEL, "fix_arguments", "calling again. Other arguments work 4 times in 5 here.", "The user need not be asked."),
    (0.1, "book", NO_HOTEL, "ask_user", "Other arguments work 1 time in 10 here.", "Ask the user before you try other arguments."),
    # Of a tool that was never seen to be corrected, or speaks for itself, nothing is told.
    (0.8, "other", NO_HOTEL, "fix_arguments", "Check the name or id before calling again.", None),
    (0.8, "book", YEAR, "ask_user", "Ask for the year.", None),
])  # fmt: skip
def test_a11_corrections_are_told(
    worked: float, tool: str, error: Any, action: str, hint: str, user: str | None, tmp_path: Path, clock: Any
) -> None:
    counts = {name: {"not_found": [n, n * worked]} for name, n in (("", 60.0), ("book", 40.0))}
    model = always(tmp_path, -5.0, corrections=counts)
    shown = session(clock, model=model).call(tool, {}, gives(error)).to_dict()
    assert (shown["next_action"], shown["retryable"], shown.get("user_facing_hint")) == (action, False, user)
    assert shown["next_action_hint"].endswith(hint)
    assert ("retryable_after_correction" in shown) is (action == "fix_arguments")


def test_a_retry_that_seldom_works_is_advised_once_with_its_chance(tmp_path: Path, clock: Any) -> None:
    one = session(clock, model=always(tmp_path, -1.82))
    first = one.call("get", {}, gives(SLOW))
    assert (first.retryable, first.max_retries_remaining) == (True, 1)
    assert "that works 3 times in 20. If it fails again, go another way." in first.to_dict()["next_action_hint"]
    clock.advance(100)
    assert said(one.call("get", {}, gives(SLOW)), "retryable", "next_action") == (False, "give_up")


def test_a_model_is_that_of_its_tool_and_its_weights_those_of_its_session(tmp_path: Path, clock: Any) -> None:
    rules = [Rule(match="pay", guards={"retryable": {"model": always(tmp_path, -6.0)}})]
    ruled = make(clock, Retryable(model=NO_MODEL), rules=rules)
    assert [ruled.call(tool, {}, gives(Busy())).retryable for tool in ("get", "pay")] == [True, False]
    one = session(clock, model=always(tmp_path, 2.0, weights={"rate_limit run 1": -6.0}))
    assert one.call("get", {"q": 1}, gives(Busy())).retryable
    clock.advance(100)
    assert [one.call("get", {"q": q}, gives(Busy())).retryable for q in (1, 2)] == [False, True]


# A learned score of calls that bring nothing new (MISSION A12)


NONE = "Sold out: no hotel in Rome has a room"
QUESTIONS = ("cheap hotel in Rome centre", "cheap hotel Rome in centre", "cheap hotel Rome centre please")
BODY: dict[str, Any] = {"tools": {}, "evidence": {}, "corrections": {}, "profiles": [], "training": {}}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """
    Nothing new is likely after two equal answers to nearly equal questions, and after two failures.
    """
    weights = {"near 2": 3.0, "stale 1": 3.0, "failed 2": 6.0}
    path = tmp_path / "loops.json"
    path.write_bytes(text_of({**BODY, "intercept": -3.0, "weights": weights}, LOOPS))
    return path


def codes(policy: Policy, tool: str = "search", asked: Sequence[Any] = QUESTIONS, result: Any = NONE) -> list[Any]:
    """
    What is told of calls that ask for one after the other, each in a turn of its own.
    """
    made, clock = [], FakeClock()
    with policy.session("s", clock=clock) as session:
        for question in asked:
            session.begin_turn()
            clock.advance(10)
            decision = session.decide(tool, {"q": question})
            made.append(decision.code or [code for code, _ in decision.nudges])
            if decision.allowed:
                session.complete(decision, result)
    return made


@table(("declared", "settings", "last"), [
    ({"read_only": True}, {}, ["loop_score.likely"]), ({"read_only": True}, {"nudge": 0.99}, []),
    ({"read_only": True, "repeats": "allow"}, {}, []), ({"read_only": False}, {}, ["loop_score.likely"]),
])  # fmt: skip
def test_a12_a_call_is_told_from_a_chance_on(model: Path, declared: Any, settings: dict[str, Any], last: Any) -> None:
    policy = Policy([LoopScore(model=str(model), **settings)], tools=[Tool(name="search", **declared)])
    assert codes(policy) == [[], [], last]


def test_a12_failures_are_scored_as_such(model: Path) -> None:
    policy = Policy([LoopScore(model=str(model))], tools=[Tool(name="search", read_only=True)])
    assert codes(policy, asked=["1 7", "2 14", "3 21"], result=OSError("down")) == [[], [], ["loop_score.likely"]]


def test_without_a_model_nothing_is_said_and_a_model_of_retries_is_none(tmp_path: Path) -> None:
    other = tmp_path / "retry.json"
    for content in (None, text()):
        if content is not None:
            other.write_bytes(content)
        policy = Policy([LoopScore(model=str(other), nudge=0.0)])
        assert codes(policy) == [[], [], []]
