"""
Retries that the library makes itself.
"""

import asyncio
import signal
import subprocess
import sys
import threading

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from guardrails import (
    Approve,
    Budget,
    CallFailed,
    Denials,
    Duplicates,
    Envelope,
    Loops,
    Policy,
    Rate,
    Retryable,
    RetryBudget,
    Rule,
    SessionState,
    SqliteStore,
    Streak,
    Tool,
)
from guardrails.core.engine.events.retries import JITTER, MOST_ATTEMPTS
from guardrails.core.records.replay import replay
from guardrails.offline.judge.exact import replayed
from guardrails.offline.readers.inputs import inputs
from guardrails.session.calls.current import current_session
from guardrails.sinks import MemorySink
from guardrails.stores.memory import MemoryStore


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


def test_what_works_at_once_says_nothing_of_attempts(clock: Any, make: Any) -> None:
    envelope = make(opened(clock), "look", {}, Flaky(0))
    assert (envelope.attempts, "attempts" in envelope.to_dict()) == (1, False)


def test_it_is_off_unless_said(clock: Any, make: Any) -> None:
    tool = Flaky(1)
    assert make(opened(clock, Retryable()), "look", {}, tool).retryable is True
    assert tool.calls == 1


def test_a_tool_rule_turns_it_on_for_some_tools(clock: Any) -> None:
    policy = Policy([Retryable()], tools=[LOOK, Tool(name="see", read_only=True)])
    ruled = Policy(policy.chain.guards, tools=[LOOK], rules=[Rule(match="look", guards={"retryable": {"auto": True}})])
    with ruled.session("s", clock=clock, sleep=clock.advance) as session:
        assert session.call("look", {}, Flaky(1)).attempts == 2
        assert session.call("see", {}, Flaky(1)).attempts == 1


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


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_a_guard_that_only_looks_makes_nothing_again(clock: Any, mode: Any) -> None:
    flaky = Flaky(1)
    opened(clock, Retryable(auto=True, mode=mode)).call("look", {}, flaky)
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


def test_a_longer_wait_goes_to_the_model_with_how_long_it_is(clock: Any, make: Any) -> None:
    flaky = Flaky(1, Busy(30))
    envelope = make(opened(clock), "look", {}, flaky)
    assert (flaky.calls, envelope.retryable, envelope.retry_after_ms) == (1, True, 30_000)
    assert make(opened(clock, Retryable(auto=True, auto_max_wait=30)), "look", {}, Flaky(1, Busy(30))).attempts == 2


def test_a_wait_that_the_deadline_does_not_leave_goes_to_the_model(clock: Any, make: Any) -> None:
    flaky = Flaky(1, Busy(8))
    envelope = make(opened(clock, AUTO, Budget(max_elapsed=9)), "look", {}, flaky)
    assert (flaky.calls, envelope.retryable, envelope.retry_after_ms) == (1, True, 8_000)


def test_as_many_retries_are_made_as_are_advised(clock: Any, make: Any) -> None:
    flaky = Flaky(9)
    envelope = make(opened(clock, Retryable(auto=True, max_retries=2)), "look", {}, flaky)
    assert (flaky.calls, envelope.attempts, envelope.retryable, envelope.max_retries_remaining) == (3, 3, False, 0)
    assert envelope.error_type == "connection"


def test_no_policy_makes_more_attempts_than_the_library_allows(clock: Any, make: Any) -> None:
    flaky = Flaky(99)
    lasting = Retryable(
        auto=True, auto_max_wait=100_000, max_retries=90, max_same_error=90, backoff=0.001, max_wait=0.002
    )
    envelope = make(opened(clock, lasting), "look", {}, flaky)
    assert (flaky.calls, envelope.attempts, envelope.retryable) == (MOST_ATTEMPTS, MOST_ATTEMPTS, True)


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


def test_attempts_take_tokens_of_the_retry_budget(clock: Any, make: Any) -> None:
    flaky = Flaky(9)
    envelope = make(opened(clock, AUTO, RetryBudget(burst=1, min_per_minute=0)), "look", {}, flaky)
    assert (flaky.calls, envelope.attempts, envelope.code) == (2, 2, "retry_budget.empty")


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


def test_failed_attempts_are_one_failure_of_a_streak(clock: Any, make: Any) -> None:
    session = opened(clock, AUTO, Streak(max_failures=2))
    make(session, "look", {"at": 1}, Flaky(9))
    assert kept(session).streak_failures == 1
    make(session, "look", {"at": 2}, Flaky(9))
    assert make(session, "look", {"at": 3}, Flaky(0)).code == "streak.max_failures"


def test_failed_attempts_are_one_answer_to_who_looks_for_evidence(clock: Any, make: Any) -> None:
    session = opened(clock, AUTO, Duplicates(rule="evidence"))
    make(session, "look", {}, Flaky(9))
    clock.advance(1)
    assert make(session, "look", {}, Flaky(0)).ok
    state = kept(session)
    assert [entry.retried for entry in state.window] == [True, True, True, False, False]
    assert [entry.another for entry in state.window] == [False, True, True, True, False]


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


def test_a_tool_that_changes_its_arguments_is_not_called_with_others(clock: Any) -> None:
    seen: list[Any] = []

    def execute(_: str, arguments: Any) -> None:
        seen.append(arguments["ids"].pop())
        raise ConnectionResetError("reset")

    envelope = opened(clock).call("look", {"ids": [1, 2]}, execute)
    assert (seen, envelope.retryable) == ([2], True)


def test_a_wrapped_function_gets_its_value_or_the_last_error(clock: Any) -> None:
    session, flaky = opened(clock), Flaky(2)

    def look() -> str:
        return flaky()

    assert session.wrap(look, returns="value")() == "there"
    flaky.left = 99
    with pytest.raises(ConnectionResetError):
        session.wrap(look, returns="value")()


def test_who_runs_a_call_elsewhere_makes_it_again_himself(clock: Any) -> None:
    session = opened(clock)
    decision = session.decide("look", {}, claim=True)
    envelope = session.complete(decision, ConnectionResetError("reset"))
    assert (envelope.retryable, envelope.attempts, kept(session).window[0].retried) == (True, 1, False)


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


def test_a_session_that_is_closed_while_it_is_awaited_makes_no_further_attempt(clock: Any) -> None:
    async def run() -> Envelope:
        session = Policy([AUTO], tools=[LOOK]).session("s", clock=clock)
        task = asyncio.create_task(session.acall("look", {}, Flaky(1, Busy(19))))
        await waiting(session)
        session.close()
        return await task

    assert "closed" in (asyncio.run(run()).next_action_hint or "")


@pytest.mark.parametrize("rule", ["idempotent: false", "idempotent: true, retryable: {auto: false}"])
def test_a_policy_that_changes_during_the_wait_has_the_last_word(
    clock: Any, make: Any, tmp_path: Path, rule: str
) -> None:
    file = tmp_path / "policy.yaml"
    text = "version: 1\nretryable: {auto: true}\ntools: [{match: put, %s}]\n"
    file.write_text(text % "idempotent: true")
    policy, flaky = Policy.load(file, reload=0.0), Flaky(9, TimeoutError("no answer"))

    def sleep(seconds: float) -> None:
        clock.advance(seconds)
        file.write_text(text % rule)

    envelope = make(policy.session("s", clock=clock, sleep=sleep), "put", {}, flaky)
    assert (flaky.calls, envelope.attempts) == (1, 1)
    assert "The policy was changed" in (envelope.next_action_hint or "")


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


def test_ctrl_c_in_the_wait_is_raised_on_and_leaves_nothing_open(clock: Any, caplog: Any) -> None:
    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    session, flaky = opened(clock, sleep=sleep), Flaky(1)
    with caplog.at_level("INFO"), pytest.raises(KeyboardInterrupt):
        session.call("look", {}, flaky)
    assert (flaky.calls, kept(session).pending, session._waits) == (1, {}, set())
    assert "interrupted in its wait" in caplog.text


def test_after_an_interrupted_wait_the_same_call_may_be_made(clock: Any) -> None:
    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    session = opened(clock, AUTO, Duplicates(), sleep=sleep)
    with pytest.raises(KeyboardInterrupt):
        session.call("look", {}, Flaky(1))
    assert session.call("look", {}, Flaky(0)).code == "retryable.wait"
    clock.advance(1)
    assert session.call("look", {}, Flaky(0)).ok


class Failing(MemoryStore):
    """
    A store that fails from when it is told to.
    """

    broken = False

    def update(self, keys: Any, step: Any) -> Any:
        if self.broken:
            raise OSError("the disk is gone")
        return super().update(keys, step)


@pytest.mark.parametrize("on_error", ["deny", "allow"])
def test_a_store_that_fails_between_two_attempts_is_decided_by_on_error(clock: Any, make: Any, on_error: Any) -> None:
    store, flaky = Failing(), Flaky(1)

    def sleep(seconds: float) -> None:
        clock.advance(seconds)
        store.broken = True

    policy = Policy([AUTO], tools=[LOOK], on_error=on_error)
    envelope = make(policy.session("s", clock=clock, sleep=sleep, store=store), "look", {}, flaky)
    if on_error == "allow":
        assert (envelope.ok, envelope.attempts, flaky.calls) == (True, 2, 2)
    else:
        assert (envelope.status, envelope.error_type, envelope.code, flaky.calls) == (
            "error",
            "connection",
            "store.error",
            1,
        )


def test_threads_that_retry_at_once_replay_exactly(clock: Any) -> None:
    policy, sink = Policy([AUTO, Duplicates(), Loops(), Budget(max_calls=200)], tools=[LOOK]), MemorySink()
    lock = threading.Lock()

    def sleep(seconds: float) -> None:
        with lock:
            clock.advance(seconds)

    session = policy.session("s", clock=clock, sleep=sleep, records=sink)
    threads = [
        threading.Thread(
            target=lambda at=at: [session.call("look", {"at": at, "n": n}, Flaky(n % 3)) for n in range(6)]
        )
        for at in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = SessionState()
    assert all(one.same for one in replay(policy.chain, sink.records, state))
    assert state == kept(session)


KILLED = """
import os, signal, sys
from guardrails import JsonLines, Policy, Retryable, SqliteStore, Tool

def down(tool, arguments):
    raise ConnectionResetError("reset")

policy = Policy([Retryable(auto=True)], tools=[Tool(name="look", read_only=True)])
session = policy.session(
    "s",
    store=SqliteStore(sys.argv[1] + "/s.db"),
    records=JsonLines(sys.argv[1] + "/calls.jsonl", durable=True),
    clock=lambda: 1_700_000_000.0,
    sleep=lambda seconds: os.kill(os.getpid(), signal.SIGKILL),
)
session.call("look", {}, down)
"""


@pytest.mark.system
def test_after_kill_9_in_the_wait_the_call_is_made_by_whoever_asks_and_replays_exactly(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    policy = Policy([AUTO], tools=[LOOK])
    path, store = tmp_path / "calls.jsonl", SqliteStore(str(tmp_path / "s.db"))
    now = 1_700_000_000.5
    with policy.session("s", store=store, records=str(path), clock=lambda: now) as session:
        assert not kept(session).pending
        assert session.call("look", {}, Flaky(0)).code == "retryable.wait"
        now += 1
        assert session.call("look", {}, Flaky(0)).ok
    exact = replayed(policy, inputs([str(path)]))
    assert (exact.same, exact.calls) == (True, 3)


def test_what_a_tool_calls_during_a_retry_is_a_call_of_its_own(clock: Any) -> None:
    session = opened(clock)
    inner, tool = [], Flaky(1)

    def outer(*_: Any) -> str:
        within = current_session()
        assert within is not None
        inner.append(within.call("look", {"inner": tool.calls}, Flaky(0)))
        return tool()

    assert session.call("look", {}, outer).attempts == 2
    assert [envelope.attempts for envelope in inner] == [1, 1]
    assert kept(session).turn_admitted == 3


def test_a_cancelled_wait_leaves_no_task_behind(clock: Any) -> None:
    session = Policy([AUTO], tools=[LOOK]).session("s", clock=clock)

    async def run() -> int:
        task = asyncio.create_task(session.acall("look", {}, Flaky(1, Busy(19))))
        await waiting(session)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1


def test_a_session_closes_though_the_loop_of_a_wait_is_gone(clock: Any) -> None:
    session = Policy([AUTO], tools=[LOOK]).session("s", clock=clock)
    loop = asyncio.new_event_loop()
    call = session.acall("look", {}, Flaky(1, Busy(19)))
    task = loop.create_task(call)
    loop.run_until_complete(waiting(session))
    loop.close()
    session.close()
    with suppress(RuntimeError):
        call.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # the loop was closed on purpose


def test_a_wrapped_function_ends_as_its_last_attempt_did(clock: Any) -> None:
    answers: list[Any] = [ConnectionResetError("reset"), {"error": "permission denied"}]

    def look() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(CallFailed, match="permission denied"):
        opened(clock).wrap(look, returns="value")()


def test_failures_of_a_tool_that_changes_its_arguments_count(clock: Any) -> None:
    def execute(_: str, arguments: Any) -> None:
        arguments["seen"] = True
        raise ConnectionResetError("reset")

    session = opened(clock, AUTO, Streak(max_failures=2))
    for number in range(2):
        assert session.call("look", {"n": number}, execute).attempts == 1
    assert session.call("look", {"n": 2}, execute).code == "streak.max_failures"


def test_a_failure_counts_if_what_calls_has_no_time_for_another_attempt(clock: Any) -> None:
    session = opened(clock, AUTO, tools=[LOOK, Tool(name="outer", timeout=1)])

    def outer(*_: Any) -> str:
        within = current_session()
        assert within is not None
        return within.call("look", {}, Flaky(1, Busy(5))).to_json()

    assert '"retry_after_ms":5000' in str(session.call("outer", {}, outer).value)
    assert [entry.retried for entry in kept(session).window] == [False, False]


def test_a_failure_counts_if_the_next_attempt_is_refused(clock: Any) -> None:
    session = opened(clock, AUTO, Rate(max_calls_per_minute=1), Streak(max_failures=2))
    for number in range(2):
        envelope = session.call("look", {"n": number}, Flaky(9))
        assert (envelope.attempts, envelope.code) == (1, "rate.max_calls_per_minute")
        clock.advance(200)
    assert session.call("look", {"n": 2}, Flaky(9)).code == "streak.max_failures"


def test_what_the_same_call_has_brought_meanwhile_is_the_answer(clock: Any) -> None:
    def sleep(seconds: float) -> None:
        clock.advance(seconds)
        assert session.call("look", {}, Flaky(0)).ok

    session, flaky = opened(clock, AUTO, Duplicates(), sleep=sleep), Flaky(1)
    envelope = session.call("look", {}, flaky)
    assert (flaky.calls, envelope.code, envelope.previous_result) == (1, "duplicates.window", "there")


def test_a_synchronous_call_does_not_hold_up_an_event_loop(clock: Any) -> None:
    session = Policy([AUTO, Streak(max_failures=1)], tools=[LOOK]).session("s", clock=clock)

    async def run() -> list[Envelope]:
        return [session.call("look", {"n": number}, Flaky(1, Busy(19))) for number in range(2)]

    failed, refused = asyncio.run(run())
    assert (failed.attempts, failed.retryable, failed.retry_after_ms) == (1, True, 19_000)
    assert refused.code == "streak.max_failures"
