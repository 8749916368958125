"""
The expressions of the extraction: factors, codes and the numbers that stand for names.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from guardrails.core.retries.context import OUTAGE, SHARED
from guardrails.core.retries.factors import Factor
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.types import ERROR_TYPES


PLACE: Final = 1_024
"""
A mark is a call in one number: its tool * 2^39 + its position in the session * 1024 + 256 if it worked and may have changed
something + 64 * who caused it (2 bits) + its kind (6 bits), which is 0 for a success. By their marks the calls
of a session stand tool by tool. There is room for 2^24 tools, and for 2^29 calls of a session.
"""
TOOL_BITS: Final = 39
PLACES: Final = 2**TOOL_BITS - 1
CHANGED: Final = 256
CAUSED: Final = 64
SHARE: Final = 1_024
"""A tool's calls and failures in a window as one number: calls * 1024 + failures."""
DAY: Final = 2**39
"""
What is known of a failure in one number, 0 for a success: (32 * (day + 2) + fold + 1) * 2^39 + the levels of its context, as
far as they are known, * 2^8 + 2 * the tool's calls in the window before it (at most 20) + 1 where it begins a run.
"""
LEVELS: Final = 256
HALF: Final = 2**22
"""A time in two halves: each goes into one number with the place of its call, so that the latest place brings its time."""
CODES: Final = 2**31 - 1


def in_order(mark: str) -> str:
    """
    Returns the expression that orders marks of several tools: the position, and below it the rest.
    """
    return f"({mark} & {PLACES})"


def place(mark: str) -> str:
    """
    Its tool and its position: between calls of one tool as far as their positions are, between others farther than any window.
    """
    return f"({mark} >> 10)"


def kind(mark: str) -> str:
    """
    Returns the kind of the call in its mark, 0 for a success.
    """
    return f"({mark} & 63)"


def looking_back(spec: FeatureSpec) -> str:
    """
    Returns the frame of the calls in the window and the call itself, if marks are the order.
    """
    # Marks of one position differ by less than half the distance of two positions, those of two tools by more than any window.
    return f"RANGE BETWEEN {spec.lookback * PLACE + PLACE // 2 - 1} PRECEDING AND CURRENT ROW"


def numbered(column: str, names: Sequence[str], other: int) -> str:
    """
    Returns the number of the name in *column*: 0 for none; of error types 1 for the first, of sources 0.
    """
    first = 1 if names is ERROR_TYPES else 0
    steps = " ".join(f"WHEN '{name}' THEN {number}" for number, name in enumerate(names, first))
    return f"CASE WHEN {column} IS NULL THEN 0 ELSE CASE {column} {steps} ELSE {other} END END"


def named(column: str, names: Sequence[str], first: int) -> str:
    """
    Returns the name of the number in *column*, empty for none.
    """
    steps = " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(names, first))
    return f"CASE {column} {steps} ELSE '' END"


def run_edges(spec: FeatureSpec) -> list[int]:
    """
    Returns the edges of `tool_run` that a run in the window can exceed.
    """
    factor = spec.by_name.get("tool_run")
    return [] if factor is None else [edge for edge in factor.edges if 0 <= edge < spec.lookback]


def family(number: str) -> str:
    """
    Returns the number of an error type, the same for those by which one outage shows.
    """
    shared = ", ".join(str(ERROR_TYPES.index(name) + 1) for name in sorted(OUTAGE))
    return f"CASE WHEN {number} IN ({shared}) THEN {ERROR_TYPES.index(SHARED) + 1} ELSE {number} END"


def in_time(spec: FeatureSpec, which: str, here: str, there: str) -> str:
    """
    Returns whether the `next` or `again` call, at the position *there*, came within the limits of a label for the call
    *here*.
    """
    signed = "sig IS NOT NULL AND " if which == "again" else ""
    return (
        f"{signed}{there} IS NOT NULL AND {there} - {here} <= {spec.max_calls}"
        f" AND coalesce({which}_started - ended_ms, 0) BETWEEN 0 AND {spec.max_ms}"
    )


def _value(spec: FeatureSpec, name: str) -> str:
    """
    The expression of a factor; see `factors` for what each means.
    """
    if name == "tool_run":
        steps = [
            f"WHEN before_{edge + 1} IS NULL OR {place(f'before_{edge + 1}')} <> {place('mark')} - {edge + 1}"
            f" THEN {edge}"
            for edge in run_edges(spec)
        ]
        return f"CASE {' '.join(steps)} ELSE {spec.lookback} END" if steps else str(spec.lookback)
    return {
        "attempt": "(CASE WHEN sig IS NULL THEN 0 ELSE signed - 1 END)",
        "err_run": "(CASE WHEN run > calls THEN calls ELSE run END)",
        "fail_share": (
            f"(CASE WHEN share >= {SHARE} THEN CAST(100 * (share & {SHARE - 1}) AS DOUBLE) / (share >> 10) END)"
        ),
        "elapsed": "elapsed_ms",
        "prev": "(CASE WHEN former IS NULL THEN NULL WHEN (former & 63) > 0 THEN 1 ELSE 0 END)",
        "waited": "(delay - ra)",
        "between": "((done >> 4) & 1)",
        "reach": "(delay + since)",
    }.get(name, name)


def code(spec: FeatureSpec, names: Iterable[str]) -> str:
    """
    Returns the expression for the part of the packed code that comes from those *names* the specification has.
    """
    factors = [spec.by_name[name] for name in names if name in spec.by_name]
    return (
        "\n      + ".join(f"{factor.stride} * {_level(factor, _value(spec, factor.name))}" for factor in factors) or "0"
    )


def levels(spec: FeatureSpec, names: Iterable[str]) -> str:
    """
    Returns the same where it goes into one number with what else is known of a failure.
    """
    return f"CAST({LEVELS} AS BIGINT) * ({code(spec, names)})"


def _level(factor: Factor, value: str) -> str:
    unknown = f"WHEN {value} IS NULL THEN 0 " if factor.nullable else ""
    steps = " ".join(f"WHEN {value} <= {edge} THEN {at + factor.nullable}" for at, edge in enumerate(factor.edges))
    return f"CASE {unknown}{steps} ELSE {factor.radix - 1} END"
