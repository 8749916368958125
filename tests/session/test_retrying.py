"""
Retries that the library makes itself: each is a call of its own, and the model reads one envelope.
"""

import asyncio

from collections.abc import Callable
from typing import Any

import pytest

from guardrails import Budget, Envelope, Failed, MemorySink, Policy, Retryable, Tool
from guardrails.core.guards.base import SessionState
from tests.replaying import replay
from tests.tables import table


LOOK = Tool(name="look", read_only=True)


def opened(clock: Any, *guards: Any, tool: Tool = LOOK, **options: Any) -> tuple[Any, list[float]]:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(seconds)

    policy = Policy([Retryable(auto=True), *guards], tools=[tool])
    return policy.session("s", clock=clock, sleep=sleep, **options), waits


@pytest.fixture(params=["call", "acall"])
def make(request: pytest.FixtureRequest) -> Callable[..., Envelope]:
    def call(session: Any, *answers: Any, tool: str = "look") -> Envelope:
        left = iter(answers)

        def execute(*_: Any) -> Any:
            answer = next(left)
            if isinstance(answer, Exception):
                raise answer
            return answer

        if request.param == "call":
            made: Envelope = session.call(tool, {"q": 1}, execute)
        else:
            made = asyncio.run(session.acall(tool, {"q": 1}, execute))
        return made

    return call


@table("tool", [LOOK, Tool(name="look", repeats="evidence"), Tool(name="look", idempotent=True)])
def test_a_failure_that_passes_is_made_again_and_the_model_reads_one_envelope(tool: Any, clock: Any, make: Any) -> None:
    session, waits = opened(clock, tool=tool)
    envelope = make(session, ConnectionError("reset"), ConnectionError("reset"), "found")
    assert (envelope.value, envelope.attempts, session.ledger.progress["calls_used"]) == ("found", 3, 3)
    assert 1 <= waits[0] <= 1.3
    assert 5 <= waits[1] <= 6.1


@table(
    "tool, error",
    [
        (Tool(name="look"), ConnectionError("reset")),
        (Tool(name="look", idempotent=False, read_only=True), TimeoutError("late")),
        (LOOK, ValueError("no such thing")),
        (LOOK, asyncio.CancelledError),
    ],
)
def test_what_is_not_safe_or_does_not_pass_is_not_made_again(tool: Tool, error: Any, clock: Any, make: Any) -> None:
    session, waits = opened(clock, tool=tool)
    if isinstance(error, Exception):
        assert make(session, error, "found").status == "error"
    assert waits == []


def test_an_attempt_that_is_refused_leaves_the_failure_and_says_why(clock: Any, make: Any) -> None:
    session, _ = opened(clock, Budget(max_calls=2))
    envelope = make(session, ConnectionError("reset"), ConnectionError("reset"), "found")
    assert (envelope.error_type, envelope.attempts, envelope.retryable) == ("connection", 2, False)
    assert envelope.limit_message is not None


def test_a_call_within_a_loop_that_a_wait_would_block_is_not_made_again(clock: Any) -> None:
    session = Policy([Retryable(auto=True)], tools=[LOOK]).session("s", clock=clock)

    async def within() -> int | None:
        envelope: Envelope = session.call("look", {}, lambda *_: Failed("reset", error_type="connection"))
        return envelope.attempts

    assert asyncio.run(within()) == 1


def test_every_attempt_is_recorded_and_the_records_replay_to_the_same_state(clock: Any, make: Any) -> None:
    sink = MemorySink()
    session, _ = opened(clock, records=sink)
    make(session, ConnectionError("reset"), "found")
    assert [line["event"] for line in sink.records] == ["call", "settle"] * 2
    state = SessionState()
    assert all(again.same for again in replay(session.ledger.policy.chain, sink.records, state))
    assert state == session.ledger.read(lambda live, _: live)
