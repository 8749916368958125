"""
What faults that look like success do to what is learned: a retry that came to one is labelled as one that worked.

Each world is learned from its own retries three times, by labels as they are told with nothing declared, as they would be with all
declared that can be, and as they truly are; and judged each time by what truly worked.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from benchmarks.retries.dataset import Failure

from .base import dice
from .judge import LIBRARY, Data, Test
from .rows import WINDOWS, Retried
from .seen import DECLARATIONS, FAILED, SAID, seen


TRUE: Final = "true labels"
LABELS: Final = (*DECLARATIONS, TRUE)


class Labelled(NamedTuple):
    """
    What one way of labelling comes to.
    """

    wrong: float
    """Per cent of the retries that are labelled as worked."""
    too_sure: float
    """Mean probability less the share that truly worked, in points."""
    ece: float
    value: float
    """In per cent of the limit's, a success being worth something only if it is one."""


class Polluted(NamedTuple):
    """
    One world.
    """

    flaws: Mapping[str, float]
    """By class: per cent of the retries that were told to have worked."""
    labelled: Mapping[str, Labelled]


def shares_seen() -> dict[str, dict[str, float]]:
    """
    By declaration and class: the share of the forms that the envelope calls a failure.
    """
    shares = {}
    for name, declared in DECLARATIONS.items():
        found = seen(declared)
        shares[name] = {flaw: counts[FAILED] / sum(counts[said] for said in SAID[:3]) for flaw, counts in found.items()}
    return shares


def relabelled(made: Sequence[Retried], caught: Mapping[str, float]) -> list[Failure]:
    """
    The failures, a flawed retry being none that worked for the share of its class that is *caught*.
    """
    rng = dice("labels")
    return [
        one.failure._replace(worked=one.failure.worked and not (one.flaw and rng.random() < caught.get(one.flaw, 0.0)))
        for one in made
    ]


def sound(made: Sequence[Retried]) -> list[Retried]:
    """
    The same retries with their true labels and limits.
    """
    return [
        one._replace(
            failure=one.failure._replace(worked=one.sound),
            chance=one.chance._replace(told=one.chance.sound),
            after=tuple(chance._replace(told=chance.sound) for chance in one.after),
        )
        for one in made
    ]


def polluted(data: Data) -> dict[str, Polluted]:
    """
    By world. The first world has no such faults.
    """
    caught: dict[str, dict[str, float]] = shares_seen()
    caught[TRUE] = {flaw: 1.0 for shares in caught.values() for flaw in shares}
    made = {}
    for name in (name for name in data.names if name != WINDOWS):
        learned = data.training[name]
        test = Test(data.spec, sound(data.tests[name].made))
        flaws = Counter(one.flaw for one in learned if one.flaw)
        worked = sum(one.failure.worked for one in learned)
        labelled = {}
        for how in LABELS:
            given = relabelled(learned, caught[how])
            model = LIBRARY(data.spec, given)
            told = sum(one.worked for one in given)
            wrong = sum(one.worked and bool(was.flaw) for one, was in zip(given, learned, strict=True))
            sure = float(np.mean(model(test.failures)) - test.worked.mean())
            figures = test.figures(model)
            labelled[how] = Labelled(100 * wrong / told, 100 * sure, figures.ece, figures.value)
        made[name] = Polluted({flaw: 100 * count / worked for flaw, count in sorted(flaws.items())}, labelled)
    return made
