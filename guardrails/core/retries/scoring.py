"""
The probability that a retry works: a logistic regression whose terms are looked up by name.
"""

import math

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple


SEPARATOR: Final = "|"
"""Between the levels of a term; only the tool, which stands first, may hold it itself."""
EXPLORE: Final = "explore"
"""The source that is scored: a retry for no reason that could also tell how it ends."""
POLICY: Final = "policy"
"""The source of a retry that was advised."""
TOOL: Final = "tool"
ERROR: Final = "error"
SOURCE: Final = "source"


class Term(NamedTuple):
    """
    A product of factors: one weight, in log odds, for each combination of their levels that was seen.
    """

    on: tuple[str, ...]
    """Names of factors, `tool` first if it is one of them."""
    weights: Mapping[str, float]
    """By the levels joined with `|`, in the order of *on*; what is not there weighs nothing."""


def key_of(on: tuple[str, ...], levels: Mapping[str, str]) -> str | None:
    """
    Returns the key of a term's weight. Returns None if one of its factors has no level (the tool of a shipped prior,
    say).
    """
    parts = [levels.get(name) for name in on]
    return None if None in parts else SEPARATOR.join(parts)  # type: ignore[arg-type]


def probability(logit: float) -> float:
    """
    Returns the logistic function, without overflow.
    """
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    odds = math.exp(logit)
    return odds / (1 + odds)


class Scorer:
    """
    *terms* and their *intercept*, the terms split by what is known when: the *acting* factors are chosen last.
    """

    __slots__ = ("_acting", "_context", "intercept")

    def __init__(self, intercept: float, terms: Iterable[Term], acting: frozenset[str]) -> None:
        self.intercept = intercept
        self._context = [term for term in terms if not acting.intersection(term.on)]
        self._acting = [term for term in terms if acting.intersection(term.on)]

    def context(self, levels: Mapping[str, str]) -> float:
        """
        Returns the part of the logit, intercept included, that no action changes.
        """
        return self.intercept + _sum(self._context, levels)

    def action(self, levels: Mapping[str, str]) -> float:
        """
        Returns the part of the logit that the action decides; *levels* are those of context and action.
        """
        return _sum(self._acting, levels)

    def logit(self, levels: Mapping[str, str]) -> float:
        """
        Returns the log odds of success.
        """
        return self.context(levels) + self.action(levels)


def _sum(terms: Iterable[Term], levels: Mapping[str, str]) -> float:
    total = 0.0
    for on, weights in terms:
        key = key_of(on, levels)
        if key is not None:
            total += weights.get(key, 0.0)
    return total
