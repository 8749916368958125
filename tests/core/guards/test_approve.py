"""
The settings of `Approve`, and a guard of one's own that parks.
"""

from pathlib import Path
from typing import Any

import pytest

from guardrails import Approve, Denial, Guard, Policy, PolicyError, guard
from guardrails.core.guards.base import Facts, SessionState, ToolCall
from tests.core.guards.calls import ok
from tests.tables import table


def test_a_file_that_forgets_the_tools_of_the_one_that_it_extends_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("version: 1\napprove: [pay_*]\n")
    (tmp_path / "p.yaml").write_text("version: 1\nextends: ./base.yaml\napprove: {reason: money}\n")
    with pytest.raises(PolicyError, match="without `tools` nobody is asked"):
        Policy.load(tmp_path / "p.yaml")
    with pytest.raises(PolicyError, match="without `tools` nobody is asked"):
        Policy([Approve(reason="money")])


@table(("rule", "tool", "code"), [
    ('{match: launch, approve: {reason: "boom"}}', "launch", "approve.pending"),
    ('{match: pay_rent, approve: {mode: "off"}}', "pay_rent", None), ("{match: pay_rent, approve: {mode: observe}}", "pay_rent", None),
])  # fmt: skip
def test_a_rule_asks_for_its_tools_or_does_not(rule: str, tool: str, code: str | None, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(f"version: 1\napprove: [pay_*]\ntools:\n  - {rule}\n")
    session = Policy.load(tmp_path / "p.yaml").session("s")
    assert [session.call(name, {}, ok).code for name in (tool, "look")] == [code, None]


@guard
class Large(Guard):
    codes = {"large.pending": ("reason",)}  # noqa: RUF012

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        if call.arguments["usd"] < 100:
            return None
        return Denial("large.pending", "too much to pay unseen", parks=0, values={"reason": "100 USD or more"})


def test_a_guard_of_ones_own_may_park_by_the_arguments() -> None:
    paid: list[Any] = []
    session = Policy([Large()]).session("s")
    for usd in (1, 500):
        session.call("pay", {"usd": usd}, lambda tool, arguments: paid.append(arguments), id=f"call_{usd}")
    assert paid == [{"usd": 1}]
    (waiting,) = session.pending()
    assert (waiting.id, waiting.reason) == ("call_500", "100 USD or more")
    session.approve(waiting)
    for _ in range(2):
        session.call("pay", {"usd": 500}, lambda tool, arguments: paid.append(arguments), id="call_500")
    assert paid == [{"usd": 1}, {"usd": 500}]


def test_what_cannot_be_shown_to_a_person_is_refused_and_asked_of_nobody() -> None:
    session = Policy([Approve(tools=("pay",))]).session("s")
    refused = session.call("pay", {"o": object()}, ok)
    assert (refused.code, session.pending()) == ("approve.refused", [])
    assert "cannot be shown" in (refused.message or "")
