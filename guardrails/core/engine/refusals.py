"""
The denials that no guard says: of a session that is over, of a state or a time that cannot be known.
"""

from guardrails.core.guards.base import filled
from guardrails.core.guards.limits.budget import FINISH
from guardrails.core.values.errors import StateUnreadable
from guardrails.core.values.types import Denial

from .chain import Chain


def unreachable(failed: str) -> Denial:
    """
    The refusal of a call where the *failed* part, store or clock, says nothing.
    """
    return Denial(
        code=f"{failed}.error",
        message=f"The session's {'state cannot be reached' if failed == 'store' else 'clock failed'}, so the call was not made.",
        hint="Try again later, or tell the user.",
        strike=False,
    )


def unreadable(error: StateUnreadable) -> Denial:
    """
    The refusal of a call whose kept state this version of the library cannot read.
    """
    return Denial(
        code="store.unreadable",
        message=f"The call was not made: the state of {error.whose or 'this session'} {error.reason}.",
        hint="Trying again does not help. Tell the user, who can upgrade the library or drop that state.",
        strike=False,
    )


def over(chain: Chain, exhausted: tuple[str, str]) -> Denial:
    """
    The refusal of every call once a session is *exhausted*, (code, message) of what ended it.
    """
    # The message is in the policy's words already, with the numbers of when it was kept.
    code, message = exhausted
    hint = filled(chain.messages.get(code, {}).get("hint", FINISH), {}, FINISH)
    return Denial(code=code, status="limit_reached", message=message, hint=hint, ends_session=True)
