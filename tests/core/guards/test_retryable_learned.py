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
from tests.core.retries.conftest import constant
from tests.replaying import replay
from tests.tables import table


NO_MODEL = str(Path(__file__).with_name("there-is-none.json"))
"""Not there, so the shipped beliefs are asked."""


class Busy(Exception):
    status_code = 429

    def __init__(self, after: int | None = None) -> None:
        super().__init__("too many requests")
        self.headers = {} if after is None else {"retry-after": str(after)}


def fails(error: Any) -> Any:
    def execute(tool: str, arguments: Any) -> Any:
        if isinstance(error, Envelope):
            return error
        raise error

    return execute


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
    envelope = session(clock).call("search", {}, fails(TimeoutError("slow")))
    shown = envelope.to_dict()
    assert shown["retryable"] is True
    assert shown["retry_after_ms"] == 2_000
    assert shown["max_retries_remaining"] == 3
    assert 0.3 < shown["retry_success_probability"] < 0.5
    assert shown["next_action"] == "retry"


class Answered(Exception):
    def __init__(self, status_code: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status_code


@table(
    "error, retryable, most_ms",
    [
        (SSLCertVerificationError("certificate verify failed"), False, 0),
        (Answered(429, "Quota exceeded: 1000 requests per day"), False, 0),
        (gaierror(-2, "Name or service not known"), False, 0),
        (OperationalError("database is locked"), True, 1_000),
        (Answered(409, "conflict: the resource has changed"), True, 5_000),
        (Answered(423, "Locked"), True, 5_000),
        (Answered(500, "internal server error"), True, 5_000),
        (Answered(503, "Service Unavailable"), True, 30_000),
    ],
)
def test_day_one_is_sensible(error: Exception, retryable: bool, most_ms: int, clock: Any) -> None:
    made = session(clock).call("get", {}, fails(error))
    assert made.retryable is retryable
    assert (made.retry_after_ms or 0) <= most_ms


def test_a_wait_is_never_below_what_a_server_names_and_never_above_the_policys(clock: Any) -> None:
    for after in (3, 40):
        envelope = session(clock).call("search", {}, fails(Busy(after)))
        assert (envelope.retryable, envelope.retry_after_ms) == (True, after * 1_000)
    envelope = session(clock, max_wait=30).call("search", {}, fails(Busy(40)))
    assert (envelope.retryable, envelope.retry_after_ms, envelope.next_action) == (False, 40_000, "give_up")


@table("error", [TimeoutError("slow"), ConnectionResetError("gone")])
def test_a_call_that_may_have_taken_effect_is_not_repeated_however_likely_it_works(
    error: Exception, tmp_path: Path, clock: Any
) -> None:
    model = always(tmp_path, 6.0)
    for tool, retryable in ((Tool(name="pay", idempotent=False), False), (Tool(name="pay", idempotent=True), True)):
        envelope = session(clock, tool=tool, model=model).call("pay", {}, fails(error))
        assert envelope.retryable is retryable
    envelope = session(clock, tool=Tool(name="pay", idempotent=False), model=model).call("pay", {}, fails(Busy()))
    assert envelope.retryable is True


@table("kind", ERROR_TYPES)
@table("logit", [-6.0, 6.0])
def test_what_is_learned_outweighs_what_the_kind_suggests(kind: Any, logit: float, tmp_path: Path, clock: Any) -> None:
    envelope = session(clock, model=always(tmp_path, logit)).call("t", {}, lambda *_: Envelope.error(kind, "no"))
    assert bool(envelope.retryable) is (logit > 0)
    assert (envelope.next_action == "retry") is (logit > 0)


def test_a_tools_own_declaration_counts_until_evidence_says_otherwise(tmp_path: Path, clock: Any) -> None:
    def said(evidence: float) -> Any:
        model = always(tmp_path, 0.0, evidence={"pay": {"rate_limit": evidence}})
        tool = Tool(name="pay", retryable=False)
        return session(clock, tool=tool, model=model).call("pay", {}, fails(Busy())).retryable

    assert said(0) is False
    assert said(500) is True


def test_an_expensive_tool_is_retried_less(tmp_path: Path, clock: Any) -> None:
    model = always(tmp_path, 0.0)
    for cost, retryable in ((0.1, True), (0.6, False)):
        tool = Tool(name="pay", cost_usd=cost)
        assert session(clock, tool=tool, model=model).call("pay", {}, fails(Busy())).retryable is retryable


def test_records_say_who_caused_a_retry_and_which_model_was_asked(clock: Any) -> None:
    sink = MemorySink()
    flaky = session(clock, records=sink, max_retries=1)
    for wait in (0, 10, 10):
        clock.advance(wait)
        flaky.call("get", {}, fails(TimeoutError("slow")))
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
    tool = Tool(name="get", read_only=True)
    for number in range(60):
        one = session(clock, tool=tool, explore=0.1, retry_cost=0.99)
        assert one.call("get", {"n": number}, fails(TimeoutError("slow"))).retryable is False


def test_exploring_tells_some_failures_of_safe_tools_to_be_tried_again(clock: Any) -> None:
    def explored(tool: Tool, error: Any) -> list[Any]:
        sink = MemorySink()
        policy = Policy([Retryable(model=NO_MODEL, explore=0.1, retry_cost=0.99)], tools=[tool])
        found = []
        for number in range(200):
            one = policy.session(f"s{number}", clock=clock, records=sink)
            envelope = one.call("get", {}, fails(error))
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


def test_a11_what_the_model_corrects_itself_is_told_without_the_user(tmp_path: Path, clock: Any) -> None:
    one = session(clock, model=corrected(tmp_path, 0.8))
    shown = one.call("book", {}, lambda *_: Envelope.error("not_found", "no such hotel")).to_dict()
    assert shown["next_action"] == "fix_arguments"
    assert shown["retryable"] is False
    assert shown["retryable_after_correction"] is True
    assert shown["user_facing_hint"] == "The user need not be asked."
    assert shown["next_action_hint"].endswith("calling again. Other arguments work 4 times in 5 here.")


def test_a11_what_the_model_seldom_corrects_asks_the_user(tmp_path: Path, clock: Any) -> None:
    one = session(clock, model=corrected(tmp_path, 0.1))
    shown = one.call("book", {}, lambda *_: Envelope.error("not_found", "no such hotel")).to_dict()
    assert shown["next_action"] == "ask_user"
    assert "retryable_after_correction" not in shown
    assert shown["user_facing_hint"] == "Ask the user before you try other arguments."
    assert shown["next_action_hint"].endswith("Other arguments work 1 time in 10 here.")


def test_a_tool_that_was_never_seen_to_be_corrected_is_told_what_it_was_told_before(tmp_path: Path, clock: Any) -> None:
    one = session(clock, model=corrected(tmp_path, 0.8))
    shown = one.call("other", {}, lambda *_: Envelope.error("not_found", "no such hotel")).to_dict()
    assert shown["next_action_hint"] == "What was asked for is not there. Check the name or id before calling again."
    assert "user_facing_hint" not in shown


def test_what_a_tool_says_of_the_next_step_stays(tmp_path: Path, clock: Any) -> None:
    own = Envelope.error("not_found", "no", next_action="ask_user", next_action_hint="Ask for the year.")
    shown = session(clock, model=corrected(tmp_path, 0.8)).call("book", {}, lambda *_: own).to_dict()
    assert (shown["next_action"], shown["next_action_hint"]) == ("ask_user", "Ask for the year.")
    assert "user_facing_hint" not in shown


def test_a_retry_that_seldom_works_is_advised_once_with_its_chance(tmp_path: Path, clock: Any) -> None:
    one = session(clock, model=always(tmp_path, -1.82))
    first = one.call("get", {}, fails(TimeoutError("slow")))
    assert (first.retryable, first.max_retries_remaining) == (True, 1)
    assert "that works 1 time in 7. If it fails again, go another way." in first.to_dict()["next_action_hint"]
    clock.advance(100)
    again = one.call("get", {}, fails(TimeoutError("slow")))
    assert (again.retryable, again.next_action) == (False, "give_up")


def test_what_a_tool_says_of_its_own_failure_is_a_prior_too(tmp_path: Path, clock: Any) -> None:
    own = Envelope.error("other", "busy", retryable=True, max_retries_remaining=1)
    envelope = session(clock, model=always(tmp_path, -1.0)).call("t", {}, lambda *_: own)
    assert (envelope.retryable, envelope.max_retries_remaining) == (True, 1)
    assert not session(clock, model=always(tmp_path, -5.0)).call("t", {}, lambda *_: own).retryable


def test_each_tool_may_have_a_model_of_its_own(tmp_path: Path, clock: Any) -> None:
    hopeless = always(tmp_path, -6.0)
    rules = [Rule(match="pay", guards={"retryable": {"model": hopeless}})]
    one = Policy([Retryable(model=NO_MODEL)], rules=rules).session("s", clock=clock)
    assert one.call("get", {}, fails(Busy())).retryable is True
    assert one.call("pay", {}, fails(Busy())).retryable is False


def test_a_models_weights_are_those_of_its_session(tmp_path: Path, clock: Any) -> None:
    one = session(clock, model=always(tmp_path, 2.0, weights={"rate_limit run 1": -6.0}))
    assert one.call("get", {"q": 1}, fails(Busy())).max_retries_remaining == 1
    clock.advance(100)
    assert one.call("get", {"q": 1}, fails(Busy())).retryable is False
    assert one.call("get", {"q": 2}, fails(Busy())).retryable is True


def test_of_many_tools_the_latest_that_asked_to_be_left_alone_are_known(clock: Any) -> None:
    asked = session(clock, max_wait=90)
    for number in range(20):
        asked.call(f"t{number}", {}, fails(Busy(30)))
    assert asked.call("t19", {"again": 1}, fails(Busy())).retry_after_ms == 30_000
    clock.advance(5)
    asked.call("t3", {"more": 1}, fails(Busy(60)))
    clock.advance(10)
    assert asked.call("t3", {"again": 1}, fails(Busy())).retry_after_ms == 50_000
