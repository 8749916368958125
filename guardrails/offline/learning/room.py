"""
Keeps a model file within its size: weights of their own for the tools, and profiles for the pairs, with the most
evidence.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from guardrails.core.retries.profiles import Tally
from guardrails.core.retries.scoring import TOOL

from .design import Columns


WEIGHTS: Final = 4 * 1024 * 1024
"""Bytes of a file for the weights of tools; of `model_format.MAX_BYTES`, as much again is left for all else."""
PAIRS: Final = 3 * 1024 * 1024
"""Bytes for what is told of each tool and error type."""
WEIGHT: Final = 40
"""Bytes of one weight beside the tool's name, at most: `"|not_found|1|12":-0.123456,`."""
PAIR: Final = 512
"""Bytes of evidence, correction and profile of one pair beside the tool's name, at most."""
NAMES: Final = 3
"""How often a pair names its tool."""

Item = TypeVar("Item")


def with_room(columns: Columns, terms: Sequence[tuple[str, ...]], room: int = WEIGHTS) -> Columns:
    """
    Returns *columns* without the tools whose weights in *terms* would take more than *room* bytes, so that they are
    scored like new ones. The tools with the most retries keep their weights.
    """
    from guardrails.offline.learning.numeric import np

    names, of = columns.names[TOOL], columns.levels[TOOL]
    weights = np.zeros(len(names))
    for term in terms:
        if TOOL not in term or not all(factor in columns.levels for factor in term):
            continue
        # The tool stands first, so that it is the highest digit.
        below = int(np.prod([columns.radix(factor) for factor in term[1:]], dtype=np.int64))
        codes = np.unique(columns.joined(term))
        weights += np.bincount(codes[codes >= 0] // below, minlength=len(names))
    retries = np.bincount(of[of >= 0], weights=columns.n[of >= 0], minlength=len(names))
    order = sorted(range(len(names)), key=lambda tool: (-retries[tool], tool))
    kept = _first(((tool, int(weights[tool]) * (WEIGHT + _size(names[tool]))) for tool in order), room)
    if len(kept) == len(names):
        return columns
    known = np.isin(of, kept)
    return replace(columns, levels={**columns.levels, TOOL: np.where(known, of, -1)})


def told_pairs(tallies: Mapping[tuple[str, str], Tally], room: int = PAIRS) -> dict[tuple[str, str], Tally]:
    """
    Returns those of *tallies* with the most retries and corrected calls that *room* bytes can tell of, in their order.
    """

    def evidence(key: tuple[str, str]) -> float:
        tally = tallies[key]
        return tally.plain.n + tally.repaired.n + tally.corrected.n

    order = sorted(tallies, key=lambda key: (-evidence(key), key))
    kept = set(_first(((key, PAIR + NAMES * _size(key[0])) for key in order), room))
    return {key: tally for key, tally in tallies.items() if key in kept}


def _first(items: Iterable[tuple[Item, int]], room: int) -> list[Item]:
    kept: list[Item] = []
    for item, size in items:
        # One that is large by itself keeps none of those after it out.
        if size <= room:
            room -= size
            kept.append(item)
    return kept


def _size(name: str) -> int:
    import orjson

    return len(orjson.dumps(name))
