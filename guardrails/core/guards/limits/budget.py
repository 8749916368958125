"""
Cap what a session, or one tool of it, may use: calls, turns, money, tokens, time.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypedDict

from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard
from guardrails.core.guards.session_limits import Far, Limits
from guardrails.core.guards.settings import Keys, map_of, respelt
from guardrails.core.state.state import NEVER, SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.bounds import Ge, Gt
from guardrails.core.values.types import MICRO, Denial, ToolCall, micro_dollars
from guardrails.core.values.units import Duration

from .budget_words import ended, held, outgrown, unpriced, usd
from .room import CHILDREN_LIMIT, fits
from .tool_budget import ToolBudget, tool_budgets
from .unpriced import BLOWN, blow, blown_by


LIMITS: Final = ("max_calls", "max_turns", "max_cost_usd", "max_tokens", "max_elapsed")
SEEDS: Final = {
    "max_tool_calls": "max_calls",
    "max_tool_turns": "max_turns",
    "max_tool_iterations": "max_turns",
    "max_total_cost_usd": "max_cost_usd",
}
"""Other names of limits."""


_LEFT: Final = (
    ("max_calls", "max_calls", "calls_left", 1, 10),
    ("max_turns", "max_turns", "turns_left", 1, 10),
    ("max_tokens", "max_tokens", "tokens_left", 1, 0),
    ("max_cost_usd", "max_cost", "cost_left_usd", MICRO, 0),
    ("max_elapsed", "max_elapsed", "seconds_left", 1000, 0),
)
"""Of each limit: its setting, the state's name, that of what is left, the unit, and how little is always told."""


class MoreCalls(TypedDict, total=False):
    """
    Calls and turns, as many more.
    """

    max_calls: Annotated[int, Ge(1)] | None
    max_turns: Annotated[int, Ge(1)] | None


GoOn = Annotated[MoreCalls, Keys()]


@guard
class Budget(Guard):
    """
    End the session once it has used up one of its limits.

    Cost and tokens are reserved at admission by the tool's estimate, and settled by the use of the call. A started call
    counts, however it ends. Calls of the last turn still run. A call whose estimate does not fit any more is refused
    alone while cheaper ones may still run. A model response of unknown price ends a session with a cost limit, unless
    `on_unpriced` is `warn`.
    """

    codes: ClassVar[Codes] = {
        "budget.max_calls": ("limit", "used", "held"),
        "budget.max_turns": ("limit", "used", "held"),
        "budget.max_cost_usd": ("limit", "used", "estimate", "left"),
        "budget.max_tokens": ("limit", "used", "estimate", "left"),
        "budget.max_elapsed": ("limit", "used"),
        "budget.unpriced": ("limit", "model"),
        **ToolBudget.codes,
        f"{ToolBudget.name}.error": (),
    }

    aliases: ClassVar[dict[str, str]] = SEEDS
    tool_settings: ClassVar[tuple[str, ...] | None] = ("mode", *LIMITS)
    scope_settings: ClassVar[tuple[str, ...] | None] = (
        "mode",
        *(name for name in LIMITS if name != "max_turns"),
        "final_answer_reserve_usd",
        "on_unpriced",
    )

    max_calls: Annotated[int, Ge(0)] | None = None
    max_turns: Annotated[int, Ge(0)] | None = None
    """Model responses with tool calls."""
    max_cost_usd: Annotated[float, Ge(0)] | None = None
    """Tool calls and model responses together."""
    max_tokens: Annotated[int, Ge(0)] | None = None
    max_elapsed: Annotated[Duration, Gt(0)] | None = None
    """Seconds from the session's first event, without those in which all that is open waits for a person."""
    max_children: Annotated[int, Ge(0)] | None = None
    """Sub-agents below a root session, those of sub-agents included, however long they live."""
    max_depth: Annotated[int, Ge(0)] | None = None
    """Levels of sub-agents below a root session."""
    go_on: GoOn = map_of()
    """Calls and turns that a further message of the user opens once those are used up, `{max_turns: 10}`; none by default."""
    final_answer_reserve_usd: Annotated[float, Ge(0)] = 0.0
    """Held back from `max_cost_usd` for the model's final answer."""
    on_unpriced: Literal["deny", "warn"] = "deny"
    """The effect of a model response of unknown price on a session with `max_cost_usd`: it ends it, or is only logged."""

    def applies(self, tool: Tool) -> bool:
        return any(getattr(self, name) is not None for name in LIMITS)

    def far(self) -> Far:
        def bound(limit: int | None) -> int:
            return NEVER if limit is None else limit

        calls, turns, tokens = bound(self.max_calls) - 1, bound(self.max_turns) - 1, bound(self.max_tokens)
        elapsed = bound(None if self.max_elapsed is None else round(self.max_elapsed * 1000))
        reserve = micro_dollars(self.final_answer_reserve_usd)
        money = bound(None if self.max_cost_usd is None else micro_dollars(self.max_cost_usd) - reserve)
        several = not (self.max_turns is self.max_tokens is self.max_cost_usd is None)
        closes = self.closes

        def is_far(state: SessionState, now_ms: int, estimate: int) -> bool:
            return (
                state.calls < calls
                and now_ms - state.started_ms < elapsed
                # Those were raised, or given to sub-agents.
                and not (state.limits or state.reserved)
                and not (
                    several
                    and (
                        state.turns >= turns
                        or state.tokens + state.held_tokens >= tokens
                        or state.cost + state.held_cost + estimate >= money
                        or (closes and BLOWN in state.meters.values())
                    )
                )
            )

        return is_far

    @property
    def limits(self) -> Limits:
        return self

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        cost, reserve = settings.get("max_cost_usd"), settings.get("final_answer_reserve_usd", 0.0)
        if cost is not None and 0 < reserve >= cost:
            kept, limit = usd(micro_dollars(reserve)), usd(micro_dollars(cost))
            raise ValueError(
                f"final_answer_reserve_usd ({kept}) must be below max_cost_usd ({limit}): nothing is left for calls"
            )

    @classmethod
    def ruled(cls, own: Guard | None, settings: Mapping[str, Any]) -> tuple[Guard, ...]:
        named, _ = respelt(settings, cls.aliases)
        return (*(() if own is None else (own,)), *tool_budgets(named))

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        cause = self.spent(state, facts.now_ms)
        if cause is not None:
            return cause
        if self.max_turns is not None and state.turn_admitted == 0:
            cause = self._turns(state)
            if cause is not None:
                return cause
            left = self.turns_left(state) if state.reserved else None
            if left is not None and left <= 0:
                return held("budget.max_turns", "turns", state.reserved_by_children("max_turns"))
        if (state.reserved or state.parked) and self.max_calls is not None:
            left = self.calls_left(state)
            if left is not None and left <= 0:
                return held("budget.max_calls", "calls", state.reserved_by_children("max_calls"), state.parked)
        return fits(self, state, (facts.cost, facts.tokens), facts.guess) if self.reserves else None

    @property
    def reserves(self) -> bool:
        return self.max_cost_usd is not None or self.max_tokens is not None

    def spent(self, state: SessionState, now_ms: int) -> Denial | None:
        limits = state.limits
        if self.max_calls is not None:
            limit = limits.get("max_calls", self.max_calls) if limits else self.max_calls
            if state.calls - state.parked >= limit:
                return ended("budget.max_calls", "Tool call limit", str(limit), state.calls)
        if self.max_cost_usd is not None:
            micro = self.cost_limit(state)
            if micro is not None and state.cost >= micro - micro_dollars(self.final_answer_reserve_usd):
                return ended("budget.max_cost_usd", "Cost limit", usd(micro), usd(state.cost))
            blown = blown_by(state) if self.on_unpriced == "deny" else None
            if micro is not None and blown is not None:
                return unpriced(usd(micro), blown[0])
        if self.max_tokens is not None:
            limit = limits.get("max_tokens", self.max_tokens) if limits else self.max_tokens
            if state.tokens >= limit:
                return ended("budget.max_tokens", "Token limit", str(limit), state.tokens)
        if self.max_elapsed is not None and state.started_ms >= 0:
            limit = round(self.max_elapsed * 1000)
            if limits:
                limit = limits.get("max_elapsed", limit)
            if now_ms - state.started_ms >= limit and state.spent_ms(now_ms) >= limit:
                return ended(
                    "budget.max_elapsed", "Time limit", f"{limit / 1000:g} s", state.spent_ms(state.now_ms) / 1000
                )
        return None

    def turn_spent(self, state: SessionState, now_ms: int) -> Denial | None:
        return None if self.max_turns is None else self._turns(state)

    @property
    def priced(self) -> bool:
        """
        Whether money is limited.
        """
        return self.max_cost_usd is not None

    @property
    def closes(self) -> bool:
        """
        Whether a model response of unknown price ends the session.
        """
        return self.max_cost_usd is not None and self.on_unpriced == "deny"

    def response(
        self,
        state: SessionState,
        cost: int | None,
        tokens: int,
        model: str | None,
        untold: bool,
    ) -> dict[str, int]:
        if cost is not None or model is None or not self.closes or blown_by(state) is not None:
            return {}
        return blow(model, untold=untold) if tokens or untold else {}

    def _turns(self, state: SessionState) -> Denial | None:
        limit = state.limit("max_turns", self.max_turns)
        if limit is None or state.turns < limit:
            return None
        return ended("budget.max_turns", "Tool call limit", str(limit), state.turns)

    def cost_limit(self, state: SessionState) -> int | None:
        """
        Returns the session's cost limit in micro-dollars.
        """
        own = None if self.max_cost_usd is None else micro_dollars(self.max_cost_usd)
        return state.limit("max_cost", own)

    def limit(self, state: SessionState, name: str) -> int | None:
        """
        Returns the limit *name*, as the state names it. Returns None if there is none.
        """
        if name == "max_cost":
            return self.cost_limit(state)
        if name == "max_children":
            return state.meters.get(CHILDREN_LIMIT, self.max_children)
        if name == "max_elapsed":
            return state.limit(name, None if self.max_elapsed is None else round(self.max_elapsed * 1000))
        return state.limit(name, getattr(self, name))

    def left(self, state: SessionState, name: str, now_ms: int) -> int | None:
        """
        Returns the rest of the limit *name*. Returns None if there is no such limit.
        """
        match name:
            case "max_calls":
                return self.calls_left(state)
            case "max_turns":
                return self.turns_left(state)
            case "max_cost":
                return self.cost_left(state)
            case "max_tokens":
                return self.tokens_left(state)
        return self.elapsed_left_ms(state, now_ms)

    def outgrown(self, state: SessionState, turn: int, tool: int) -> Denial | None:
        """
        Returns the cause that neither a *turn* nor a *tool*, the cheapest of each in micro-dollars, fits into the cost
        limit. Amounts that are only held may come back, and count as left.
        """
        limit = self.cost_limit(state)
        if limit is None:
            return None
        left = limit - state.cost - micro_dollars(self.final_answer_reserve_usd)
        return None if left >= turn or left >= tool else outgrown(limit, state.cost, left)

    def calls_left(self, state: SessionState) -> int | None:
        """
        Returns calls that may still be admitted. Returns None if there is no limit.
        """
        limit = state.limits.get("max_calls", self.max_calls) if state.limits else self.max_calls
        if limit is None:
            return None
        return limit - state.calls - (state.reserved_by_children("max_calls") if state.reserved else 0)

    def turns_left(self, state: SessionState) -> int | None:
        """
        Returns turns that may still have calls. Returns None if there is no limit.
        """
        limit = state.limit("max_turns", self.max_turns)
        return None if limit is None else limit - state.turns - state.reserved_by_children("max_turns")

    def cost_left(self, state: SessionState) -> int | None:
        """
        Returns micro-dollars that may still be reserved for calls. Returns None if there is no limit.
        """
        limit = self.cost_limit(state)
        if limit is None:
            return None
        held = state.held_cost + state.reserved_by_children("max_cost") + micro_dollars(self.final_answer_reserve_usd)
        return limit - state.cost - held

    def tokens_left(self, state: SessionState) -> int | None:
        """
        Returns tokens that may still be reserved. Returns None if there is no limit.
        """
        limit = state.limit("max_tokens", self.max_tokens)
        if limit is None:
            return None
        return limit - state.tokens - state.held_tokens - state.reserved_by_children("max_tokens")

    def elapsed_left_ms(self, state: SessionState, now_ms: int) -> int | None:
        """
        Returns milliseconds that are left. Returns None if there is no limit.
        """
        limit = None if self.max_elapsed is None else round(self.max_elapsed * 1000)
        if state.limits:
            limit = state.limit("max_elapsed", limit)
        if limit is None or state.started_ms < 0:
            return limit
        return limit - (state.spent_ms(now_ms) if state.parked or state.stood_ms else now_ms - state.started_ms)

    def progress(self, state: SessionState, now_ms: int, *, near: bool = False) -> dict[str, object]:
        """
        Returns the used amounts, and the rest of the limits that are set; money in USD, time in seconds. With *near* a rest is left out
        that is more than a fifth, and of calls and turns ten or more.
        """
        shown: dict[str, object] = {"calls_used": state.calls}
        for setting, name, key, unit, few in _LEFT:
            limit = getattr(self, setting)
            if limit is None:
                continue
            left = max(0, self.left(state, name, now_ms) or 0)
            if near and left >= few:
                most = (self.limit(state, name) or 0) if state.limits else limit * unit
                if left * 5 > most:
                    continue
            shown[key] = left / unit if unit == MICRO else left // unit
        return shown
