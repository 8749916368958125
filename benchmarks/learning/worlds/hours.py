"""
A world of people: deploys and locks in business hours, maintenance by night, and requests that somebody has to grant.

Day 0 is a Thursday. A deploy takes minutes, of a length that its team knows, and some are rolled back after a while in which answers
have another form. What a person holds open is given back within minutes by day, and not before the morning if the day is over. A
token that has run out waits for whoever renews it. Maintenance comes at the same hour each night and names its end. So the
same error of the same tool passes within a minute or not before tomorrow, as the clock has it.
"""

import functools
import random

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from .base import DAY_S, Odds, SimulatedTool, Thing, World, dice


HOUR: Final = 3_600.0
OPENS: Final = 9 * HOUR
CLOSES: Final = 18 * HOUR
NIGHT: Final = (2 * HOUR, 2 * HOUR + 1_500)
"""Maintenance, in seconds of the day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficeTool(SimulatedTool):
    """
    Deploys a working day, each of about *deploy* s; how many things somebody holds, and for how long in the mean.
    """

    deploys: int = 2
    deploy: float = 150.0
    rolled_back: float = 0.3
    held: float = 0.0
    hold: float = 240.0
    held_as: str = "conflict"
    expired: float = 0.0
    renewal: float = 900.0
    nightly: bool = True
    window: float = 0.0
    """Clock seconds of a batch that starts at each full hour and makes calls time out."""


class Deploy(NamedTuple):
    """
    When it starts, when the tool is back, and until when its answers have another form.
    """

    start: float
    end: float
    mended: float


class Hours(World):
    """
    See the module's text.
    """

    name = "hours"
    tools: ClassVar = (
        OfficeTool(name="open_invoice", held=0.12),
        OfficeTool(name="approve_order", changes_state=True, held=0.2, hold=700, held_as="precondition", flaws=(("no_op", 0.02),)),
        OfficeTool(name="edit_sheet", changes_state=True, held=0.25, hold=90, flaws=(("no_op", 0.03),)),
        OfficeTool(name="crm_search", deploys=4, deploy=60, expired=0.06),
        OfficeTool(name="payroll", deploys=1, deploy=500, expired=0.1, renewal=2_400, bad=0.1),
        OfficeTool(name="ledger", window=240, hidden=0.05),
        OfficeTool(name="deploy_status", deploys=6, deploy=90, nightly=False, flaky=0.04),
        OfficeTool(name="file_share", held=0.1, hold=180, held_as="permission", gone=0.06),
        OfficeTool(name="update_crm", changes_state=True, deploys=3, deploy=120, unmet=0.08, bad=0.08),
    )  # fmt: skip

    def odds(self, tool: OfficeTool, thing: Thing, at: float, memory: None) -> Odds:
        released, renewed = thing.hidden
        clock = at % DAY_S
        if tool.nightly and NIGHT[0] <= clock < NIGHT[1]:
            return Odds((("unavailable", 1.0),), header=NIGHT[1] - clock)
        flaws: list[tuple[str, float]] = []
        for deploy in deploys(self.seed, tool, int(at // DAY_S)):
            if deploy.start <= at < deploy.end:
                return Odds((("unavailable", 0.5), ("server_error", 0.3), ("connection", 0.1)))
            if deploy.end <= at < deploy.mended:
                flaws.append(("schema", 0.6))
        if at < renewed:
            return Odds((("auth", 1.0),))
        if at < released:
            return Odds(((tool.held_as, 1.0),))
        errors = (("timeout", 0.7),) if tool.window and at % HOUR < tool.window else ()
        return Odds(errors, seconds=8.0, flaws=tuple(flaws[:1]))

    def began(self, rng: random.Random, day: int) -> float:
        """
        Four of five sessions begin in business hours.
        """
        by_day = rng.random() < 0.8
        return day * DAY_S + (OPENS + rng.random() * (CLOSES - OPENS) if by_day else rng.random() * DAY_S)

    def hidden(self, tool: OfficeTool, at: float, rng: random.Random) -> tuple[float, ...]:
        """
        Until when somebody holds it, until when the session's token does not work.
        """
        released = worked_off(at, rng.expovariate(1 / tool.hold)) if rng.random() < tool.held else 0.0
        renewed = worked_off(at, rng.expovariate(1 / tool.renewal)) if rng.random() < tool.expired else 0.0
        return (released, renewed)


def is_open(at: float) -> bool:
    """
    Whether people are at work.
    """
    return int(at // DAY_S + 3) % 7 < 5 and OPENS <= at % DAY_S < CLOSES


def worked_off(at: float, seconds: float) -> float:
    """
    When *seconds* of work, begun at *at*, are done: only business hours count.
    """
    while True:
        day = at // DAY_S * DAY_S
        if not is_open(at):
            at = day + OPENS if at < day + OPENS else day + DAY_S + OPENS
            continue
        if at + seconds <= day + CLOSES:
            return at + seconds
        seconds -= day + CLOSES - at
        at = day + CLOSES


@functools.lru_cache(maxsize=4_096)
def deploys(seed: int, tool: OfficeTool, day: int) -> tuple[Deploy, ...]:
    """
    The deploys of a day; none at a weekend.
    """
    if not is_open(day * DAY_S + OPENS):
        return ()
    rng = dice(seed, tool.name, day)
    made = []
    for _ in range(tool.deploys):
        start = day * DAY_S + OPENS + rng.random() * (CLOSES - OPENS)
        end = start + tool.deploy * rng.uniform(0.7, 1.3)
        mended = end + rng.uniform(300, 2_400) if rng.random() < tool.rolled_back else end
        made.append(Deploy(start, end, mended))
    return tuple(made)
