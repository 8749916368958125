"""
Numbers and names as a person reads them.
"""

from math import sqrt
from typing import Final

from guardrails.core.values.types import MICRO


FEW = 5
"""Calls from which on a share is told in per cent."""
Z95: Final = 1.959963984540054
"""Two-sided 95 % point of the standard normal distribution."""
NONE = "\N{EN DASH}"
"""Where there is nothing to count."""


def wilson(count: tuple[float, float]) -> tuple[float, float]:
    """
    Returns the Wilson score interval of the share of a *count*, (tries, successes), of 95 % (E. B. Wilson, 1927); (0, 1) without tries.
    """
    n, s = count
    if n <= 0:
        return 0.0, 1.0
    share, square = s / n, Z95 * Z95
    centre, scale = share + square / (2 * n), 1 + square / n
    margin = Z95 * sqrt(max(0.0, share * (1 - share) / n + square / (4 * n * n)))
    return max(0.0, (centre - margin) / scale), min(1.0, (centre + margin) / scale)


def plural(n: int, one: str, many: str | None = None) -> str:
    """
    Returns 1 call, 2 calls
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def share(n: int, of: int) -> str:
    """
    Returns *n* of *of* in per cent; of fewer than `FEW` the numbers themselves, since "100 %" of one call says too
    much.
    """
    if not of:
        return NONE
    if of < FEW:
        return f"{n} of {of}"
    percent = 100 * n / of
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return f"{percent:.0f} %" if percent in {0, 100} else f"{percent:.1f} %"


def usd(micro: int) -> str:
    """
    Returns micro-dollars as dollars; four digits below one dollar.
    """
    dollars = micro / MICRO
    return f"${dollars:,.2f}" if dollars >= 1 or micro == 0 else f"${dollars:.4f}"


def duration(ms: float | None) -> str:
    """
    Returns milliseconds as 12 ms, 1.5 s or 20 min.
    """
    if ms is None:
        return NONE
    if ms < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    return f"{seconds:.3g} s" if seconds < 600 else f"{seconds / 60:,.0f} min"


def one_line(text: str) -> str:
    """
    Returns *text* on one line, with control, format and direction characters and lone surrogates as escapes, in the way of Python.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
