"""
Random sessions, told in passages: each is something that agents, models and hosts do.
"""

import asyncio

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, Final, Literal

from guardrails import Session, Success

from .tools import ARGUMENTS, SUCCESSES, UNDECLARED, Ending, asearch, book, counting, ending_of, registry, tool_of
from .world import Line, World


Passage = Callable[[World, Session], None]
LENGTH: Final = 22
"""Passages of one session."""
JUMPS: Final = (0.05, 0.4, 2.0, 7.0, 65.0, 700.0, 4_000.0, 700_000.0, -40.0, 4e7)
"""Seconds by which the clock goes on, or back."""


def turn(world: World, session: Session) -> None:
    """
    A model request and its response.
    """
    rng = world.rng
    with world.raising():
        session.request()
        if rng.random() < 0.5:
            session.begin_turn(rng.choice((None, None, 1, 2)))
            return
        usage = rng.choice(
            (
                None,
                {"prompt_tokens": 40, "completion_tokens": 7},
                {"prompt_tokens": rng.randrange(400), "completion_tokens": 20},
            )
        )
        cost = rng.choice((None, 0.01, "0.002", 0.15))
        model = rng.choice(("gpt-5-mini", "gpt-5-mini", "priced-large", "priced-large", "mystery"))
        priced = session.charge(model=model, usage=usage, cost_usd=cost, calls=rng.choice((None, 1)))
        world.say("priced", [priced.cost, priced.by])


def step(world: World, session: Session) -> None:
    """
    A little time, and often a turn, between two calls.
    """
    world.clock.now += world.rng.choice((0.0, 0.1, 1.5, 1.5, 20.0))
    if world.rng.random() < 0.7:
        turn(world, session)


def mixed(world: World, session: Session) -> None:
    for _ in range(world.rng.randrange(1, 6)):
        world.call(session, tool_of(world.rng), world.rng.choice(ARGUMENTS), ending_of(world.rng))
        step(world, session)


def fresh(world: World, session: Session) -> None:
    for n in range(world.rng.randrange(2, 6)):
        world.call(session, tool_of(world.rng), {"n": 100 * world.calls + n}, counting(world.calls))
        step(world, session)


def fitting(world: World, session: Session) -> None:
    """
    Commands and paths for the tools that take them.
    """
    for _ in range(world.rng.randrange(3, 7)):
        key = world.rng.choice(("command", "path"))
        tool = world.rng.choice({"command": ("bash", "exec_shell"), "path": ("write_file", "read_file")}[key])
        arguments = [each for each in ARGUMENTS if isinstance(each, dict) and key in each]
        world.call(session, tool, world.rng.choice(arguments), ending_of(world.rng))
        step(world, session)


def repeat(world: World, session: Session) -> None:
    """
    The same call with the same end, again and again: refused calls, failures, looks.
    """
    tool, arguments, ending = tool_of(world.rng), world.rng.choice(ARGUMENTS), ending_of(world.rng)
    for _ in range(world.rng.randrange(3, 9)):
        world.call(session, tool, arguments, ending)
        step(world, session)
        if world.rng.random() < 0.15:
            world.call(session, "update_row", {"n": world.calls}, SUCCESSES[2])


def poll(world: World, session: Session) -> None:
    for n in range(world.rng.randrange(3, 8)):
        tool = world.rng.choice(("job_status", "job_status", "wait_for"))
        world.call(session, tool, {"job": 1}, partial(dict, state="running" if n < 5 else "done"))
        step(world, session)


def cycle(world: World, session: Session) -> None:
    """
    Two or three calls, lap after lap, with the same results.
    """
    lap = [(tool_of(world.rng), {"n": n, "q": "lap"}, counting(n)) for n in range(world.rng.randrange(2, 4))]
    for _ in range(world.rng.randrange(3, 6)):
        for tool, arguments, ending in lap:
            world.call(session, tool, arguments, ending)
            step(world, session)


def failing(world: World, session: Session) -> None:
    """
    One error of one tool, or of several, with ever new arguments.
    """
    tools = world.rng.choice((["srv__alpha"], ["srv__alpha", "srv__beta"], ["no_such"], ["get_news"]))
    ending = ending_of(world.rng)
    if world.rng.random() < 0.7:
        known = registry()
        missing: Ending = lambda: known.execute("nothing", {})  # noqa: E731
        ending = missing if tools == ["no_such"] else _unreachable
    for n in range(world.rng.randrange(4, 9)):
        world.call(session, tools[n % len(tools)], {"n": n, "id": f"row {n}"}, ending)
        step(world, session)


def _unreachable() -> Any:
    raise PermissionError("not allowed for this account")


def reworded(world: World, session: Session) -> None:
    """
    One question in other words, or with another time, which brings the same or nothing.
    """
    words = world.rng.choice((("cheap", "hotel", "rome"), ("error", "log", "main")))
    ending = world.rng.choice((list, counting(7), lambda: "No results found."))
    tool = world.rng.choice(("list_rows", "read_page", "search_web"))
    timed = world.rng.random() < 0.4
    for n in range(world.rng.randrange(5, 12)):
        spoken = " ".join([*words, f"number{n}"])
        world.call(session, tool, {"q": "same", "timestamp": 1_700_000_000 + n} if timed else {"query": spoken}, ending)
        step(world, session)


def parallel(world: World, session: Session) -> None:
    """
    Calls of one response at once, some of them equal.
    """
    turn(world, session)
    calls = [(tool_of(world.rng), {"n": world.rng.randrange(3)}, ending_of(world.rng)) for _ in range(4)]
    # Tools in threads end in an order of their own.
    world.together(session, calls)


def nested(world: World, session: Session) -> None:
    """
    A tool that calls others, and itself, while it runs.
    """

    def outer() -> str:
        envelope = session.call("read_page", {"inner": 1}, lambda *_: "inner", id=f"inner_{world.calls}")
        again = session.call("update_row", {"outer": world.calls}, lambda *_: "again", id=f"again_{world.calls}")
        return f"{envelope.status} {again.status}"

    world.call(session, "update_row", {"outer": world.calls + 1}, outer)


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
            world.clock.now += rng.choice((0.0, 1.0, 700.0))
            if rng.random() < 0.3:
                mixed(world, session)
            for _ in range(rng.choice((0, 1, 1, 2))):
                result = rng.choice(({"late": n}, TimeoutError("slow"), Success("paid", cost_usd=0.02)))
                world.tell(session.complete(decision, result))


def jump(world: World, session: Session) -> None:
    world.clock.now += world.rng.choice(JUMPS)


def burst(world: World, session: Session) -> None:
    """
    More than a second bears: calls, requests or tokens.
    """
    kind, tool = world.rng.randrange(3), world.rng.choice(("list_rows", "srv__alpha"))
    for n in range(world.rng.randrange(8, 14)):
        if kind == 0:
            world.call(session, tool, {"page": world.calls, "n": n}, counting(world.calls))
        with world.raising():
            if kind == 1:
                session.request()
            if kind == 2:
                session.charge(model="priced-small", usage={"prompt_tokens": 900, "completion_tokens": 300})


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
        amounts = {"max_calls": 8, "max_turns": 4, "max_cost_usd": 0.5, "max_tokens": 2_000, "max_elapsed": 9_000}
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
        order = session.wrap(book, returns=returns, name=f"book_{returns}", hidden=["owner"])
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


def forget(world: World, session: Session) -> None:
    session.forget()
    mixed(world, session)


def undone(world: World, session: Session) -> None:
    """
    A fix, and the failed call once more.
    """
    ending = ending_of(world.rng)
    tool, arguments = world.rng.choice(UNDECLARED), {"n": world.calls}
    for _ in range(2):
        world.call(session, tool, arguments, ending)
        step(world, session)
        world.call(session, "write_file", {"path": "a.txt", "n": world.calls}, SUCCESSES[2])
        step(world, session)
    world.call(session, tool, arguments, counting(1))


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
    nested: 1,
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
