"""
The answers of a model, counted: a share with its interval for each scene and wording.
"""

import hashlib
import json
import sys

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from guardrails.core.retries.shrinkage import Count, wilson

from .actions import Action, action_of
from .scenes import Told
from .wordings import request, wordings, words_of


Ask = Callable[[dict[str, Any]], dict[str, Any]]
"""A model: the completion for a request."""


class Cell(NamedTuple):
    """
    One wording of one scene, over all topics and seeds.
    """

    scene: str
    wanted: str
    wording: str
    words: str
    """Those of the first topic."""
    obeyed: int
    asked: int
    kinds: dict[str, int]
    topics: dict[str, int]
    """How often it was obeyed, by tool."""

    @property
    def interval(self) -> tuple[float, float]:
        """
        The 95 % interval of the share (Wilson).
        """
        return wilson(Count(self.asked, self.obeyed))

    def clear_of(self, other: "Cell") -> bool:
        """
        Whether the intervals of both have nothing in common.
        """
        (low, high), (others_low, others_high) = self.interval, other.interval
        return low > others_high or high < others_low


class Kept:
    """
    Answers of a model, kept in a file of JSON lines, so that a run that ended early goes on.
    """

    def __init__(self, ask: Ask, file: Path | None = None, *, whose: str | None = None) -> None:
        self._ask = ask
        self._whose = {} if whose is None else {"model": whose}
        self._file = file
        self._known: dict[str, Action] = {}
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                key, tool, arguments = json.loads(line)
                self._known[key] = Action(tool, arguments)

    def __call__(self, body: dict[str, Any]) -> Action:
        """
        The action of the model, which is asked unless it was asked the same before.
        """
        key = hashlib.sha256(json.dumps({**body, **self._whose}, sort_keys=True).encode()).hexdigest()[:24]
        if key not in self._known:
            self._known[key] = made = action_of(self._ask(body))
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps([key, made.tool, made.arguments]) + "\n")
        return self._known[key]


def cells(all_told: Iterator[Told] | Sequence[Told], model: Kept, seeds: int, temperature: float) -> list[Cell]:
    """
    Returns the cells of the scenes, in order; what is done is told on stderr.
    """
    made: dict[tuple[str, str], Cell] = {}
    for told in all_told:
        for wording, text in wordings(told).items():
            actions = [model(request(told, wording, seed, temperature)) for seed in range(1, seeds + 1)]
            obeyed = sum(told.scene.obeys(action, told.asked) for action in actions)
            first = Cell(told.scene.name, told.scene.wanted, wording, words_of(text), 0, 0, {}, {})
            cell = made.get((told.scene.name, wording), first)
            made[told.scene.name, wording] = cell._replace(
                obeyed=cell.obeyed + obeyed,
                asked=cell.asked + seeds,
                kinds=dict(Counter(cell.kinds) + Counter(action.kind for action in actions)),
                topics={**cell.topics, told.topic.tool: obeyed},
            )
            print(f"{told.scene.name}, {told.topic.tool}, {wording}: {obeyed}/{seeds}", file=sys.stderr, flush=True)
    return list(made.values())
