"""
Rules, periods and warnings in front of an MCP server.
"""

import asyncio

from typing import Any

import pytest


pytest.importorskip("mcp")
pytest.importorskip("cel_expr_python")

from guardrails import Budget, Policy, Rules
from guardrails.mcp.calls import Guarding, Run


def test_a_client_is_held_to_rules_and_told_of_a_limit_that_is_near(clock: Any) -> None:
    rule: Any = {"tools": "pay", "limit": {"sum": "args.amount", "max": 10, "scope": "global"}}
    policy = Policy([Budget(max_calls=5, per="day", warn_at=0.8), Rules(rules=(rule,))])
    guarding = Guarding(policy, clock=clock)

    async def listing() -> list[Any]:
        return []

    async def send(_: Any) -> Any:
        return {"content": [{"type": "text", "text": "paid"}]}

    def pay(amount: int) -> str:
        asked = {"name": "pay", "arguments": {"amount": amount}}
        return str(asyncio.run(guarding.serve(asked, Run("trip", named=True), listing, send)))

    assert "10 are used" not in pay(8)
    assert "8 are used, 2 are left, and this call is for 3" in pay(3)
    assert [("Left: 1 call of 5 a day, UTC." in pay(0)) for _ in range(4)] == [False, False, True, False]
    assert "Tool call limit reached (5 a day, UTC)" in pay(0)
    clock.advance(86_400)
    assert "paid" in pay(1)
