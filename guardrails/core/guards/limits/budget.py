"""
Cap what a session, or one tool of it, may use: calls, turns, money, tokens, time.
"""

from typing import Annotated, ClassVar, Literal

from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard
from guardrails.core.state.state import SessionState
from guardrails.core.values.bounds import Ge, Gt
from guardrails.core.values.types import MICRO, Denial, ToolCall, micro_dollars
from guardrails.core.values.units import Duration

from .unpriced import blow, blown_by, told


SEEDS = {
    "max_tool_calls": "max_calls",
    "max_tool_turns": "max_turns",
    "max_tool_iterations": "max_turns",
    "max_total_cost_usd": "max_cost_usd",
}
FINISH = "Write the final answer from what you have."


@guard
class Budget(Guard):
    """
    End the session once it has used up one of its limits.

    Cost and tokens are reserved at admission by the tool's estimate and settled by what the call really used; a
    started call counts, whatever becomes of it. Calls of the last turn still run. A call whose estimate does not fit
    any more is refused alone while cheaper ones may still run. A model response of unknown price ends a session with a cost
    limit, unless `on_unpriced` is `warn`.
    """

    codes: ClassVar[Codes] = {
        "budget.max_calls": ("limit", "used", "held"),
        "budget.max_turns": ("limit", "used", "held"),
        "budget.max_cost_usd": ("limit", "used", "estimate", "left"),
        "budget.max_tokens": ("limit", "used", "estimate", "left"),
        "budget.max_elapsed": ("limit", "used"),
        "budget.unpriced": ("limit", "model"),
    }

    aliases: ClassVar[dict[str, str]] = SEEDS

    max_calls: Annotated[int, Ge(0)] | None = None
    max_turns: Annotated[int, Ge(0)] | None = None
    """Model responses with tool calls."""
    max_cost_usd: Annotated[float, Ge(0)] | None = None
    """Tool calls and model responses together."""
    max_tokens: Annotated[int, Ge(0)] | None = None
    max_elapsed: Annotated[Duration, Gt(0)] | None = None
    """Seconds from the session's first event."""
    final_answer_reserve_usd: Annotated[float, Ge(0)] = 0.0
    """Held back from `max_cost_usd` for the model's final answer."""
    on_unpriced: Literal["deny", "warn"] = "deny"
    """What a model response of unknown price does to a session with `max_cost_usd`: end it, or only be logged."""

    @property
    def active(self) -> bool:
        return any(
            limit is not None
            for limit in (self.max_calls, self.max_turns, self.max_cost_usd, self.max_tokens, self.max_elapsed)
        )

    @property
    def calls_spend(self) -> tuple[str, ...]:
        return ("spent",) if self.max_turns is None else ("spent", "turn_spent")

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
                return _held("budget.max_turns", "turns", state.reserved_by_children("max_turns"))
        if state.reserved and self.max_calls is not None:
            left = self.calls_left(state)
            if left is not None and left <= 0:
                return _held("budget.max_calls", "calls", state.reserved_by_children("max_calls"))
        if self.max_cost_usd is not None:
            money = self.cost_left(state)
            # What is free fits beside what is held; what is spent has ended the session above.
            if money is not None and facts.cost > max(money, 0):
                return self._too_dear("max_cost_usd", usd(facts.cost), usd(max(money, 0)))
        if self.max_tokens is not None:
            tokens = self.tokens_left(state)
            if tokens is not None and (facts.tokens > tokens or tokens <= 0):
                return self._too_dear("max_tokens", str(facts.tokens), str(max(tokens, 0)))
        return None

    def spent(self, state: SessionState, now_ms: int) -> Denial | None:
        limits = state.limits
        if self.max_calls is not None:
            limit = limits.get("max_calls", self.max_calls) if limits else self.max_calls
            if state.calls >= limit:
                return ended("budget.max_calls", "Tool call limit", str(limit), state.calls)
        if self.max_cost_usd is not None:
            micro = self.cost_limit(state)
            if micro is not None and state.cost >= micro - micro_dollars(self.final_answer_reserve_usd):
                return ended("budget.max_cost_usd", "Cost limit", usd(micro), usd(state.cost))
            blown = blown_by(state) if self.on_unpriced == "deny" else None
            if micro is not None and blown is not None:
                return _unpriced(usd(micro), *blown)
        if self.max_tokens is not None:
            limit = limits.get("max_tokens", self.max_tokens) if limits else self.max_tokens
            if state.tokens >= limit:
                return ended("budget.max_tokens", "Token limit", str(limit), state.tokens)
        if self.max_elapsed is not None and state.started_ms >= 0:
            limit = round(self.max_elapsed * 1000)
            if limits:
                limit = limits.get("max_elapsed", limit)
            if now_ms - state.started_ms >= limit:
                return ended("budget.max_elapsed", "Time limit", f"{limit / 1000:g} s", state.elapsed_ms / 1000)
        return None

    def turn_spent(self, state: SessionState, now_ms: int) -> Denial | None:
        return None if self.max_turns is None else self._turns(state)

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
        untold: bool,  # noqa: FBT001
    ) -> dict[str, int]:
        """
        New values of counters once a response of *model* was charged; a *cost* of None: nobody knows its price, or (*model*
        is None) nobody asked for it. *untold*: it did not say what it used.
        """
        if cost is not None or model is None or not self.closes or blown_by(state) is not None:
            return {}
        return blow(model, untold=untold) if tokens or untold else {}

    def _turns(self, state: SessionState) -> Denial | None:
        limit = state.limit("max_turns", self.max_turns)
        if limit is None or state.turns < limit:
            return None
        return ended("budget.max_turns", "Tool call limit", str(limit), state.turns)

    def _too_dear(self, name: str, estimate: str, left: str) -> Denial:
        return Denial(
            code=f"budget.{name}",
            status="limit_reached",
            message=f"This call is estimated at {estimate}, {left} is left.",
            hint="Use a cheaper tool, or write the final answer from what you have.",
            values={"estimate": estimate, "left": left},
        )

    def cost_limit(self, state: SessionState) -> int | None:
        """
        The session's cost limit in micro-dollars.
        """
        own = None if self.max_cost_usd is None else micro_dollars(self.max_cost_usd)
        return state.limit("max_cost", own)

    def calls_left(self, state: SessionState) -> int | None:
        """
        Calls that may still be admitted; None: no limit.
        """
        limit = state.limits.get("max_calls", self.max_calls) if state.limits else self.max_calls
        if limit is None:
            return None
        return limit - state.calls - (state.reserved_by_children("max_calls") if state.reserved else 0)

    def turns_left(self, state: SessionState) -> int | None:
        """
        Turns that may still have calls; None: no limit.
        """
        limit = state.limit("max_turns", self.max_turns)
        return None if limit is None else limit - state.turns - state.reserved_by_children("max_turns")

    def cost_left(self, state: SessionState) -> int | None:
        """
        Micro-dollars that may still be reserved for calls; None: no limit.
        """
        limit = self.cost_limit(state)
        if limit is None:
            return None
        held = state.held_cost + state.reserved_by_children("max_cost") + micro_dollars(self.final_answer_reserve_usd)
        return limit - state.cost - held

    def tokens_left(self, state: SessionState) -> int | None:
        """
        Tokens that may still be reserved; None: no limit.
        """
        limit = state.limit("max_tokens", self.max_tokens)
        if limit is None:
            return None
        return limit - state.tokens - state.held_tokens - state.reserved_by_children("max_tokens")

    def elapsed_left_ms(self, state: SessionState, now_ms: int) -> int | None:
        """
        Milliseconds that are left; None: no limit.
        """
        limit = None if self.max_elapsed is None else round(self.max_elapsed * 1000)
        if state.limits:
            limit = state.limits.get("max_elapsed", limit)
        if limit is None or state.started_ms < 0:
            return limit
        return limit - now_ms + state.started_ms

    def progress(self, state: SessionState, now_ms: int) -> dict[str, object]:
        """
        What is used, and what is left of the limits that are set; money in USD, time in seconds.
        """
        shown: dict[str, object] = {"calls_used": state.calls}
        if self.max_calls is not None:
            shown["calls_left"] = max(0, self.calls_left(state) or 0)
        if self.max_turns is not None:
            shown["turns_left"] = max(0, self.turns_left(state) or 0)
        if self.max_tokens is not None:
            shown["tokens_left"] = max(0, self.tokens_left(state) or 0)
        if self.max_cost_usd is not None:
            shown["cost_left_usd"] = max(0, self.cost_left(state) or 0) / MICRO
        if self.max_elapsed is not None:
            shown["seconds_left"] = max(0, self.elapsed_left_ms(state, now_ms) or 0) // 1000
        return shown


def check_reserve(max_cost_usd: float | None, reserve_usd: float) -> None:
    """
    Raise ValueError where *reserve_usd* leaves nothing of *max_cost_usd* for any call.
    """
    if max_cost_usd is not None and 0 < reserve_usd >= max_cost_usd:
        held, limit = usd(micro_dollars(reserve_usd)), usd(micro_dollars(max_cost_usd))
        raise ValueError(
            f"final_answer_reserve_usd ({held}) must be below max_cost_usd ({limit}): nothing is left for calls"
        )


def ended(code: str, what: str, limit: str, used: object) -> Denial:
    """
    The refusal of a call after a limit of the session is used up.
    """
    return Denial(
        code=code,
        status="limit_reached",
        message=f"{what} reached ({limit}). Stopping tool loop.",
        hint=FINISH,
        ends_session=True,
        values={"limit": limit, "used": used},
    )


def _unpriced(limit: str, model: str, untold: bool) -> Denial:  # noqa: FBT001
    return Denial(
        code="budget.unpriced",
        status="limit_reached",
        message=told(model, limit, untold=untold),
        hint=FINISH,
        ends_session=True,
        values={"limit": limit, "model": model},
    )


def usd(micro: int) -> str:
    """
    Micro-dollars as a person writes them: `$0.50`, `$0.0004`.
    """
    whole, part = divmod(abs(micro), MICRO)
    digits = f"{part:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if micro < 0 else ''}${whole}.{digits}"


def counted(amount: int, what: str) -> str:
    """
    `1 call`, `2 calls`.
    """
    return f"{amount} {what}{'' if amount == 1 else 's'}"


def _held(code: str, what: str, amount: int) -> Denial:
    return Denial(
        code=code,
        status="limit_reached",
        message=f"All {what} that are left ({amount}) are reserved for sub-agents that still run.",
        hint="Wait for their results, or write the final answer from what you have.",
        values={"held": amount},
    )
