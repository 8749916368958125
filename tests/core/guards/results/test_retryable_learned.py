"""
What a learned model makes of a failure.
"""

from pathlib import Path
from socket import gaierror
from sqlite3 import OperationalError
from ssl import SSLCertVerificationError
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Duplicates, Envelope, MemorySink, Policy, Retryable, Tool
from guardrails.core.chain import Chain, Rule
from guardrails.core.state import SessionState
from guardrails.core.values.errors import NEVER_AGAIN
from guardrails.core.values.types import ERROR_TYPES
from tests.conftest import FakeClock
from tests.core.guards.calls import Busy, gives, said
from tests.core.retries.conftest import constant
from tests.replaying import replay
from tests.tables import table


NO_MODEL = str(Path(__file__).with_name("there-is-none.json"))
"""Not there, so the shipped beliefs are asked."""


def session(clock: Any, *guards: Any, tool: Tool | None = None, records: Any = None, **settings: Any) -> Any:
    settings.setdefault("model", NO_MODEL)
    policy = Policy([Retryable(**settings), *guards], tools=[tool] if tool else ())
    return policy.session("s", clock=clock, records=records)


def always(tmp_path: Path, logit: float, **changes: Any) -> str:
    """
    A model that says the same of everything.
    """
    path = tmp_path / "model.json"
    path.write_bytes(constant(logit, **changes))
    return str(path)


def test_a10_the_envelope_says_what_the_model_expects(clock: Any) -> None:
    envelope = session(clock).call("search", {}, gives(TimeoutError("slow")))
    shown = {"retryable": True, "retry_after_ms": 2_000, "max_retries_remaining": 3, "next_action": "retry"}
    assert envelope.to_dict().items() >= shown.items()
    assert 0.3 < envelope.retry_success_probability < 0.5


class Answered(Exception):
    def __init__(self, status_code: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status_code


@table(("error", "retryable", "most_ms"), [
    (SSLCertVerificationError("certificate verify failed"), False, 0),
    (Answered(429, "Quota exceeded: 1000 requests per day"), False, 0),
    (gaierror(-2, "Name or service not known"), False, 0),
    (OperationalError("database is locked"), True, 1_000),
    (Answered(409, "conflict: the resource has changed"), True, 5_000),
    (Answered(423, "Locked"), True, 5_000),
    (Answered(500, "internal server error"), True, 5_000),
    (Answered(503, "Service Unavailable"), True, 30_000),
])  # fmt: skip
def test_day_one_is_sensible(error: Exception, retryable: bool, most_ms: int, clock: Any) -> None:
    made = session(clock).call("get", {}, gives(error))
    assert made.retryable is retryable
    assert (made.retry_after_ms or 0) <= most_ms


@table(("after", "settings", "advice"), [
    (3, {}, (True, 3_000, "retry")), (40, {}, (True, 40_000, "retry")), (40, {"max_wait": 30}, (False, 40_000, "give_up")),
])  # fmt: skip
def test_a_wait_is_never_below_what_a_server_names_and_never_above_the_policys(
    after: int, settings: Any, advice: Any, clock: Any
) -> None:
    envelope = session(clock, **settings).call("search", {}, gives(Busy(after)))
    assert said(envelope, "retryable", "retry_after_ms", "next_action") == advice


BUSY, SLOW, GONE = Busy(), TimeoutError("slow"), ConnectionResetError("gone")
KNOWN = {"evidence": {"t": {"rate_limit": 500.0}}}
CLAIM = Envelope.error("other", "busy", retryable=True, max_retries_remaining=1)


@table(("logit", "learned", "tool", "error", "retryable"), [
    # What may have taken effect is not repeated, however likely it works.
    *((6.0, {}, {"idempotent": False}, error, False) for error in (SLOW, GONE)),
    *((6.0, {}, {"idempotent": True}, error, True) for error in (SLOW, GONE)),
    (6.0, {}, {"idempotent": False}, BUSY, True),
    # A declaration, or what a tool says of its failure, counts until evidence says otherwise.
    (0.0, {}, {"retryable": False}, BUSY, False), (0.0, KNOWN, {"retryable": False}, BUSY, True),
    (-1.0, {}, {}, CLAIM, True), (-5.0, {}, {}, CLAIM, False),
    # An expensive tool is retried less.
    (0.0, {}, {"cost_usd": 0.1}, BUSY, True), (0.0, {}, {"cost_usd": 0.6}, BUSY, False),
])  # fmt: skip
def test_what_is_learned_is_weighed_with_what_is_declared(
    logit: float, learned: Any, tool: Any, error: Any, retryable: bool, tmp_path: Path, clock: Any
) -> None:
    one = session(clock, tool=Tool(name="t", **tool), model=always(tmp_path, logit, **learned))
    assert bool(one.call("t", {}, gives(error)).retryable) is retryable


@table("kind", ERROR_TYPES)
@table("logit", [-6.0, 6.0])
def test_what_is_learned_outweighs_what_the_kind_suggests(kind: Any, logit: float, tmp_path: Path, clock: Any) -> None:
    envelope = session(clock, model=always(tmp_path, logit)).call("t", {}, gives(Envelope.error(kind, "no")))
    assert bool(envelope.retryable) is (logit > 0)
    assert (envelope.next_action == "retry") is (logit > 0)


def test_records_say_who_caused_a_retry_and_which_model_was_asked(clock: Any) -> None:
    sink = MemorySink()
    flaky = session(clock, records=sink, max_retries=1)
    for wait in (0, 10, 10):
        clock.advance(wait)
        flaky.call("get", {}, gives(TimeoutError("slow")))
    clock.advance(10)
    flaky.call("get", {}, lambda *_: 1)
    flaky.close()
    calls = [record for record in sink.records if record["event"] == "call"]
    settled = [record for record in sink.records if record["event"] == "settle"]
    assert [record["retry_source"] for record in calls] == [None, "policy", "agent", "agent"]
    assert [record["retry_source"] for record in settled] == [None, "policy", "agent", "agent"]
    assert all(len(record["model_version"]) == 12 for record in settled[:3])
    assert settled[3]["model_version"] is None


def test_without_records_nothing_is_explored(clock: Any) -> None:
    one = session(clock, tool=Tool(name="get", read_only=True), explore=0.1, retry_cost=0.99, max_same_error=99)
    assert not any(one.call("get", {"n": number}, gives(TimeoutError("slow"))).retryable for number in range(60))


def test_exploring_tells_some_failures_of_safe_tools_to_be_tried_again(clock: Any) -> None:
    def explored(tool: Tool, error: Any) -> list[Any]:
        sink = MemorySink()
        policy = Policy([Retryable(model=NO_MODEL, explore=0.1, retry_cost=0.99)], tools=[tool])
        found = []
        for number in range(200):
            one = policy.session(f"s{number}", clock=clock, records=sink)
            envelope = one.call("get", {}, gives(error))
            if envelope.retryable:
                clock.advance(100)
                one.call("get", {}, lambda *_: 1)
            found.append((envelope.retryable, envelope.max_retries_remaining))
        sources = [r["retry_source"] for r in sink.records if r["event"] == "call" and r["retry_source"]]
        assert sources == ["explore"] * len(sources)
        assert len(sources) == sum(retryable is True for retryable, _ in found)
        return [left for retryable, left in found if retryable]

    safe = explored(Tool(name="get", read_only=True), TimeoutError("slow"))
    assert 5 < len(safe) < 45
    assert set(safe) == {1}
    assert explored(Tool(name="get"), TimeoutError("slow")) == []
    kind: Any
    for kind in NEVER_AGAIN:
        assert explored(Tool(name="get", read_only=True), Envelope.error(kind, "no")) == []


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from([None, "timeout", "rate_limit", "auth"]), st.integers(0, 90)),
        max_size=25,
    )
)
def test_a_replay_goes_by_what_was_advised_then(steps: list[tuple[str, Any, int]]) -> None:
    clock = FakeClock()
    sink = MemorySink()
    policy = Policy([Retryable(model=NO_MODEL), Duplicates(), Budget(max_calls=20)])
    one = policy.session("s", clock=clock, records=sink)
    for argument, kind, wait in steps:
        one.call("t", {"q": argument}, lambda *_, kind=kind: 1 if kind is None else Envelope.error(kind, "no"))
        clock.advance(wait)
    one.close()
    # Without any model loaded: the present one may say something else.
    chain = Chain(policy.chain.guards)
    state = SessionState()
    assert all(made.same for made in replay(chain, sink.records, state))
    assert [(e.retry_at_ms, e.retries_left) for e in state.window] == [
        (e.retry_at_ms, e.retries_left) for e in one.ledger.read(lambda kept, now: list(kept.window))
    ]


def corrected(tmp_path: Path, worked: float, tool: str = "book", kind: str = "not_found") -> str:
    counts = {"": {kind: [60.0, 60 * worked]}, tool: {kind: [40.0, 40 * worked]}}
    return always(tmp_path, -5.0, corrections=counts)


NO_HOTEL = Envelope.error("not_found", "no such hotel")
YEAR = Envelope.error("not_found", "no", next_action="ask_user", next_action_hint="Ask for the year.")


@table(("worked", "tool", "error", "action", "hint", "user"), [
    (0.8, "book", NO_HOTEL, "fix_arguments", "calling again. Other arguments work 4 times in 5 here.", "The user need not be asked."),
    (0.1, "book", NO_HOTEL, "ask_user", "Other arguments work 1 time in 10 here.", "Ask the user before you try other arguments."),
    # Of a tool that was never seen to be corrected, or speaks for itself, nothing is told.
    (0.8, "other", NO_HOTEL, "fix_arguments", "Check the name or id before calling again.", None),
    (0.8, "book", YEAR, "ask_user", "Ask for the year.", None),
])  # fmt: skip
def test_a11_how_often_the_model_corrects_itself_says_whether_the_user_is_asked(
    worked: float, tool: str, error: Any, action: str, hint: str, user: str | None, tmp_path: Path, clock: Any
) -> None:
    shown = session(clock, model=corrected(tmp_path, worked)).call(tool, {}, gives(error)).to_dict()
    assert (shown["next_action"], shown["retryable"], shown.get("user_facing_hint")) == (action, False, user)
    assert shown["next_action_hint"].endswith(hint)
    assert ("retryable_after_correction" in shown) is (action == "fix_arguments")


def test_a_retry_that_seldom_works_is_advised_once_with_its_chance(tmp_path: Path, clock: Any) -> None:
    one = session(clock, model=always(tmp_path, -1.82))
    first = one.call("get", {}, gives(TimeoutError("slow")))
    assert (first.retryable, first.max_retries_remaining) == (True, 1)
    assert "that works 1 time in 7. If it fails again, go another way." in first.to_dict()["next_action_hint"]
    clock.advance(100)
    again = one.call("get", {}, gives(TimeoutError("slow")))
    assert (again.retryable, again.next_action) == (False, "give_up")


def test_each_tool_may_have_a_model_of_its_own(tmp_path: Path, clock: Any) -> None:
    hopeless = always(tmp_path, -6.0)
    rules = [Rule(match="pay", guards={"retryable": {"model": hopeless}})]
    one = Policy([Retryable(model=NO_MODEL)], rules=rules).session("s", clock=clock)
    assert one.call("get", {}, gives(Busy())).retryable is True
    assert one.call("pay", {}, gives(Busy())).retryable is False


def test_a_models_weights_are_those_of_its_session(tmp_path: Path, clock: Any) -> None:
    one = session(clock, model=always(tmp_path, 2.0, weights={"rate_limit run 1": -6.0}))
    assert one.call("get", {"q": 1}, gives(Busy())).max_retries_remaining == 1
    clock.advance(100)
    assert one.call("get", {"q": 1}, gives(Busy())).retryable is False
    assert one.call("get", {"q": 2}, gives(Busy())).retryable is True


def test_of_many_tools_the_latest_that_asked_to_be_left_alone_are_known(clock: Any) -> None:
    asked = session(clock, max_wait=90)
    for number in range(20):
        asked.call(f"t{number}", {}, gives(Busy(30)))
    assert asked.call("t19", {"again": 1}, gives(Busy())).retry_after_ms == 30_000
    clock.advance(5)
    asked.call("t3", {"more": 1}, gives(Busy(60)))
    clock.advance(10)
    assert asked.call("t3", {"again": 1}, gives(Busy())).retry_after_ms == 50_000
