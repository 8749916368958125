"""
One recorded session as events of the engine.
"""

from guardrails import Budget, Duplicates, Outcome, Policy, Tool
from guardrails.core.engine.engine import Engine
from guardrails.core.engine.prepare import Prepared
from guardrails.core.state.state import Pending
from guardrails.core.values.types import ToolCall
from guardrails.offline.judge.evidence import SUCCESS
from guardrails.offline.judge.track import Shown, Side
from tests.tables import table


def made(policy: Policy) -> Side:
    return Side(Engine(policy.chain))


def shows(outcome: Outcome = SUCCESS) -> Shown:
    return lambda call, failing: Prepared(outcome, None, 1)


def called(side: Side, tool: str, now: int, shown: Shown | None, end_ms: int) -> bool:
    call = ToolCall(tool, {}, f"{tool} {now}", None, ord(tool))
    return side.step(call, now, side.engine.chain.plan(tool), shown, end_ms).allowed


def test_a_call_that_is_over_at_once_is_settled_at_once() -> None:
    side = made(Policy([Budget(max_calls=5), Duplicates()]))
    assert called(side, "a", 1_000, shows(), 1_000)
    assert side.state.pending == {}
    assert side.state.window[0].status == "ok"


def test_what_a_refused_call_has_shown_is_never_seen() -> None:
    side = made(Policy([Budget(max_calls=1)]))
    assert [called(side, "a", now, shows(), now + 5) for now in (0, 1_000)] == [True, False]
    side.settle(9_000)
    assert len(side.state.window) == 1


def test_a_call_without_a_result_is_given_up_by_the_next() -> None:
    side = made(Policy())
    called(side, "a", 0, None, 0)
    called(side, "b", 0, shows(), 0)
    assert [entry.status for entry in side.state.window] == ["expired", "ok"]


def test_a_late_result_changes_nothing() -> None:
    side = made(Policy([Duplicates()], tools=[Tool(name="a", timeout=1.0)]))
    called(side, "a", 0, shows(), 5_000)
    called(side, "b", 4_000, shows(), 4_000)
    side.settle(9_000)
    assert side.state.window[0].status == "expired"


@table("outcome", [SUCCESS, Outcome(None, "timeout")])
def test_what_is_not_over_is_not_seen(outcome: Outcome) -> None:
    side = made(Policy([Duplicates()]))
    called(side, "a", 0, shows(outcome), 5_000)
    side.settle(4_999)
    assert [type(pending) for pending in side.state.pending.values()] == [Pending]
    side.settle(5_000)
    assert side.state.pending == {}
