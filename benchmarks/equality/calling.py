"""
What models do with tools, in passages: fresh calls, repeats, polls, laps, failures in a row, one question in other words.
"""

from functools import partial
from typing import Any

from guardrails import Session

from .tools import ARGUMENTS, SUCCESSES, UNDECLARED, Ending, counting, ending_of, registry, tool_of
from .world import World


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
