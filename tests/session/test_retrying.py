"""
Retries that the library makes itself.
"""

import asyncio
import threading

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from guardrails import (
    Approve,
    Budget,
    Denials,
    Duplicates,
    Envelope,
    Loops,
    Policy,
    Rate,
    Retryable,
    SessionState,
    Streak,
    Tool,
)
from guardrails.core.engine.events.retries import JITTER
from guardrails.core.records.replay import replay
from guardrails.sinks import MemorySink


LOOK = Tool(name="look", read_only=True)
AUTO = Retryable(auto=True)


class Flaky:
    """
    A tool that fails *failures* times and works then.
    """

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.left, self.calls = failures, 0
        self.error = error or ConnectionResetError("reset")

    def __call__(self, *_: Any, **__: Any) -> str:
        self.calls += 1
        self.left -= 1
        if self.left >= 0:
            raise self.error
        return "there"


class Busy(Exception):
    status_code = 429

    def __init__(self, seconds: object) -> None:
        super().__init__("too many requests")
        self.headers = {"retry-after": str(seconds)}


def opened(clock: Any, *guards: Any, tools: Any = (LOOK,), sleep: Any = None, **options: Any) -> Any:
    policy = Policy(list(guards) or [AUTO], tools=tools)
    return policy.session("s", clock=clock, sleep=sleep or clock.advance, **options)


def kept(session: Any) -> SessionState:
    return session._read(lambda state, _: state)  # type: ignore[no-any-return]


async def waiting(session: Any) -> None:
    while not session._waits:  # noqa: ASYNC110  nothing tells it
        await asyncio.sleep(0)


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest) -> Callable[..., Envelope]:
    if request.param == "sync":
        return lambda session, *call, **named: session.call(*call, **named)
    return lambda session, *call, **named: asyncio.run(session.acall(*call, **named))


def test_a_failure_that_passes_is_made_again_and_the_model_reads_one_envelope(clock: Any, make: Any) -> None:
    tool, session = Flaky(2), opened(clock)
    envelope = make(session, "look", {"at": 1}, tool)
    assert (envelope.ok, envelope.value, envelope.attempts, tool.calls) == (True, "there", 3, 3)
    assert envelope.to_dict()["attempts"] == 3
    assert kept(session).calls == 3


def test_it_is_off_unless_said(clock: Any, make: Any) -> None:
    tool = Flaky(1)
    assert make(opened(clock, Retryable()), "look", {}, tool).retryable is True
    assert tool.calls == 1


@pytest.mark.parametrize(
    "tool",
    [
        Tool(name="look"),
        Tool(name="look", read_only=False),
        Tool(name="look", idempotent=False),
        Tool(name="look", read_only=True, idempotent=False),
        Tool(name="look", retryable=True),
        Tool(name="look", polling=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("error", [TimeoutError("no answer"), ConnectionResetError("reset"), Busy(1)], ids=repr)
def test_a_tool_that_is_not_declared_safe_is_never_made_again(clock: Any, make: Any, tool: Tool, error: Any) -> None:
    flaky = Flaky(1, error)
    make(opened(clock, AUTO, tools=[tool]), "look", {}, flaky)
    assert flaky.calls == 1


@pytest.mark.parametrize("said", ["read_only", "stable", "idempotent"])
def test_a_tool_that_is_declared_safe_is_made_again_after_a_timeout(clock: Any, make: Any, said: str) -> None:
    declared: Any = {said: True}
    tool = Tool(name="pay_rent", **declared)
    assert make(opened(clock, AUTO, tools=[tool]), "pay_rent", {}, Flaky(1, TimeoutError("late"))).attempts == 2


def test_what_a_person_is_asked_about_is_not_made_again(clock: Any) -> None:
    session = opened(clock, AUTO, Approve(tools=("look",)), approver=lambda _: True)
    flaky = Flaky(1)
    session.call("look", {}, flaky)
    assert flaky.calls == 1


@pytest.mark.parametrize("error", [PermissionError("no"), ValueError("bad"), KeyError("x"), asyncio.CancelledError()])
def test_what_does_not_pass_is_not_made_again(clock: Any, error: Any) -> None:
    flaky = Flaky(1, error)
    with suppress(asyncio.CancelledError):
        opened(clock).call("look", {}, flaky)
    assert flaky.calls == 1


def test_the_wait_that_a_server_names_is_kept_and_varied_upwards_only(clock: Any, make: Any) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(seconds)

    for number in range(30):
        make(opened(clock, sleep=sleep), "look", {"n": number}, Flaky(1, Busy(5)))
    assert all(5 <= wait <= 5 * (1 + JITTER) + 0.01 for wait in waits)
    assert len(set(waits)) > 20


def test_as_many_retries_are_made_as_are_advised(clock: Any, make: Any) -> None:
    flaky = Flaky(9)
    envelope = make(opened(clock, Retryable(auto=True, max_retries=2)), "look", {}, flaky)
    assert (flaky.calls, envelope.attempts, envelope.retryable, envelope.max_retries_remaining) == (3, 3, False, 0)
    assert envelope.error_type == "connection"


def test_each_attempt_is_charged_and_a_limit_ends_them(clock: Any, make: Any) -> None:
    flaky = Flaky(9)
    session = opened(clock, AUTO, Budget(max_calls=2))
    envelope = make(session, "look", {}, flaky)
    assert (flaky.calls, envelope.attempts, kept(session).calls) == (2, 2, 2)
    assert envelope.limit_message
    assert session.exhausted


def test_an_attempt_that_is_refused_leaves_the_failure_and_says_why(clock: Any, make: Any) -> None:
    flaky = Flaky(9)
    session = opened(clock, AUTO, Rate(max_calls_per_minute=1))
    envelope = make(session, "look", {}, flaky)
    assert (flaky.calls, envelope.status, envelope.error_type) == (1, "error", "connection")
    assert (envelope.code, envelope.attempts) == ("rate.max_calls_per_minute", 1)
    assert "It was not made again." in (envelope.next_action_hint or "")
    state = kept(session)
    assert (state.refusals, state.turn_refused, state.turn_decided) == ([], 0, 1)


def test_the_attempts_of_one_call_are_one_call_to_the_guards_of_repeats(clock: Any, make: Any) -> None:
    guards = [Duplicates(window=20), Loops(), Streak(max_same=2, max_failures=2), Denials(max_turns_in_a_row=1)]
    session = opened(clock, AUTO, *guards)
    for number in range(2):
        session.begin_turn()
        assert make(session, "look", {"at": number}, Flaky(3)).value == "there"
        state = kept(session)
        assert (state.streak, state.streak_failures, state.turn_decided, state.turn_admitted) == (number + 1, 0, 1, 1)
    session.begin_turn()
    assert make(session, "look", {"at": 9}, Flaky(0)).code == "streak.max_same"


def test_every_attempt_is_recorded_and_the_records_replay_to_the_same_state(clock: Any, make: Any) -> None:
    policy, sink = (
        Policy([AUTO, Duplicates(), Loops(), Streak(max_same=9), Budget(max_calls=9)], tools=[LOOK]),
        MemorySink(),
    )
    session = policy.session("s", clock=clock, sleep=clock.advance, records=sink)
    make(session, "look", {"at": 1}, Flaky(2))
    make(session, "look", {"at": 2}, Flaky(9))
    calls = [record for record in sink.records if record["event"] == "call"]
    assert [record["attempt"] for record in calls] == [1, 2, 3, 1, 2, 3, 4]
    assert [record["retry_source"] for record in calls[:3]] == [None, "policy", "policy"]
    assert [record.get("again_ms") for record in sink.records if record["event"] == "settle"][:3] == [1000, 5000, None]
    state = SessionState()
    assert all(one.same for one in replay(policy.chain, sink.records, state))
    assert state == kept(session)


def test_a_session_that_is_closed_while_it_waits_makes_no_further_attempt(clock: Any) -> None:
    flaky = Flaky(1, Busy(19))
    session = Policy([AUTO], tools=[LOOK]).session("s", clock=clock)
    child = session.child("c")
    answers: list[Envelope] = []
    waiter = threading.Thread(target=lambda: answers.append(child.call("look", {}, flaky)))
    waiter.start()
    while not child._waits:
        pass
    session.close()
    waiter.join(10)
    assert (flaky.calls, answers[0].retryable, answers[0].retry_after_ms) == (1, True, 19_000)
    assert "closed" in (answers[0].next_action_hint or "")
    assert not kept(child).pending


def test_a_task_that_is_cancelled_while_it_waits_leaves_nothing_open(clock: Any) -> None:
    session = Policy([AUTO], tools=[LOOK]).session("s", clock=clock)
    flaky = Flaky(1, Busy(19))

    async def run() -> None:
        task = asyncio.create_task(session.acall("look", {}, flaky))
        await waiting(session)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert (flaky.calls, kept(session).pending, session._waits) == (1, {}, set())
