"""
The denials that no guard says: of a session that is over, of a state that cannot be reached.
"""

from typing import Final

from .chain import Chain
from .guards.base import filled
from .guards.budget import FINISH
from .types import Denial


UNREACHABLE: Final = Denial(
    code="store.error",
    message="The session's state cannot be reached, so the call was not made.",
    hint="Try again later, or tell the user.",
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
