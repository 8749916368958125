"""
A week of recorded days: real sessions under a policy, whose work is known to be honest or waste, call by call.

Monday to Friday are days as most are. Saturday is a bad one: a model is stuck, a service is down.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guardrails import Envelope, JsonLines, Policy, Session


DAY_S = 86_400
MONDAY = 1_799_020_800.0
"""2027-01-04, 00:00 UTC."""
DAYS = ("2027-01-04", "2027-01-05", "2027-01-06", "2027-01-07", "2027-01-08", "2027-01-09", "2027-01-10")
NEXT = "2027-01-11"


@dataclass(slots=True)
class Week:
    """
    What the recorded calls were, by session and number of the call: honest work, or waste.
    """

    honest: set[tuple[str, int]] = field(default_factory=set)
    waste: set[tuple[str, int]] = field(default_factory=set)


@dataclass(slots=True)
class Agent:
    """
    One session of a day, on a clock of its own.
    """

    session: Session
    now: list[float]
    week: Week
    made: int = 0
    answers: list[Envelope] = field(default_factory=list)

    def call(self, tool: str, result: Any, *, waste: bool = False, after: float = 20, **arguments: Any) -> Envelope:
        """
        One call of a turn of its own, which gives *result*, or raises it.
        """

        def execute(name: str, given: Any) -> Any:
            if isinstance(result, Exception):
                raise result
            return result

        self.now[0] += after
        self.session.begin_turn()
        (self.week.waste if waste else self.week.honest).add((self.session.id, self.made))
        self.made += 1
        self.answers.append(self.session.call(tool, arguments, execute))
        return self.answers[-1]


def order(agent: Agent, number: int) -> None:
    """
    A customer's order: the catalogue is asked for twice, which never brings anything.
    """
    agent.call("catalogue", {"items": ["tea", "cup"]}, of="all")
    agent.call("catalogue", {"items": ["tea", "cup"]}, of="all", waste=True)
    agent.call("stock", {"left": number}, item=f"tea {number}")
    agent.call("place_order", {"id": f"order {number}"}, item=f"tea {number}", customer=number)


def parcel(agent: Agent, number: int) -> None:
    """
    A parcel is followed: that it has not moved yet is no waste, since it moves later with nothing done for it.
    """
    for place in ("depot", "depot", "a van", "a van", "home"):
        agent.call("parcel_place", {"at": place}, of=f"parcel {number}", after=30)
    agent.call("note", {"saved": True}, text=f"parcel {number} is at home")


def page(agent: Agent, number: int) -> None:
    """
    A page is edited, and checked after each edit: the same check with the same result, each time of another page.
    """
    agent.call("open_page", {"text": f"draft {number}"}, path=f"p{number}.md")
    for step in range(4):
        agent.call("edit_page", {"edited": True}, path=f"p{number}.md", line=step)
        agent.call("run_checks", {"failed": 0}, after=60)


def stuck(agent: Agent, number: int) -> None:
    """
    A model asks the same and gets the same, over and over.
    """
    agent.call("stock", {"left": 2}, item=f"cup {number}")
    for _ in range(25):
        agent.call("stock", {"left": 2}, item=f"cup {number}", waste=True, after=5)


def outage(agent: Agent, number: int) -> None:
    """
    A service is down; the agent tries later, as it is told, and goes on with other work.
    """
    agent.call("stock", TimeoutError("no answer within 5 s"), item=f"pot {number}")
    agent.call("stock", TimeoutError("no answer within 5 s"), item=f"pot {number}", after=90)
    agent.call("stock", {"left": 3 + number}, item=f"pot {number}", after=120)
    agent.call("place_order", {"id": f"order of pot {number}"}, item=f"pot {number}", customer=number)


Work = Callable[[Agent, int], None]
USUAL: tuple[tuple[Work, int], ...] = ((order, 8), (parcel, 4), (page, 3))
BAD: tuple[tuple[Work, int], ...] = ((order, 4), (parcel, 2), (stuck, 6), (outage, 6))
QUIET: tuple[tuple[Work, int], ...] = ((order, 2), (page, 1))


def record(policy: Policy, folder: Path, days: tuple[str, ...] = DAYS) -> Week:
    """
    Record *days* under *policy*, each in its own file of *folder*.
    """
    week = Week()
    for number, day in enumerate(days):
        work = QUIET if number == 6 else BAD if number == 5 else USUAL
        for agent in _sessions(policy, folder / f"{day}.jsonl", day, MONDAY + number * DAY_S, work, week):
            agent.session.close()
    return week


def _sessions(
    policy: Policy, path: Path, day: str, begins: float, work: tuple[tuple[Work, int], ...], week: Week
) -> Iterator[Agent]:
    now = [begins + 9 * 3600]
    with JsonLines(path) as sink:
        for kind, times in work:
            for number in range(times):
                session = policy.session(f"{day}-{kind.__name__}-{number}", records=sink, clock=lambda: now[0])
                agent = Agent(session, now, week)
                kind(agent, number)
                yield agent
