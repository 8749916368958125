"""
What is held comes back or is charged, to the last micro-dollar, in a session, its family and its scopes alike.
"""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Approve, Budget, MemoryStore, Policy, SessionState, Success, Tool
from guardrails.core.guards.budget import held
from guardrails.core.values.names import scope_key
from tests.conftest import FakeClock
from tests.core.guards.calls import gives
from tests.tables import table


WHOLE = Budget(max_calls=10_000, max_cost_usd=1_000, max_tokens=10**9)
POLICY = Policy(
    [WHOLE, Approve(tools=("pay",), expires=3_600)],
    tools=[Tool(name="work", cost_usd=0.03, tokens=30), Tool(name="pay", cost_usd=0.05, tokens=50), Tool(name="look")],
    scopes={"tenant": [WHOLE]},
)
KEPT = ("calls", "cost", "tokens", "held_cost", "held_tokens")
Books = Counter[str]
Used = tuple[int, int]
"""(cents, tokens)"""
CALL: Books = Counter(calls=1)
NONE: Books = Counter()


def money(cents: int, tokens: int, *, held: bool = False) -> Books:
    mark = "held_" if held else ""
    return Counter({f"{mark}cost": cents * 10_000, f"{mark}tokens": tokens})


WORK, PAY, ASKED = money(3, 30, held=True), money(5, 50, held=True), money(7, 70, held=True)


def cost(used: Used) -> Any:
    return Success("ok", cost_usd=used[0] / 100, tokens=used[1])


def taken(kept: Books) -> Books:
    """
    What is charged and what is held together: a scope goes on holding what nobody settled.
    """
    made: Books = Counter()
    for name, amount in kept.items():
        made[name.removeprefix("held_")] += amount
    return Counter({name: amount for name, amount in made.items() if amount})


class Host:
    """
    Sessions of one tenant, and the books that they should have, kept by hand.
    """

    def __init__(self) -> None:
        self.clock, self.store, self.number = FakeClock(), MemoryStore(), 0
        kept = {"store": self.store, "clock": self.clock, "scopes": {"tenant": "t"}}
        self.sessions = [POLICY.session(name, **kept) for name in "ab"]
        self.own, self.tenant = [Counter[str](), Counter[str]()], Counter[str]()

    def books(self, key: str) -> Books:
        def look(states: list[SessionState]) -> Books:
            [state] = states
            made = Counter({name: getattr(state, name) for name in KEPT})
            for name, asked in zip(("cost", "tokens"), held(state), strict=True):
                made[f"held_{name}"] += asked + state.reserved_by_children(f"max_{name}")
            return Counter({name: amount for name, amount in made.items() if amount})

        return self.store.update([key], look)

    def note(self, who: int, more: Books, less: Books = NONE) -> None:
        for kept in (self.own[who], self.tenant):
            kept.update(more)
            kept.subtract(less)
        self.agrees()

    def agrees(self) -> None:
        for name, own in zip("ab", self.own, strict=True):
            assert self.books(name) == Counter({k: v for k, v in own.items() if v})
        assert taken(self.books(scope_key("tenant", "t"))) == taken(self.tenant)

    def arguments(self) -> dict[str, int]:
        self.number += 1
        self.clock.advance(0.5)
        return {"n": self.number}

    def looks(self, who: int, used: Used = (0, 0)) -> None:
        """
        A free call: whatever is overdue is found by it.
        """
        assert self.sessions[who].call("look", self.arguments(), gives(cost(used))).ok
        self.own[who].update(CALL + money(*used))
        self.tenant.update(CALL + money(*used))

    def calls(self, who: int, used: Used, end: str) -> None:
        session = self.sessions[who]
        if end == "free":
            self.looks(who, used)
            return
        made = session.decide("work", self.arguments())
        self.note(who, CALL + WORK)
        if end == "settled":
            session.complete(made, cost(used))
            self.note(who, money(*used), WORK)
        elif end == "never ran":
            session.calls.release(made)
            self.note(who, NONE, CALL + WORK)
        else:
            self.clock.advance(601)
            self.looks(who)
            session.complete(made, cost(used))
            self.note(who, money(3, 30), WORK)

    def parks(self, who: int, used: Used, answer: str) -> None:
        session, arguments = self.sessions[who], self.arguments()
        session.call("pay", arguments, gives("never"))
        self.note(who, CALL + PAY)
        waiting = session.pending()[-1]
        if answer == "yes":
            session.approve(waiting)
            self.agrees()
            assert session.call("pay", arguments, gives(cost(used))).ok
            self.note(who, money(*used), PAY)
        elif answer == "no":
            session.refuse(waiting)
            self.note(who, NONE, CALL + PAY)
        else:
            self.clock.advance(3_601)
            self.looks(who)
            # Its tenant hears of no answer, and goes on counting the call.
            self.own[who].subtract(CALL + PAY)

    def requests(self, who: int, used: Used, end: str) -> None:
        session = self.sessions[who]
        asked = session.request(cost_usd=0.07, tokens=70)
        self.note(who, ASKED)
        if end == "released":
            asked.release()
            self.note(who, NONE, ASKED)
            return
        if end == "late":
            self.clock.advance(601)
            self.looks(who)
            self.agrees()
        session.charge(model="m", usage={"prompt_tokens": used[1]}, cost_usd=used[0] / 100, request=asked)
        self.note(who, money(*used), ASKED)

    def has_a_child(self, who: int, used: Used, name: str) -> None:
        with self.sessions[who].child(f"{name}{self.number}", max_calls=5, max_cost_usd=1, max_tokens=1_000) as child:
            assert child.call("work", self.arguments(), gives(cost(used))).ok
        self.note(who, CALL + money(*used))


ENDS = {"calls": "settled free never_ran late", "parks": "yes no too_late", "requests": "charged released late"}
STEPS = [(what, end.replace("_", " ")) for what, ends in ENDS.items() for end in ends.split()] + [("has_a_child", "c")]


@table("step", STEPS)
def test_each_end_of_what_was_held_is_in_the_books_of_a_session_and_its_tenant(step: tuple[str, str]) -> None:
    host = Host()
    for who, used in ((0, (1, 9)), (1, (11, 110)), (0, (0, 0))):
        getattr(host, step[0])(who, used, step[1])
        host.agrees()


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1), st.integers(0, 9)), max_size=12))
def test_the_books_of_a_tenant_are_those_of_its_sessions_together(story: list[tuple[Any, int, int]]) -> None:
    host = Host()
    for (what, end), who, used in story:
        getattr(host, what)(who, (used, 10 * used), end)
        host.agrees()
    total = host.books("a") + host.books("b")
    assert taken(host.books(scope_key("tenant", "t"))) >= taken(total)
