"""
Whether a result says that it is complete, or how to go on where it is not.
"""

import re

from typing import Final, Literal

from ..guards.summary import CURSORS, MORE
from ..readers.base import RecordedCall


LOOKED_AT: Final = 16_384
"""Characters at either end of a recorded result in which a signal is looked for."""
Signal = Literal["said", "absent", "dead end"]

_ANY: Final = re.compile(rf'"(?:is_complete|{"|".join((*CURSORS, *MORE))})"\s*:')
_UNFINISHED: Final = re.compile(r'"is_complete"\s*:\s*false')
_NEXT: Final = re.compile(
    rf'"(?:next_action_hint|{"|".join(CURSORS)})"\s*:\s*(?:"[^"]|[1-9])|"(?:{"|".join(MORE)})"\s*:\s*true|"_truncated|\.\.\. \[truncated: '
)


def signal_of(call: RecordedCall) -> Signal:
    """
    What the success of *call* says of its completeness: `absent` nothing, `dead end` that something is missing but not
    how to get it.

    Own records say it themselves; of other transcripts only a JSON object has a field for it.
    """
    text = call.result
    if call.is_complete:
        return "said"
    if text is None:
        return "absent" if call.is_complete is None else "said"
    ends = text if len(text) <= 2 * LOOKED_AT else text[:LOOKED_AT] + text[-LOOKED_AT:]
    if call.is_complete is False:
        return "said" if _NEXT.search(ends) else "dead end"
    if call.decision is not None or not text.startswith("{") or not _ANY.search(ends):
        return "absent"
    return "dead end" if _UNFINISHED.search(ends) and not _NEXT.search(ends) else "said"
