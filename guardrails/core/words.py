"""
The words that the engine and guards share: of limits, of a call that is open, and amounts as a person writes them.
"""

from typing import Final

from guardrails.core.values.types import MICRO, Denial


IN_FLIGHT: Final = "call.in_flight"
FINISH: Final = "Write the final answer from what you have."


def names_turns(code: str) -> bool:
    """
    Returns whether *code* is of a limit of turns, so that calls of the present one still ran.
    """
    return code.endswith("budget.max_turns") or code.startswith("loop.")


def finish(code: str) -> str:
    """
    Returns the next step once the limit *code* is used up.
    """
    return f"No more turns with tool calls (`{code}`). {FINISH}" if names_turns(code) else FINISH


def ended(code: str, what: str, limit: str, used: object) -> Denial:
    """
    Returns the end of a session whose limit *what* is used up.
    """
    return Denial(
        code=code,
        status="limit_reached",
        message=f"{what} reached ({limit}). Stopping tool loop.",
        hint=finish(code),
        ends_session=True,
        values={"limit": limit, "used": used},
    )


def usd(micro: int) -> str:
    """
    Returns micro-dollars as a person writes them: `$0.50`.
    """
    whole, part = divmod(abs(micro), MICRO)
    digits = f"{part:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if micro < 0 else ''}${whole}.{digits}"


def counted(amount: int, what: str) -> str:
    return f"{amount} {what}{'' if amount == 1 else 's'}"


def in_flight(tool: str) -> Denial:
    """
    Returns the refusal of a call while the same call is open.
    """
    return Denial(
        code=IN_FLIGHT,
        status="duplicate_call_blocked",
        message=f"This exact {tool} call was begun before and has not ended, as far as is known. It was not made again.",
        hint="Wait for its result. If none comes, it may have happened: check before you make it again.",
        running=True,
    )
