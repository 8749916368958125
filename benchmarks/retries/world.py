"""
The world of the simulator: what can go wrong with a tool, with all the numbers, and when each tool was down.

A call fails by the first of these that holds:

1. `auth`: the session's credentials for the tool are broken from its start, for good or until a token is refreshed.
2. `rate_limit`: a window opened by an earlier call of this session to the tool, or by this call; it ends on its own, after
   one of the tool's window lengths. The answer names the time that is left in a share of the cases (`header`).
3. an outage of the tool, shared by all sessions: up and down times are exponential.
4. what is wrong with this very call (its signature): bad arguments, told as `validation` or hidden in a `server_error`; a
   resource that is missing for good or not there yet; a precondition, which another, state-changing call may mend.
5. a flaky fault, which the next call does not share.

Outages and flaky faults have the same error types, so that no error type says by itself whether to wait.
"""

import bisect
import random

from dataclasses import dataclass
from typing import Final


DAY_S: Final = 86_400.0
DAYS: Final = 60
REPAIR: Final = 0.8
"""The chance that one state-changing call mends a precondition."""

Mix = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTool:
    """
    One tool: times in seconds, everything else a probability; a mix adds up to one.
    """

    name: str
    changes_state: bool = False
    duration: float = 0.4
    up: float = 40_000.0
    down: float = 120.0
    outage_errors: Mix = (("unavailable", 0.6), ("server_error", 0.2), ("timeout", 0.2))
    flaky: float = 0.01
    flaky_errors: Mix = (("timeout", 0.5), ("server_error", 0.3), ("connection", 0.2))
    window: float = 0.01
    window_lengths: tuple[tuple[float, float], ...] = ((10.0, 0.5), (60.0, 0.5))
    header: float = 0.5
    auth: float = 0.0
    auth_for_good: float = 0.7
    refresh: float = 60.0
    bad: float = 0.05
    bad_hidden: float = 0.0
    missing: float = 0.0
    missing_for_good: float = 0.8
    appears: float = 20.0
    precondition: float = 0.0


TOOLS: Final = (
    SimulatedTool(name="search_hotels", down=25, up=6_000, flaky=0.03, window=0.02, window_lengths=((1, 0.5), (5, 0.5)), header=1.0),
    SimulatedTool(name="search_flights", down=90, up=9_000, flaky=0.06, window=0.03, window_lengths=((30, 0.7), (120, 0.3)), header=0.6),
    SimulatedTool(name="book_hotel", changes_state=True, duration=1.5, down=240, up=12_000, bad=0.18, bad_hidden=0.3, precondition=0.08),
    SimulatedTool(name="book_flight", changes_state=True, duration=2.0, down=600, up=15_000, bad=0.14, bad_hidden=0.8, precondition=0.1, auth=0.04),
    SimulatedTool(name="get_weather", down=60, up=8_000, flaky=0.12, bad=0.01, window=0.005, window_lengths=((5, 1.0),), header=0.0),
    SimulatedTool(name="currency_rates", down=1_200, up=30_000, flaky=0.01, bad=0.03, bad_hidden=1.0, window=0.04, window_lengths=((60, 1.0),), header=0.2),
    SimulatedTool(name="read_document", flaky=0.005, bad=0.02, missing=0.2, missing_for_good=0.95, down=40, up=50_000, window=0.002),
    SimulatedTool(name="object_store", flaky=0.02, bad=0.01, missing=0.12, missing_for_good=0.2, appears=12, down=120, up=20_000),
    SimulatedTool(name="calendar", auth=0.12, auth_for_good=0.3, refresh=40, precondition=0.05, bad=0.06, down=45, up=10_000),
    SimulatedTool(name="send_mail", changes_state=True, auth=0.08, auth_for_good=0.9, bad=0.05, window=0.05, window_lengths=((10, 0.3), (300, 0.7)), header=0.1),
    SimulatedTool(name="run_query", duration=3.0, flaky=0.04, flaky_errors=(("timeout", 0.9), ("connection", 0.1)), bad=0.2, bad_hidden=0.15, precondition=0.06, down=180, up=14_000),
    SimulatedTool(name="edit_record", changes_state=True, bad=0.08, precondition=0.25, missing=0.05, missing_for_good=0.6, appears=60, down=300, up=25_000),
)  # fmt: skip
BY_NAME: Final = {tool.name: tool for tool in TOOLS}

GOOD, BAD, HIDDEN, GONE, NOT_YET, UNMET = range(6)
KINDS: Final = (None, "validation", "server_error", "not_found", "not_found", "precondition")
"""What is right or wrong with a signature, and what each is told as."""


def signature_prior(tool: SimulatedTool) -> tuple[float, ...]:
    """
    The chance of each of the six kinds, for a signature that was not called before.
    """
    bad, missing = tool.bad, tool.missing
    hidden = bad * tool.bad_hidden
    gone = missing * tool.missing_for_good
    return (1 - bad - missing - tool.precondition, bad - hidden, hidden, gone, missing - gone, tool.precondition)


@dataclass(frozen=True, slots=True)
class Outages:
    """
    When a tool was down: *starts* and *ends* in seconds, in order.
    """

    starts: tuple[float, ...]
    ends: tuple[float, ...]

    def down(self, at: float) -> bool:
        index = bisect.bisect_right(self.starts, at) - 1
        return index >= 0 and at < self.ends[index]


def outages(tool: SimulatedTool, seed: int, days: int = DAYS) -> Outages:
    """
    The outages of *tool*, the same for all sessions of a *seed*; two days longer than asked, for sessions that run over.
    """
    rng = random.Random(f"{seed}:{tool.name}")
    starts, ends = [], []
    at = rng.expovariate(1 / tool.up)
    while at < (days + 2) * DAY_S:
        starts.append(at)
        at += rng.expovariate(1 / tool.down)
        ends.append(at)
        at += rng.expovariate(1 / tool.up)
    return Outages(tuple(starts), tuple(ends))
