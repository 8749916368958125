"""
A retry model: a value that is made once, read by any number of threads, and replaced as a whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from .scoring import ERROR, EXPLORE, SOURCE, TOOL, Scorer, Term, probability
from .shrinkage import Corrections
from .spec import FeatureSpec


NAME_LENGTH: Final = 12
"""Hexadecimal digits of the hash that name a model in records."""


class Declared(NamedTuple):
    """
    The weight of a tool's declared `retryable` before its own failures say otherwise.

    It moves the log odds by *yes* or *no*, in the share strength / (strength + retries seen of this tool and error).
    """

    yes: float
    no: float
    strength: float

    def shift(self, declared: bool | None, seen: float) -> float:
        """
        Returns the amount to add to the log odds after *seen* retries.
        """
        if declared is None:
            return 0.0
        return (self.yes if declared else self.no) * self.strength / (self.strength + seen)


class Golden(NamedTuple):
    """
    Inputs with the probability that the trainer computed: a loader that finds another one cannot read the model.
    """

    tool: str
    error: str
    context: int
    action: int
    p: float


@dataclass(frozen=True)
class RetryModel:
    """
    A valid model. `parse` reads one, `body_of` writes one.
    """

    spec: FeatureSpec
    intercept: float
    terms: tuple[Term, ...]
    declared: Declared
    evidence: Mapping[tuple[str, str], float]
    """Labelled retries by (tool, error type); decayed."""
    corrections: Corrections
    sha256: str
    body: Mapping[str, Any] = field(repr=False)
    """All that the file says."""
    deciders: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """Its decisions at certain stakes; see `decision.decider_of`."""

    @property
    def name(self) -> str:
        """
        The name of the model in records.
        """
        return self.sha256[:NAME_LENGTH]

    @cached_property
    def scorer(self) -> Scorer:
        """
        The look-up of the weights.
        """
        return Scorer(self.intercept, self.terms, frozenset(factor.name for factor in self.spec.action))

    def levels(self, tool: str | None, error: str, context: int, source: str = EXPLORE) -> dict[str, str]:
        """
        Returns the level of each factor that is known when a call has failed, as the terms name it.
        """
        return levels_of(self.spec, tool, error, context, source)

    def probability(self, tool: str, error: str, context: int, action: int, source: str = EXPLORE) -> float:
        """
        Returns how likely the same call works after *action*, declarations left out.
        """
        levels = self.levels(tool, error, context, source)
        levels.update(action_levels(self.spec, action))
        return probability(self.scorer.logit(levels))

    def correction(self, tool: str, error: str, context: int | None = None) -> float | None:
        """
        Returns how likely a call with other arguments works after *error* in *context*. Returns None if nothing is
        known of it.
        """
        run = self.spec.by_name.get("err_run")
        level = None if run is None or context is None else context // run.stride % run.radix
        return self.corrections.rate(tool, error, level)


def levels_of(spec: FeatureSpec, tool: str | None, error: str, context: int, source: str) -> dict[str, str]:
    """
    Returns the level of each factor but the action's; a *tool* of None stands for a tool without weights of its own.
    """
    levels = {ERROR: error, SOURCE: source}
    if tool is not None:
        levels[TOOL] = tool
    for factor in spec.context:
        levels[factor.name] = str(context // factor.stride % factor.radix)
    return levels


def action_levels(spec: FeatureSpec, action: int) -> dict[str, str]:
    """
    Returns the level of each factor of an action code.
    """
    return {factor.name: str(action // factor.stride % factor.radix) for factor in spec.action}
