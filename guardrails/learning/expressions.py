"""
The expressions of the extraction: factors, codes and the numbers that stand for names.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from ..retries.context import OUTAGE, SHARED
from ..retries.factors import Factor
from ..retries.spec import FeatureSpec
from ..types import ERROR_TYPES


KINDS: Final = 64
"""A position and the kind of its call in one number: position * 64 + kind, which is 0 for a success."""
SHARE: Final = 1_024
"""The same of a tool's calls and failures in a window."""


def _mark(which: str) -> str:
    return f"mark_{which}" if which.isdigit() else f"{which}_mark"


def position(which: str) -> str:
    """
    The position in a mark: of the call `back` places before, or `next` or `again`.
    """
    return f"({_mark(which)} - {_mark(which)} % {KINDS}) / {KINDS}"


def kind(which: str) -> str:
    """
    The kind of a call in its mark, 0 for a success.
    """
    return f"{_mark(which)} % {KINDS}"


def numbered(column: str, names: Sequence[str], other: int) -> str:
    """
    The number of the name in *column*: 0 for none; of error types 1 for the first, of sources 0.
    """
    first = 1 if names is ERROR_TYPES else 0
    steps = " ".join(f"WHEN '{name}' THEN {number}" for number, name in enumerate(names, first))
    return f"CASE WHEN {column} IS NULL THEN 0 ELSE CASE {column} {steps} ELSE {other} END END"


def named(column: str, names: Sequence[str], first: int) -> str:
    """
    The name of the number in *column*, empty for none.
    """
    steps = " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(names, first))
    return f"CASE {column} {steps} ELSE '' END"


def last_edge(spec: FeatureSpec, name: str) -> int:
    """
    How many levels a counting factor tells apart beyond none; 0 where the specification has it not.
    """
    return spec.by_name[name].edges[-1] + 1 if name in spec.by_name else 0


def _within(spec: FeatureSpec, position: str) -> str:
    return f"{position} >= pos - {spec.lookback}"


def family(number: str) -> str:
    """
    The number of an error type, the same for those by which one outage shows.
    """
    shared = ", ".join(str(ERROR_TYPES.index(name) + 1) for name in sorted(OUTAGE))
    return f"CASE WHEN {number} IN ({shared}) THEN {ERROR_TYPES.index(SHARED) + 1} ELSE {number} END"


def in_time(spec: FeatureSpec, which: str) -> str:
    """
    Whether the `next` or `again` call came within the limits of a label.
    """
    signed = "sig IS NOT NULL AND " if which == "again" else ""
    gap = f"{which}_started - ended_ms"
    return (
        f"{signed}{which}_pos IS NOT NULL AND {which}_pos - pos <= {spec.max_calls}"
        f" AND coalesce({gap}, 0) BETWEEN 0 AND {spec.max_ms}"
    )


def _value(spec: FeatureSpec, name: str) -> str:
    """
    The expression of a factor; see `factors` for what each means.
    """
    if name == "attempt":
        steps = [
            f"WHEN sig IS NULL OR attempt_{back} IS NULL OR NOT ({_within(spec, f'attempt_{back}')}) THEN {back - 1}"
            for back in range(1, last_edge(spec, name) + 1)
        ]
        return f"CASE {' '.join(steps)} ELSE {len(steps)} END"
    if name == "tool_run":
        steps = [
            f"WHEN pos_{back} IS NULL OR pos_{back} <> pos - {back} THEN {back - 1}"
            for back in range(1, min(last_edge(spec, name), spec.lookback) + 1)
        ]
        return f"CASE {' '.join(steps)} ELSE {len(steps)} END"
    return {
        "fail_share": (
            f"CASE WHEN share >= {SHARE} THEN CAST({100 * SHARE} * (share % {SHARE}) AS DOUBLE)"
            f" / (share - share % {SHARE}) END"
        ),
        "elapsed": "elapsed_ms",
        "waited": "(delay - ra)",
        "between": "CASE WHEN again_worked > worked THEN 1 ELSE 0 END",
        "reach": "(delay + since)",
    }.get(name, name)


def code(spec: FeatureSpec, names: Iterable[str]) -> str:
    """
    What those of *names* that the specification has add to the packed code.
    """
    factors = [spec.by_name[name] for name in names if name in spec.by_name]
    return (
        "\n      + ".join(f"{factor.stride} * {_level(factor, _value(spec, factor.name))}" for factor in factors) or "0"
    )


def _level(factor: Factor, value: str) -> str:
    unknown = f"WHEN {value} IS NULL THEN 0 " if factor.nullable else ""
    steps = " ".join(f"WHEN {value} <= {edge} THEN {at + factor.nullable}" for at, edge in enumerate(factor.edges))
    return f"CASE {unknown}{steps} ELSE {factor.radix - 1} END"
