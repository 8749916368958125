"""
What is held comes back or is charged, to the last micro-dollar, in a session, its family and its scopes alike.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Approve, Budget, MemoryStore, Policy, Session, SessionState, Success, Tool
from guardrails.core.guards.budget import held
from guardrails.core.values.names import scope_key
from tests.conftest import FakeClock
from tests.tables import table


TOOLS = [
    Tool(name="work", cost_usd=0.03, tokens=30),
    Tool(name="pay", cost_usd=0.05, tokens=50),
    Tool(name="look"),
]
KEPT = ("calls", "cost", "tokens", "held_cost", "held_tokens")
Books = Counter[str]


def policy() -> Policy:
    guards = [Budget(max_calls=10_000, max_cost_usd=1_000, max_tokens=10**9), Approve(tools=("pay",), expires=3_600)]
    scope = [Budget(max_calls=10_000, max_cost_usd=1_000, max_tokens=10**9)]
    return Policy(guards, tools=TOOLS, scopes={"tenant": scope})


def books(store: MemoryStore, key: str) -> Books:
    def look(states: list[SessionState]) -> Books:
        made = Counter({name: getattr(states[0], name) for name in KEPT})
        made["held_cost"] += held(states[0])[0] + states[0].reserved_by_children("max_cost")
        made["held_tokens"] += held(states[0])[1] + states[0].reserved_by_children("max_tokens")
        return Counter({name: amount for name, amount in made.items() if amount})

    return store.update([key], look)


def money(usd: int, tokens: int, *, held: bool = False) -> Books:
    """
    Hundredths of a dollar, and tokens.
    """
    before = "held_" if held else ""
    return Counter({f"{before}cost": usd * 10_000, f"{before}tokens": tokens})


CALL: Books = Counter({"calls": 1})
WORK, PAY = (3, 30), (5, 50)


class Host:
    """
    Sessions of one tenant, and the books that they should have, kept by hand.
    """

    def __init__(self) -> None:
        self.clock, self.store = FakeClock(), MemoryStore()
        self.policy = policy()
        self.sessions = [self._session("a"), self._session("b")]
        self.own = [Counter[str](), Counter[str]()]
        self.tenant: Books = Counter()
        self.number = 0

    def _session(self, name: str) -> Session:
        return self.policy.session(name, store=self.store, clock=self.clock, scopes={"tenant": "t"})

    def note(self, who: int, more: Books, *, less: Books | None = None) -> None:
        for kept in (self.own[who], self.tenant):
            kept.update(more)
            kept.subtract(less or Counter())

    def arguments(self) -> dict[str, int]:
        self.number += 1
        self.clock.advance(0.5)
        return {"n": self.number}

    def agrees(self) -> None:
        for name, own in zip("ab", self.own, strict=True):
            assert books(self.store, name) == Counter({k: v for k, v in own.items() if v})
        assert taken(books(self.store, scope_key("tenant", "t"))) == taken(self.tenant)


def taken(kept: Books) -> Books:
    """
    What is charged and what is held together: a scope goes on holding what nobody settled.
    """
    made = Counter({name.removeprefix("held_"): 0 for name in kept})
    for name, amount in kept.items():
        made[name.removeprefix("held_")] += amount
    return Counter({name: amount for name, amount in made.items() if amount})


def settled(host: Host, who: int, used: tuple[int, int]) -> None:
    session = host.sessions[who]
    made = session.decide("work", host.arguments())
    host.note(who, CALL + money(*WORK, held=True))
    host.agrees()
    session.complete(made, Success("ok", cost_usd=used[0] / 100, tokens=used[1]))
    host.note(who, money(*used), less=money(*WORK, held=True))


def free(host: Host, who: int, used: tuple[int, int]) -> None:
    run = lambda *_: Success("ok", cost_usd=used[0] / 100, tokens=used[1])  # noqa: E731
    assert host.sessions[who].call("look", host.arguments(), run).ok
    host.note(who, CALL + money(*used))


def never_ran(host: Host, who: int, _: Any) -> None:
    session = host.sessions[who]
    made = session.decide("work", host.arguments())
    session.calls.release(made)


def free_one_never_ran(host: Host, who: int, _: Any) -> None:
    session = host.sessions[who]
    session.calls.release(session.decide("look", host.arguments()))


def given_up(host: Host, who: int, used: tuple[int, int]) -> None:
    session = host.sessions[who]
    made = session.decide("work", host.arguments())
    host.clock.advance(601)
    # Whatever comes next finds that it is overdue.
    free(host, who, (0, 0))
    session.complete(made, Success("late", cost_usd=used[0] / 100, tokens=used[1]))
    host.note(who, CALL + money(*WORK))


def parked(host: Host, who: int, used: tuple[int, int], *, answer: str) -> None:
    session, arguments = host.sessions[who], host.arguments()
    assert session.call("pay", arguments, lambda *_: "ran").code == "approve.pending"
    host.note(who, CALL + money(*PAY, held=True))
    host.agrees()
    waiting = session.pending()[-1]
    if answer == "yes":
        session.approve(waiting)
        host.agrees()
        run = lambda *_: Success("ok", cost_usd=used[0] / 100, tokens=used[1])  # noqa: E731
        assert session.call("pay", arguments, run).ok
        host.note(who, money(*used), less=money(*PAY, held=True))
        return
    if answer == "no":
        session.refuse(waiting)
    else:
        host.clock.advance(3_601)
        session.call("look", host.arguments(), lambda *_: "seen")
        host.note(who, CALL)
        # Its tenant hears of no answer, and goes on counting the call.
        host.own[who].subtract(CALL + money(*PAY, held=True))
        return
    host.note(who, Counter(), less=CALL + money(*PAY, held=True))


def requested(host: Host, who: int, used: tuple[int, int], *, end: str) -> None:
    session = host.sessions[who]
    asked = session.request(cost_usd=0.07, tokens=70)
    host.note(who, money(7, 70, held=True))
    host.agrees()
    if end == "released":
        asked.release()
        host.note(who, Counter(), less=money(7, 70, held=True))
        return
    if end == "late":
        host.clock.advance(601)
        session.call("look", host.arguments(), lambda *_: "seen")
        host.note(who, CALL)
        host.agrees()
    session.charge(model="m", usage={"prompt_tokens": used[1]}, cost_usd=used[0] / 100, request=asked)
    host.note(who, money(*used), less=money(7, 70, held=True))


def child_closed(host: Host, who: int, used: tuple[int, int]) -> None:
    with host.sessions[who].child(f"c{host.number}", max_calls=5, max_cost_usd=1, max_tokens=1_000) as child:
        run = lambda *_: Success("ok", cost_usd=used[0] / 100, tokens=used[1])  # noqa: E731
        assert child.call("work", host.arguments(), run).ok
    host.note(who, CALL + money(*used))


STEPS: dict[str, Callable[[Host, int, tuple[int, int]], None]] = {
    "settled": settled,
    "free": free,
    "never ran": never_ran,
    "free one never ran": free_one_never_ran,
    "given up": given_up,
    **{
        f"parked, {answer}": lambda *of, answer=answer: parked(*of, answer=answer)
        for answer in ("yes", "no", "too late")
    },
    **{f"request {end}": lambda *of, end=end: requested(*of, end=end) for end in ("charged", "released", "late")},
    "child": child_closed,
}


@table("step", STEPS)
def test_each_end_of_what_was_held_is_in_the_books_of_a_session_and_its_tenant(step: str) -> None:
    host = Host()
    for who, used in ((0, (1, 9)), (1, (11, 110)), (0, (0, 0))):
        STEPS[step](host, who, used)
        host.agrees()


@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 1), st.integers(0, 9)), max_size=12))
def test_the_books_of_a_tenant_are_those_of_its_sessions_together(story: list[tuple[str, int, int]]) -> None:
    host = Host()
    for step, who, used in story:
        STEPS[step](host, who, (used, 10 * used))
        host.agrees()
    total = sum((books(host.store, name) for name in "ab"), Counter[str]())
    assert taken(books(host.store, scope_key("tenant", "t"))) >= taken(total)
