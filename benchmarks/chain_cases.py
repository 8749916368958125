"""
Guarded calls of each kind, to be timed: each call of a case comes to what the case is named after, or the case fails.

The tool does nothing and gives back one of 23 dicts of 0.5 KB, made beforehand: more than a session remembers, so that no
result is one that came before. The clock is a counter that goes on by half a second at each look: each call is a turn of its
own, as an agent's are, and each round does the same. What counts is the processor time of the thread that calls: on a busy
machine a round of milliseconds is seldom left alone, as a yardstick of microseconds is.
"""

import itertools
import time

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple

from guardrails.session.session import Session


CALLS: Final = 50
"""In one round: few enough to end before the writer of records begins, which waits 50 ms for more."""
TOOL: Final = "search_hotels"
RESULTS: Final = [
    {
        "results": [
            {"id": f"h_{n}", "name": f"Hotel {k}-{n}", "price": 100 * k + n, "stars": 4, "free": True} for n in range(7)
        ],
        "total": 7,
    }
    for k in range(23)
]
PARAMETERS: Final = {"type": "object", "properties": {"city": {"type": "string"}, "page": {"type": "integer"}}}

Execute = Callable[[str, Any], Any]
Arguments = Callable[[int], dict[str, Any]]

WORDS: Final = "line of text {}: the quick brown fox jumps over a list of results, and there is no more to return"
"""Words of all days, such as a reader of prose would stumble over."""
KILOBYTE: Final = ["\n".join(WORDS.format(f"{k}.{n}") for n in range(11)) for k in range(97)]
SIXTEEN: Final = ["\n".join(WORDS.format(f"{k}.{n}") for n in range(165)) for k in range(23)]
ROWS: Final = [
    {
        "results": [
            {"id": f"h_{n}", "name": f"Hotel {k}-{n}", "price": 100 + n, "stars": 4, "free": True} for n in range(920)
        ]
    }
    for k in range(23)
]
_PROGRESS: Final = [{"job": "j_17", "status": "running", "percent": n} for n in range(97)]
_FAILURES: Final = [f"The supplier API did not respond within {n + 1} seconds." for n in range(300)]
"""More than `family_hash` remembers: each says something new."""

_pages = itertools.count()
_made = 0


class Expected(NamedTuple):
    """
    What each call of a case comes to, and the characters that its text for the model has at least.
    """

    status: str
    code: str | None = None
    nudged: bool | None = False
    text: int = 0


ALLOWED: Final = Expected("success", text=400)
NUDGED: Final = Expected("success", nudged=True)
STATE: Final = Expected("success", text=40)
REPEATED: Final = Expected("duplicate_call_blocked", "duplicates.evidence")
INVALID: Final = Expected("validation_error", "validation.arguments")
FAILED: Final = Expected("error", nudged=None)
"""With a hint from the fourth on."""


def clock(step: float = 0.5) -> Callable[[], float]:
    """
    Half a second later at each look, or *step* seconds, from some time in 2027 on.
    """
    return itertools.count(1.8e9, step).__next__


# A tool for each session: what another session was given is no result that came before in this one.


def searching(results: Sequence[Any] = RESULTS) -> Execute:
    given = itertools.cycle(results)

    def search(tool: str, arguments: Any) -> Any:
        return next(given)

    return search


def asearching() -> Execute:
    results = itertools.cycle(RESULTS)

    async def search(tool: str, arguments: Any) -> Any:
        return next(results)

    return search


def same(tool: str, arguments: Any) -> Any:
    return RESULTS[0]


def polling() -> Execute:
    return searching(_PROGRESS)


def failing() -> Execute:
    messages = itertools.cycle(_FAILURES)

    def fail(tool: str, arguments: Any) -> Any:
        raise TimeoutError(next(messages))

    return fail


def stumbling() -> Execute:
    search, fail, turn = searching(), failing(), itertools.count(1)

    def stumble(tool: str, arguments: Any) -> Any:
        return (search if next(turn) % 10 else fail)(tool, arguments)

    return stumble


def new(page: int) -> dict[str, Any]:
    return {"city": "Shibuya", "max_price": 150, "page": page}


def equal(page: int) -> dict[str, Any]:
    return {"city": "Shibuya", "max_price": 150}


def unfit(page: int) -> dict[str, Any]:
    return {"city": "Shibuya", "page": f"page {page}"}


def made() -> int:
    """
    Returns how many calls have been timed so far in this process.
    """
    return _made


def calls(
    sessions: Session | Sequence[Session],
    execute: Execute | None = None,
    arguments: Arguments = new,
    expected: Expected | Sequence[Expected] = ALLOWED,
    tools: Sequence[str] = (TOOL,),
) -> Callable[[], float]:
    """
    Makes `CALLS` calls with *arguments* of *execute*, a search of its own unless said, each with its text for the model; the
    seconds of processor time that they took. *sessions* and *tools*
    take turns, and each call comes to what is *expected* of it in turn.

    Raises AssertionError if one of them came to anything else.
    """
    tool, names = execute or searching(), itertools.cycle(tools)
    each_session = itertools.cycle([sessions] if isinstance(sessions, Session) else sessions)
    told = itertools.cycle([expected] if isinstance(expected, Expected) else expected)

    def run() -> float:
        waiting = list(zip(_arguments(arguments), (one.call for one in each_session), names, told, strict=False))
        met = 0
        start = time.thread_time()
        for each, call, name, (status, code, nudged, least) in waiting:
            envelope = call(name, each, tool)
            text = envelope.to_json()
            # Counted here, and not kept until later: to let go of an envelope is a part of what it costs.
            met += (
                envelope.status == status
                and envelope.code == code
                and nudged in (None, envelope.nudged)
                and len(text) >= least
            )
        took = time.thread_time() - start
        assert met == CALLS, f"{CALLS - met} of {CALLS} calls are not {expected}, the last is {text[:2000]}"
        return took

    return run


def awaited(session: Session) -> Callable[[], Coroutine[Any, Any, float]]:
    """
    The same for fresh calls of an asynchronous tool, within a loop that runs.
    """

    tool = asearching()

    async def run() -> float:
        waiting, met = _arguments(new), 0
        start = time.thread_time()
        for each in waiting:
            envelope = await session.acall(TOOL, each, tool)
            text = envelope.to_json()
            met += (
                envelope.status == "success"
                and envelope.code is None
                and envelope.nudged is False
                and len(text) >= ALLOWED.text
            )
        took = time.thread_time() - start
        assert met == CALLS, f"{CALLS - met} of {CALLS} calls are not {ALLOWED}, the last is {text[:2000]}"
        return took

    return run


def refused(session: Session, execute: Execute, arguments: Arguments, expected: Expected) -> Callable[[], float]:
    """
    The same for calls that are refused; `forgive` goes before each round of them.
    """
    forgive(session)
    return calls(session, execute, arguments, expected)


def forgive(session: Session) -> None:
    """
    Let the calls to come be one new turn, and none of the refusals before count: turns of nothing but refusals would end
    the session, and what is timed would be that it is over.
    """
    session.begin_turn()
    session.extend()


def repeatable(session: Session) -> Session:
    """
    *session* after two equal calls, which brought the same: a third is refused.
    """
    for _ in range(2):
        assert session.call(TOOL, equal(0), same).ok
    return session


def _arguments(make: Arguments) -> list[dict[str, Any]]:
    # Made beforehand: they come from a model.
    global _made  # noqa: PLW0603  one count for all cases
    _made += CALLS
    return [make(page) for page in itertools.islice(_pages, CALLS)]
