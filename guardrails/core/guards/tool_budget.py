"""
Cap one tool's own calls, turns, money, tokens and time: the `budget` of a `tools:` rule.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from guardrails.core.state import SessionState
from guardrails.core.values.types import Denial, Outcome, ToolCall, micro_dollars
from guardrails.core.words import counted, usd

from .base import Codes, Event, Facts, Guard, Verdict, guard


TOOLS: Final = 64
"""Amounts of tools that are counted by themselves; those of further tools are one."""


@guard
class ToolBudget(Guard):
    """
    Deny a tool that has used *amount* of one *limit* in the session; money in micro-dollars, time in milliseconds.

    It remembers, by limit and tool, the amount; of turns also the latest one.
    """

    codes: ClassVar[Codes] = {
        f"tools.budget.{limit}": ("limit", "used")
        for limit in ("max_calls", "max_turns", "max_cost_usd", "max_tokens", "max_elapsed")
    }
    name: ClassVar[str] = "tools.budget"
    family: ClassVar[bool] = True
    events: ClassVar[tuple[str, ...]] = ("withdraw",)

    limit: str = "max_calls"
    amount: int = 0

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        used, latest = self._used(call.tool, mine)
        need = {"max_cost_usd": max(facts.cost, 1), "max_tokens": max(facts.tokens, 1)}.get(self.limit, 1)
        if self.limit == "max_turns" and latest == facts.turn:
            need = 0
        if used + need <= self.amount:
            return None
        return Denial(
            code=f"tools.budget.{self.limit}",
            message=f"`{call.tool}` has used {self._shown(used)} of its {self._shown(self.amount)} in this session.",
            hint="Use another tool, or go on with what you have.",
            values={"used": self._shown(used), "limit": self._shown(self.amount)},
        )

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        if self.limit == "max_turns":
            return self._more(call.tool, mine, self._used(call.tool, mine)[1] != facts.turn, facts.turn)
        return self._more(call.tool, mine, self._charged(facts.cost, facts.tokens))

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        if facts.late:
            return mine
        match self.limit:
            case "max_cost_usd" if outcome.cost is not None:
                return self._more(call.tool, mine, outcome.cost - facts.cost)
            case "max_tokens" if outcome.tokens is not None:
                return self._more(call.tool, mine, outcome.tokens - facts.tokens)
            case "max_elapsed":
                return self._more(call.tool, mine, facts.duration_ms)
        return mine

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        tool, turn = event.values["tool"], facts.turn
        if self.limit != "max_turns":
            return self._more(tool, mine, -self._charged(facts.cost, facts.tokens))
        others = any(one.tool == tool and one.turn == state.mark and one.seq != facts.seq for one in state.window)
        given_back = turn == state.turn and self._used(tool, mine)[1] == turn and not others
        return self._more(tool, mine, -1, -1) if given_back else mine

    def _charged(self, cost: int, tokens: int) -> int:
        return {"max_calls": 1, "max_cost_usd": cost, "max_tokens": tokens}.get(self.limit, 0)

    def _used(self, tool: str, mine: Any) -> tuple[int, int]:
        """
        Returns the amount used, and of turns the number of the latest, else -1.
        """
        used = (mine or {}).get(self._of(tool, mine), 0)
        return (used[0], used[1]) if isinstance(used, list | tuple) else (used, -1)

    def _more(self, tool: str, mine: Any, amount: int, turn: int | None = None) -> Any:
        if not amount and turn is None:
            return mine
        used, latest = self._used(tool, mine)
        made: Any = used + amount
        if self.limit == "max_turns":
            made = [made, latest if turn is None else turn]
        return {**(mine or {}), self._of(tool, mine): made}

    def _of(self, tool: str, mine: Any) -> str:
        key = f"{self.limit}:{tool}"
        return key if not mine or key in mine or len(mine) < TOOLS else f"{self.limit}:"

    def _shown(self, amount: int) -> str:
        match self.limit:
            case "max_calls":
                return counted(amount, "call")
            case "max_turns":
                return counted(amount, "turn")
            case "max_cost_usd":
                return usd(amount)
            case "max_tokens":
                return counted(amount, "token")
        return f"{amount / 1000:g} s"


def tool_budgets(settings: Mapping[str, Any]) -> list[ToolBudget]:
    """
    Returns the guards of a tool whose rule has *settings* of a budget.
    """
    mode = settings.get("mode", "enforce")
    made = []
    for name, value in settings.items():
        if value is None or name == "mode":
            continue
        amount = (
            micro_dollars(value) if name == "max_cost_usd" else round(value * (1000 if name == "max_elapsed" else 1))
        )
        made.append(ToolBudget(limit=name, amount=amount, mode=mode))
    return made
