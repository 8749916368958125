"""
Numbers as the page writes them.
"""

from guardrails.core.values.types import MICRO


FEW = 5
"""Calls from which on a share is told in per cent."""
NONE = "\N{EN DASH}"
"""Where there is nothing to count."""


def count(n: int) -> str:
    """
    Returns 1,234
    """
    return f"{n:,}"


def change(n: float, digits: int = 0) -> str:
    """
    Returns a difference with its sign: +12, -3 (with a minus sign), ±0.
    """
    text = f"{abs(n):,.{digits}f}"
    sign = "±" if not any(c in "123456789" for c in text) else "+" if n > 0 else "\N{MINUS SIGN}"
    return f"{sign}{text}"


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


def of(n: int, whole: int) -> str:
    """
    Returns 12 of 30
    """
    return f"{n:,} of {whole:,}" if whole else NONE


def per_1000(n: int, calls: int) -> str:
    """
    Returns *n* to 1,000 *calls*.
    """
    return f"{1000 * n / calls:,.2f}" if calls else NONE


def usd(micro: int) -> str:
    """
    Returns micro-dollars as dollars; four digits below one dollar.
    """
    dollars = micro / MICRO
    return f"${dollars:,.2f}" if dollars >= 1 or micro == 0 else f"${dollars:.4f}"
