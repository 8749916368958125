"""
What simulated worlds have in common: tools, what one call meets, and how it ends.

A world is made of pure functions of the time and of what a session remembers. So the chance of any call at any time can be
asked without making it: that is the truth that models are judged by. It is clairvoyant, since it knows what is hidden and
when it will end; no model can reach it.
"""

import math
import random

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple


DAY_S: Final = 86_400.0
DAYS: Final = 60
BAD: Final = "bad"
"""Kind of arguments that are wrong, told as `validation`."""
HIDDEN: Final = "hidden"
"""Kind of arguments that are wrong, told as `server_error`."""
GONE: Final = "gone"
"""Kind of a resource that is missing for good."""
UNMET: Final = "unmet"
"""Kind of a precondition that state-changing calls of other tools may mend."""
TOLD: Final = {BAD: "validation", HIDDEN: "server_error", GONE: "not_found", UNMET: "precondition"}

Mix = tuple[tuple[str, float], ...]
FLAKY: Final[Mix] = (("timeout", 0.4), ("server_error", 0.4), ("connection", 0.2))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTool:
    """
    A tool of any world: *seconds* is what a call takes, everything else a chance.
    """

    name: str
    changes_state: bool = False
    seconds: float = 0.4
    flaky: float = 0.015
    bad: float = 0.03
    hidden: float = 0.01
    gone: float = 0.01
    unmet: float = 0.0
    flaws: Mix = ()
    """Of its successes, whatever the world is like; see `flaws`."""


class Thing(NamedTuple):
    """
    What a call is about: the *number* is its signature; *kind* says what is wrong with it, `""` if nothing is.
    """

    number: int
    kind: str = ""
    hidden: tuple[float, ...] = ()
    """What the world alone knows of it."""


class Odds(NamedTuple):
    """
    What a call would meet: the chance of each error, the rest works; of what works, the chance of each flaw.
    """

    errors: Mix = ()
    header: float | None = None
    """Seconds that a Retry-After would name."""
    seconds: float | None = None
    """How long an error takes; None: as long as a success."""
    flaws: Mix = ()


class Chance(NamedTuple):
    """
    Of a call at some time.
    """

    told: float
    """To be called a success."""
    sound: float
    """To be one."""


class Call(NamedTuple):
    """
    One call that was made; times in seconds since day 0.
    """

    tool: SimulatedTool
    signature: int
    start: float
    end: float
    error: str | None
    """What the tool told; None: it told of a success."""
    header: float | None
    flaw: str
    """What is wrong with a success, `""` if nothing is."""
    chance: Chance
    """What it had when it was made."""
    later: Callable[[float], Chance]
    """What the same call has at another time, if nothing is done before."""


class World(ABC):
    """
    A world: all that sessions of a *seed* share. What differs between sessions is in their memories.
    """

    name: ClassVar[str]
    tools: ClassVar[tuple[Any, ...]]

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed

    @abstractmethod
    def odds(self, tool: Any, thing: Thing, at: float, memory: Any) -> Odds:
        """
        What a call of *tool* about *thing* would meet at *at*, beside what is wrong with the thing and flaky faults.
        """

    def began(self, rng: random.Random, day: int) -> float:
        """
        When a session of *day* begins.
        """
        return (day + rng.random()) * DAY_S

    def hidden(self, tool: Any, at: float, rng: random.Random) -> tuple[float, ...]:
        """
        What is drawn for a new thing.
        """
        return ()

    def place(self, tool: Any, thing: Thing) -> object:
        """
        Where a session keeps its memory of a call.
        """
        return tool.name

    def learned(self, tool: Any, thing: Thing, at: float, memory: Any, error: str | None) -> Any:
        """
        The memory after a call that ended so.
        """
        return memory

    def draw(self, tool: Any, at: float, fresh: int, rng: random.Random) -> Thing:
        """
        What a new task of *tool* is about; the number *fresh* was never used before.
        """
        kinds = ((BAD, tool.bad), (HIDDEN, tool.hidden), (GONE, tool.gone), (UNMET, tool.unmet))
        return Thing(fresh, drawn(rng, kinds), self.hidden(tool, at, rng))

    def met(self, tool: SimulatedTool, thing: Thing, at: float, memory: Any) -> Odds:
        """
        All that a call would meet.
        """
        odds = self.odds(tool, thing, at, memory)
        left = 1.0 - share(odds.errors)
        if thing.kind:
            own: Mix = ((TOLD[thing.kind], left),)
        else:
            own = tuple((error, left * tool.flaky * part) for error, part in FLAKY)
        return odds._replace(errors=(*odds.errors, *own), flaws=(*odds.flaws, *tool.flaws))

    def chance(self, tool: SimulatedTool, thing: Thing, at: float, memory: Any) -> Chance:
        """
        Of a call at *at* to be called a success, and to be one.
        """
        odds = self.met(tool, thing, at, memory)
        told = max(0.0, 1.0 - share(odds.errors))
        return Chance(told, told * max(0.0, 1.0 - share(odds.flaws)))


class Live:
    """
    One session's view of a world: what calls come to, at the times at which they are made.

    For whoever decides by itself when to call; `agent.sessions` has sessions that are over.
    """

    def __init__(self, world: World, number: int, rng: random.Random | None = None) -> None:
        self.world = world
        self.rng = rng or random.Random(f"{world.seed}:{world.name}:{number}")
        self.memories: dict[object, Any] = {}
        self.last = number * 1_000_000

    def thing(self, tool: SimulatedTool, at: float) -> Thing:
        """
        A new task.
        """
        self.last += 1
        return self.world.draw(tool, at, self.last, self.rng)

    def call(self, tool: SimulatedTool, thing: Thing, at: float) -> Call:
        """
        Make a call; what the session remembers changes with it.
        """
        world, rng = self.world, self.rng
        place = world.place(tool, thing)
        memory = self.memories.get(place)
        odds = world.met(tool, thing, at, memory)
        error = drawn(rng, odds.errors) or None
        flaw = "" if error else drawn(rng, odds.flaws)
        seconds = tool.seconds * (0.5 + rng.random())
        if error and odds.seconds is not None and error not in {"validation", "rate_limit"}:
            seconds = odds.seconds
        chance = world.chance(tool, thing, at, memory)
        after = self.memories[place] = world.learned(tool, thing, at, memory, error)
        header = odds.header if error in {"rate_limit", "unavailable"} else None
        header = None if header is None else float(math.ceil(round(max(header, 0.0), 6)))

        def later(when: float) -> Chance:
            return world.chance(tool, thing, when, after)

        return Call(tool, thing.number, at, at + seconds, error, header, flaw, chance, later)


def share(mix: Mix) -> float:
    """
    What a mix adds up to.
    """
    return sum(part for _, part in mix)


def scaled(mix: Mix, factor: float) -> Mix:
    """
    The mix with all its parts times *factor*.
    """
    return tuple((name, part * factor) for name, part in mix)


def drawn(rng: random.Random, mix: Mix) -> str:
    """
    One of a mix; `""` for what is left of one.
    """
    draw = rng.random()
    for name, part in mix:
        draw -= part
        if draw < 0:
            return name
    return ""


def dice(*key: object) -> random.Random:
    """
    Draws that are the same each time for the same *key*.
    """
    return random.Random(":".join(map(str, key)))
