"""
Random sessions, told in passages: each is something that agents, models and hosts do.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from guardrails import Session

from .calling import cycle, failing, fitting, fresh, mixed, poll, repeat, reworded, undone
from .hosting import (
    adapted,
    burst,
    child,
    extend,
    fault,
    forget,
    go_on,
    hanging,
    jump,
    look,
    nested,
    parallel,
    sibling,
    stopped,
    wrapped,
)
from .world import Line, World


Passage = Callable[[World, Session], None]
LENGTH: Final = 22
"""Passages of one session."""


PASSAGES: Final[Mapping[Passage, int]] = {
    mixed: 7,
    fresh: 4,
    fitting: 4,
    repeat: 6,
    poll: 3,
    cycle: 3,
    failing: 4,
    reworded: 4,
    parallel: 3,
    nested: 3,
    adapted: 4,
    jump: 4,
    burst: 3,
    extend: 5,
    look: 2,
    child: 3,
    sibling: 3,
    wrapped: 2,
    hanging: 1,
    stopped: 1,
    fault: 1,
    forget: 1,
    undone: 2,
}
"""How often each is told."""


def told(number: int, seed: int) -> list[Line]:
    """
    The lines of the random session *number*; its files are in the working folder.
    """
    # A text, as the numbers that it draws are the same in every version of Python.
    rng = Random(f"{seed} {number}")
    world = World(number, rng)
    session = world.session("main", "u1")
    for passage in rng.choices(list(PASSAGES), list(PASSAGES.values()), k=LENGTH):
        world.say("passage", passage.__name__)
        with world.raising():
            passage(world, session)
        if rng.random() < 0.7:
            go_on(world, session)
    look(world, session)
    session.close()
    return world.end()
