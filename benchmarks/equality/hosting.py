"""
What hosts do with sessions, in passages: calls at once, by adapters, of sub-agents and siblings; limits, faults, questions.
"""

import asyncio

from typing import Any, Final, Literal

from guardrails import Session, Success

from .calling import fresh, mixed, repeat, turn
from .tools import ARGUMENTS, asearch, book, counting, ending_of, tool_of
from .world import World


JUMPS: Final = (0.05, 0.4, 2.0, 7.0, 65.0, 700.0, 4_000.0, 700_000.0, -40.0, 4e7)
"""Seconds by which the clock goes on, or back."""


def parallel(world: World, session: Session) -> None:
    """
    Calls of one response at once, some of them equal.
    """
    turn(world, session)
    calls = [(tool_of(world.rng), {"n": world.rng.randrange(3)}, ending_of(world.rng)) for _ in range(4)]
    world.together(session, calls)


def nested(world: World, session: Session) -> None:
    """
    A tool that calls others, and itself, while it runs; some run until their admission expires.
    """
    tool, given = world.rng.choice(("update_row", "pay")), f"outer_{world.calls}"
    arguments, taken = {"outer": given}, world.rng.choice((0.0, 60.5, 61.0, 600.0))

    def outer() -> str:
        world.clock.now += taken
        envelope = session.call("read_page", {"inner": 1}, lambda *_: "inner", id=f"inner_{world.calls}")
        again = session.call(tool, arguments, lambda *_: "again", id=f"again_{world.calls}")
        return f"{envelope.status} {again.status}"

    if world.rng.random() < 0.5:
        with world.raising():
            session.decide(tool, arguments, id=given)
        world.clock.now += 0.5
    world.call(session, tool, arguments, outer, id=given)


def adapted(world: World, session: Session) -> None:
    """
    Decided here, run elsewhere: asked twice, run by another way, completed twice, too late, or never.
    """
    rng = world.rng
    for n in range(rng.randrange(1, 4)):
        tool, arguments = tool_of(rng), rng.choice(ARGUMENTS) if rng.random() < 0.5 else {"n": n}
        given = f"open_{world.calls}_{n}"
        with world.raising():
            decision = session.decide(tool, arguments, id=given)
            envelope = decision.envelope
            world.say("decision", [tool, decision.allowed, decision.code, envelope and envelope.to_json()])
            if rng.random() < 0.3:
                again = session.decide(tool, arguments, id=given)
                world.say("decision", [tool, again.allowed, again.code, again.seq])
            if rng.random() < 0.3:
                world.call(session, tool, arguments, counting(n), id=rng.choice((given, "another")))
            world.clock.now += rng.choice((0.0, 1.0, 60.0, 600.0, 700.0))
            if rng.random() < 0.3:
                mixed(world, session)
            for _ in range(rng.choice((0, 1, 1, 2))):
                result = rng.choice(({"late": n}, TimeoutError("slow"), Success("paid", cost_usd=0.02)))
                world.tell(session.complete(decision, result))


def burst(world: World, session: Session) -> None:
    """
    More than a second bears: calls, requests or tokens.
    """
    kind, tool = world.rng.choice((0, 1, 2, 2)), world.rng.choice(("list_rows", "srv__alpha"))
    for n in range(world.rng.randrange(8, 14)):
        if kind == 0:
            world.call(session, tool, {"page": world.calls, "n": n}, counting(world.calls))
        with world.raising():
            if kind == 1:
                session.request()
            if kind == 2:
                session.charge(model="priced-small", usage={"prompt_tokens": 900, "completion_tokens": 300})


def child(world: World, session: Session) -> None:
    """
    A sub-agent, which may be closed while calls of it are open, and called afterwards.
    """
    rng = world.rng
    amounts = rng.choice(({}, {"max_calls": 3}, {"max_calls": 2, "max_cost_usd": 0.1}, {"max_turns": 2}))
    with world.raising(), session.child(f"kid_{world.calls}", **amounts) as kid:
        world.names[kid.id] = None
        for _ in range(rng.randrange(1, 3)):
            rng.choice((mixed, fresh, repeat, extend, adapted, look))(world, kid)
        if rng.random() < 0.3:
            with kid.child("grandkid") as grandkid:
                world.names[grandkid.id] = None
                mixed(world, grandkid)
        decision = kid.decide("update_row", {"open": 1}, id="left_open")
        early = rng.random() < 0.5
        if early:
            kid.close()
            world.call(kid, "read_page", {"n": 1}, counting(1))
        world.tell(kid.complete(decision, "done"))
        mixed(world, session)


def sibling(world: World, session: Session) -> None:
    """
    Another session of the same user or tenant, or this one by another object.
    """
    other = world.session(*world.rng.choice((("sibling", "u1"), ("stranger", "u2"), ("main", "u1"))))
    world.rng.choice((mixed, fresh, burst, repeat))(world, other)


def wrapped(world: World, session: Session) -> None:
    """
    Functions as tools: JSON, envelope or value, sync or async, with a parameter that no model sees.
    """
    forms: tuple[Literal["json", "envelope", "value"], ...] = ("json", "envelope", "value")
    returns = world.rng.choice(forms)
    booked: dict[str, Any] = {"hotel": "h_1", "nights": world.rng.choice((1, 3, 9))}
    with world.raising():
        order: Any = session.wrap(book, returns=returns, name=f"book_{returns}", hidden=["owner"])
        for _ in range(3):
            with world.raising():
                said = order(**booked, owner="ada") if world.rng.random() < 0.8 else order(nights="many")
                world.say("returned", said.to_json() if returns == "envelope" else f"{said}")
    with world.raising():
        search = session.wrap(asearch, returns="json", name="asearch")
        for page in (1, 2, 4):
            world.say("returned", asyncio.run(search("hotels", page=page)))


def hanging(world: World, session: Session) -> None:
    world.hang(session)


def stopped(world: World, session: Session) -> None:
    """
    A call that is cancelled from outside.
    """

    def ending() -> Any:
        raise asyncio.CancelledError if world.awaits else KeyboardInterrupt

    world.call(session, "update_row", {"n": world.calls}, ending)


def extend(world: World, session: Session) -> None:
    rng = world.rng
    amount = rng.choice(
        ({"max_calls": 6}, {"max_turns": 3}, {"max_cost_usd": 0.4}, {"max_elapsed": 900}, {"max_tokens": 900}, {})
    )
    with world.raising():
        if world.policy.scopes and rng.random() < 0.3:
            session.extend(scope=rng.choice(("user", "tenant")), **amount)
        else:
            session.extend(**amount)
    look(world, session)


def go_on(world: World, session: Session) -> None:
    """
    More of the limit that ended the session, so that there is something to tell.
    """
    with world.raising():
        code = session.exhausted_by or ""
        scope = next((name for name in world.policy.scopes if code.startswith(f"{name}.")), None)
        limit = code.rpartition(".")[2]
        amounts: dict[str, Any] = {
            "max_calls": 8,
            "max_turns": 4,
            "max_cost_usd": 0.5,
            "max_tokens": 2_000,
            "max_elapsed": 9_000,
        }
        if code:
            session.extend(scope=scope, **{limit: amounts[limit]} if limit in amounts else {})


def look(world: World, session: Session) -> None:
    """
    What a host asks of a session.
    """
    with world.raising():
        world.say("progress", [session.exhausted_by, session.limit_message, session.progress])
        choice = session.tool_choice(world.rng.choice((None, "auto", "required")))
        world.say("look", [session.exhausted, session.cost_usd, session.unpriced, choice])
        world.say("digest", session.digest())


def forget(world: World, session: Session) -> None:
    session.forget()
    mixed(world, session)


def jump(world: World, session: Session) -> None:
    world.clock.now += world.rng.choice(JUMPS)


def fault(world: World, session: Session) -> None:
    """
    A store or a clock that fails for a few calls.
    """
    which = world.rng.random() < 0.5
    world.store.down, world.clock.broken = which, not which
    world.call(session, "update_row", {"n": world.calls}, counting(3))
    turn(world, session)
    look(world, session)
    world.store.down = world.clock.broken = False
