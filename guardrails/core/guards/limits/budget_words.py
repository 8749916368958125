"""
The words of `Budget` for each limit, and amounts as a person writes them.
"""

from typing import Final

from guardrails.core.values.types import MICRO, Denial


FINISH: Final = "Write the final answer from what you have."


def names(code: str) -> bool:
    """
    Returns whether the words for *code* name it: the words of a limit of calls are those of limits of turns too.
    """
    return code == "budget.max_turns" or code.startswith("loop.")


def finish(code: str) -> str:
    """
    Returns the next step after *code* has ended the calls.
    """
    return f"No more turns with tool calls (`{code}`). {FINISH}" if names(code) else FINISH


def ended(code: str, what: str, limit: str, used: object) -> Denial:
    """
    Returns the refusal of a call after a limit of the session, or of a loop, is used up.
    """
    return Denial(
        code=code,
        status="limit_reached",
        message=f"{what} reached ({limit}). Stopping tool loop.",
        hint=finish(code),
        ends_session=True,
        values={"limit": limit, "used": used},
    )


def too_dear(name: str, estimate: str, left: str, what: str) -> Denial:
    """
    Returns the refusal of one call, or model request, whose estimate does not fit any more.
    """
    return Denial(
        code=f"budget.{name}",
        status="limit_reached",
        message=f"This {what} is estimated at {estimate}, {left} is left.",
        hint="Use a cheaper tool, or write the final answer from what you have.",
        values={"estimate": estimate, "left": left},
    )


def outgrown(limit: int, used: int, left: int) -> Denial:
    """
    Returns the refusal after which neither a tool nor a model turn fits; in micro-dollars.
    """
    return Denial(
        code="budget.max_cost_usd",
        status="limit_reached",
        message=f"{usd(left)} of the cost limit ({usd(limit)}) is left, less than any tool or model turn costs. "
        "Stopping tool loop.",
        hint=FINISH,
        ends_session=True,
        values={"limit": usd(limit), "used": usd(used), "left": usd(left)},
    )


def unpriced(limit: str, model: str) -> Denial:
    """
    Returns the refusal after a response of *model* had no price, or did not tell its usage. The log tells what its operator can do.
    """
    return Denial(
        code="budget.unpriced",
        status="limit_reached",
        message=f"The cost limit ({limit}) cannot be held any more. Stopping tool loop.",
        hint=FINISH,
        ends_session=True,
        values={"limit": limit, "model": model},
    )


def held(code: str, what: str, amount: int, parked: int = 0) -> Denial:
    """
    Returns the refusal while the rest is reserved, an *amount* for sub-agents, or for as many calls as are *parked*,
    which wait for a person.
    """
    named = (("sub-agents that still run", amount or not parked), ("calls that wait for a person", parked))
    whose, amount = " and ".join(who for who, holds in named if holds), amount + parked
    return Denial(
        code=code,
        status="limit_reached",
        message=f"All {what} that are left ({amount}) are reserved for {whose}.",
        hint="Wait for their results, or write the final answer from what you have.",
        values={"held": amount},
    )


def usd(micro: int) -> str:
    """
    Returns micro-dollars as a person writes them: `$0.50`, `$0.0004`.
    """
    whole, part = divmod(abs(micro), MICRO)
    digits = f"{part:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if micro < 0 else ''}${whole}.{digits}"


def counted(amount: int, what: str) -> str:
    """
    Returns `1 call`, `2 calls`.
    """
    return f"{amount} {what}{'' if amount == 1 else 's'}"
