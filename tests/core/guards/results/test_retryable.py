"""
Whether a failure is worth another try.
"""

from typing import Any

from guardrails import Budget, Duplicates, Envelope, Policy, Retryable, Tool
from guardrails.core.values.errors import INSTEAD, NEVER_AGAIN, TRANSIENT
from guardrails.core.values.types import ERROR_TYPES
from tests.tables import table


class Busy(Exception):
    status_code = 429

    def __init__(self, text: str = "too many requests", **headers: str) -> None:
        super().__init__(text)
        self.headers = headers


def fails(error: Any) -> Any:
    def execute(tool: str, arguments: Any) -> Any:
        if isinstance(error, Envelope):
            return error
        raise error

    return execute


def session(clock: Any, *guards: Any, tool: Tool | None = None, **settings: Any) -> Any:
    return Policy([Retryable(**settings), *guards], tools=[tool] if tool else ()).session("s", clock=clock)


def said(envelope: Envelope) -> tuple[Any, ...]:
    return envelope.retryable, envelope.retry_after_ms, envelope.max_retries_remaining, envelope.next_action


def test_a9_a_success_or_another_error_in_between_starts_the_count_again(clock: Any) -> None:
    for other in (lambda *_: 1, fails(ConnectionResetError("reset"))):
        busy = session(clock)
        for number in range(3):
            busy.call("search", {"q": number}, fails(Busy()))
        busy.call("search", {"q": "x"}, other)
        assert busy.call("search", {"q": "y"}, fails(Busy())).retryable is True


def test_the_last_retry_is_waited_for_like_those_before(clock: Any) -> None:
    busy = session(clock, max_retries=1)
    assert busy.call("search", {}, fails(Busy())).max_retries_remaining == 1
    assert busy.call("search", {}, fails(Busy())).code == "retryable.wait"


def test_a9_another_tools_calls_neither_break_nor_extend_the_run(clock: Any) -> None:
    busy = session(clock)
    for number in range(3):
        busy.call("search", {"q": number}, fails(Busy()))
        busy.call("read", {"q": number}, lambda *_: 1)
        busy.call("write", {"q": number}, fails(Busy()))
    assert busy.call("search", {"q": "x"}, fails(Busy())).retryable is False


def test_a3_the_same_call_is_retryable_so_many_times_after_waits_that_double(clock: Any) -> None:
    flaky = session(clock, max_retries=3, max_same_error=99, backoff=1.5)
    seen = []
    for _ in range(4):
        seen.append(said(flaky.call("get", {}, fails(TimeoutError("slow")))))
        clock.advance(60)
    assert seen == [
        (True, 1_500, 3, "retry"),
        (True, 3_000, 2, "retry"),
        (True, 6_000, 1, "retry"),
        (False, None, 0, "give_up"),
    ]


def test_a3_the_wait_that_a_server_names_is_given_on_and_never_grows_past_the_limit(clock: Any) -> None:
    limited = session(clock, max_wait=30, backoff=20, max_same_error=99)
    assert said(limited.call("a", {}, fails(Busy(**{"retry-after": "7"})))) == (True, 7_000, 3, "retry")
    assert said(limited.call("b", {}, fails(Busy(**{"retry-after": "31"})))) == (False, 31_000, 0, "give_up")
    limited.call("c", {}, fails(Busy()))
    clock.advance(20.1)
    assert said(limited.call("c", {}, fails(Busy()))) == (True, 30_000, 2, "retry")


def test_a_call_before_its_wait_is_over_is_refused_with_the_rest_of_it(clock: Any) -> None:
    flaky = session(clock, Duplicates(), Budget(max_calls=5))
    flaky.call("get", {}, fails(Busy(**{"retry-after": "10"})))
    clock.advance(4)
    early = flaky.call("get", {}, lambda *_: 1)
    assert (early.status, early.code, early.retryable, early.retry_after_ms) == (
        "denied",
        "retryable.wait",
        True,
        6_000,
    )
    assert flaky.call("get", {"other": 1}, lambda *_: 1).ok
    clock.advance(6)
    assert flaky.call("get", {}, lambda *_: 1).ok
    assert flaky.ledger.progress["calls_used"] == 3


@table(("gone", "shown"), [(0.0, "20 s"), (0.001, "20 s"), (0.25, "19.8 s"), (19.999, "0.1 s")])
def test_a_wait_is_told_in_tenths_that_are_never_too_short(gone: float, shown: str, clock: Any) -> None:
    busy = session(clock)
    busy.call("search", {"q": 1}, fails(Busy(**{"retry-after": "20"})))
    clock.advance(gone)
    refused = busy.call("search", {"q": 1}, fails(Busy()))
    assert refused.code == "retryable.wait"
    assert f"makes sense in {shown}." in refused.message
    assert refused.next_action_hint.startswith(f"Wait {shown}, then repeat")
    assert refused.retry_after_ms == 20_000 - round(gone * 1000)


@table(
    ("kind", "declared"),
    [(kind, said) for kind in ERROR_TYPES for said in (None, True, False) if (kind, said) != ("other", None)],
)
def test_a3_each_kind_of_failure_says_one_next_action_and_what_follows_from_it(
    kind: Any, declared: bool | None, clock: Any
) -> None:
    envelope = session(clock, tool=Tool(name="t", retryable=declared)).call("t", {}, fails(Envelope.error(kind, "x")))
    passing = kind in TRANSIENT if declared is None else declared and kind not in NEVER_AGAIN
    assert envelope.retryable is passing
    assert (envelope.next_action == "retry") is passing
    assert envelope.next_action_hint
    if not passing:
        expected = INSTEAD.get(kind, "give_up")
        assert envelope.next_action == expected
        assert bool(envelope.retryable_after_correction) is (expected in ("fix_arguments", "fix_precondition"))


@table(
    "error",
    [
        PermissionError("no"),
        FileNotFoundError("gone"),
        Envelope.error("auth", "401"),
        Envelope.error("validation", "v"),
    ],
)
def test_a3_auth_permission_and_input_errors_are_never_retryable_whatever_is_declared(error: Any, clock: Any) -> None:
    tool = Tool(name="t", retryable=True)
    assert session(clock, tool=tool).call("t", {}, fails(error)).retryable is False


def test_a_call_that_may_have_taken_effect_is_not_repeated_where_that_would_do_it_twice(clock: Any) -> None:
    for tool, passing in (
        (Tool(name="pay", idempotent=False), False),
        (Tool(name="pay", idempotent=False, read_only=True), True),
        (Tool(name="pay", idempotent=True), True),
        (Tool(name="pay", read_only=False), False),
        (Tool(name="look"), True),
    ):
        envelope = session(clock, tool=tool).call(tool.name, {}, fails(TimeoutError("slow")))
        assert envelope.retryable is passing
        assert envelope.next_action == ("retry" if passing else "ask_user")


def test_a_tools_own_claims_hold_until_evidence_is_against_them(clock: Any) -> None:
    claim = Envelope.error("other", "warming up", retryable=True, retry_after_ms=500, max_retries_remaining=1)
    own = session(clock, max_retries=2, max_same_error=99)
    seen = []
    for _ in range(3):
        seen.append(said(own.call("t", {}, fails(claim)))[:3])
        clock.advance(1)
    assert seen == [(True, 500, 1), (True, 500, 1), (False, None, 0)]


def test_a_tools_own_word_on_the_next_step_stays(clock: Any) -> None:
    own = Envelope.error("timeout", "locked", next_action="ask_user", next_action_hint="Ask for the PIN.")
    envelope = session(clock).call("t", {}, fails(own))
    assert (envelope.retryable, envelope.next_action, envelope.next_action_hint) == (
        False,
        "ask_user",
        "Ask for the PIN.",
    )


def test_a_retry_is_no_duplicate_while_retries_are_left(clock: Any) -> None:
    flaky = session(clock, Duplicates(window=5), max_retries=1)
    seen = []
    for _ in range(3):
        envelope = flaky.call("get", {}, fails(ConnectionResetError("reset")))
        seen.append(envelope.code or envelope.status)
        clock.advance(60)
    assert seen == ["error", "error", "duplicates.window"]


def test_a_lasting_failure_is_no_retry_and_so_a_duplicate(clock: Any) -> None:
    flaky = session(clock, Duplicates(window=5))
    flaky.call("get", {}, fails(PermissionError("no")))
    assert flaky.call("get", {}, lambda *_: 1).code == "duplicates.window"


@table("shared", [False, True])
@table("merged", [False, True])
def test_no_repeat_is_advised_after_the_call_that_used_up_a_limit(clock: Any, *, shared: bool, merged: bool) -> None:
    budget = [Budget(max_calls=2)]
    scopes = {"tenant": budget} if shared else {}
    policy = Policy(
        [Retryable(), *([] if shared else budget)], scopes=scopes, envelope="merged" if merged else "nested"
    )
    session = policy.session("s", clock=clock, scopes={"tenant": "acme"} if shared else {})
    first, last = (session.call("t", {"n": n}, fails(ConnectionError("reset"))) for n in range(2))
    assert (first.retryable, first.next_action, first.limit_message) == (True, "retry", None)
    assert (last.retryable, last.next_action, last.retry_after_ms) == (False, "give_up", None)
    assert last.next_action_hint == "Write the final answer from what you have."
    assert (last.max_retries_remaining, last.error_type) == (0, "connection")


@table(("said", "hint"), [
    ("rate limit: try again in 5 minutes", "It passes in 300 s at the earliest."), ("daily quota exceeded", "It does not pass by waiting."),
])  # fmt: skip
def test_a_wait_too_long_is_no_failure_that_does_not_pass(said: str, hint: str) -> None:
    envelope = Policy.load("default").session("s").call("get_x", {"q": "z"}, lambda tool, arguments: f"Error: {said}")
    assert (envelope.next_action, (envelope.next_action_hint or "").startswith(hint)) == ("give_up", True)
