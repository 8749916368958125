"""
The session's time by a clock that may be wrong; it never goes back.
"""

from typing import Final

from .types import NO_TIME


STEP_BACK_MS: Final = 1_000
"""A clock that is further behind was set back; less is two threads that read it before they took the lock."""
MEND_MS: Final = 3_600_000
"""A clock that was set back by more, and has caught up with the session's time at once, was wrong while it was behind."""
LEAP_MS: Final = 366 * 86_400_000
"""A clock that says so much later from one event to the next was set ahead: nobody pauses for that long."""


def read(latest_ms: int, behind_ms: int, now_ms: int) -> tuple[int, int]:
    """
    Returns the session's time when the clock says *now_ms*, and how far the clock is then behind it.

    Both *latest_ms* and *behind_ms* are the values at the latest event. The time goes on from a clock that was set.
    Standing still until the clock has caught up would make honest calls look like a rush. A leap that is believed would
    end the session for good.
    """
    if now_ms == NO_TIME:
        return latest_ms, behind_ms
    if behind_ms > MEND_MS and now_ms >= latest_ms:
        behind_ms = 0
    ahead = now_ms + behind_ms - latest_ms
    if -STEP_BACK_MS <= ahead <= LEAP_MS:
        return max(latest_ms, latest_ms + ahead), behind_ms
    return latest_ms, behind_ms - ahead
