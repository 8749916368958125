"""
Cap what one tool may use in a session.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard
from guardrails.core.state.state import SessionState
from guardrails.core.values.types import Denial, Outcome, ToolCall, micro_dollars

from .budget_words import counted, usd


_TURN_BITS: Final = 32


@guard
class ToolBudget(Guard):
    """
    Refuse a tool's calls once it has used up a limit of its own; the session goes on.

    Made of the `budget` of a policy's `tools:` rule, one guard for each limit; the counter is kept by tool name.
    """

    codes: ClassVar[Codes] = {
        f"tools.budget.{limit}": ("limit", "used")
        for limit in ("max_calls", "max_turns", "max_cost_usd", "max_tokens", "max_elapsed")
    }

    name: ClassVar[str] = "tools.budget"

    limit: str = "max_calls"
    amount: int = 0
    """Calls, turns, micro-dollars, tokens or milliseconds."""

    @property
    def reserves(self) -> bool:
        return self.limit in ("max_cost_usd", "max_tokens")

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        meter = state.meter(self._key(call.tool))
        used, need = meter, 1
        if self.limit == "max_cost_usd":
            need = max(facts.cost, 1)
        elif self.limit == "max_tokens":
            need = max(facts.tokens, 1)
        elif self.limit == "max_turns":
            used = meter >> _TURN_BITS
            need = 0 if self._counted(meter, facts) else 1
        if used + need <= self.amount:
            return None
        return Denial(
            code=f"tools.budget.{self.limit}",
            message=f"`{call.tool}` has used {self._shown(used)} of its {self._shown(self.amount)} in this session.",
            hint="Use another tool, or go on with what you have.",
            values={"used": self._shown(used), "limit": self._shown(self.amount)},
        )

    def charge(self, call: ToolCall, state: SessionState, facts: Facts) -> dict[str, int]:
        key = self._key(call.tool)
        meter = state.meter(key)
        match self.limit:
            case "max_calls":
                return {key: meter + 1}
            case "max_cost_usd":
                return {key: meter + facts.cost}
            case "max_tokens":
                return {key: meter + facts.tokens}
            case "max_turns" if not self._counted(meter, facts):
                return {key: ((meter >> _TURN_BITS) + 1 << _TURN_BITS) + facts.turn + 1}
        return {}

    def undo(self, tool: str, state: SessionState, facts: Facts) -> dict[str, int]:
        charged = {"max_calls": 1, "max_cost_usd": facts.cost, "max_tokens": facts.tokens}.get(self.limit, 0)
        key = self._key(tool)
        if self.limit == "max_turns" and self._only_one(tool, state, facts):
            return {key: (state.meter(key) >> _TURN_BITS) - 1 << _TURN_BITS}
        return {key: state.meter(key) - charged} if charged else {}

    def _only_one(self, tool: str, state: SessionState, facts: Facts) -> bool:
        """
        Returns whether the present turn is counted, and has no call of *tool*, as far as the window tells all of it.
        """
        if facts.turn != state.turn or not self._counted(state.meter(self._key(tool)), facts):
            return False
        mark, window = state.mark, state.window
        if not window or not (window[0].seq == 1 or (facts.turn and window[0].turn not in (0, mark))):
            return False
        # A call that never ran is of no turn.
        return not any(one.tool == tool and (one.turn == mark if facts.turn else one.turn) for one in window)

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, facts: Facts) -> dict[str, int]:
        key = self._key(call.tool)
        match self.limit:
            case "max_cost_usd" if outcome.cost is not None:
                return {key: state.meter(key) + outcome.cost - facts.cost}
            case "max_tokens" if outcome.tokens is not None:
                return {key: state.meter(key) + outcome.tokens - facts.tokens}
            case "max_elapsed":
                return {key: state.meter(key) + facts.duration_ms}
        return {}

    def _key(self, tool: str) -> str:
        return f"{self.limit}:{tool}"

    def _counted(self, meter: int, facts: Facts) -> bool:
        return meter & ((1 << _TURN_BITS) - 1) == facts.turn + 1

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
    Returns one guard for each limit that the `budget` of a `tools:` rule sets.
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
