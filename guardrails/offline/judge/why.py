"""
Tells why a denial was wrong: the news that the call brought though it was taken for a repeat, in one class for each.
"""

from typing import Final, Literal

from .evidence import Past


Why = Literal["changed", "volatile", "news", "known", "ended"]

WHY: Final[dict[Why, str]] = {
    "changed": "the latest identical call had another result",
    "volatile": "the latest identical call had the same result but for clocks, durations and ids",
    "news": "no identical call was among the last 20, and none of them had the same result",
    "known": "no identical call was among the last 20, but another one of them had the same result",
    "ended": "a guard had ended the session before, so nobody looked at the call",
}
"""
Each in words. A result whose text is not known, or only its beginning, counts as another one: volatile is what is proved.

The same result for other arguments is no harm if a look found nothing once more; it is harm if work was acknowledged.
"""


def why_wrong(past: Past, *, over: bool) -> Why:
    """
    Returns the class of the latest call of *past*, which brought something; *over*: its session had ended before.
    """
    if over:
        return "ended"
    twin = past.twin()
    if twin is not None:
        return "volatile" if past.alike(twin) else "changed"
    return "known" if any(map(past.alike, range(len(past.sigs) - 1))) else "news"
