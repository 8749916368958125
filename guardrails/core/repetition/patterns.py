"""
Counts of how often the calls of a session's window have formed a pattern that the present call would go on with.

Each function counts earlier calls; a policy says how many are too many. Only calls that are over are looked at. Calls
of the present turn are left out, since they were made without knowing each other's results. Calls of one turn count
once.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from guardrails.core.state.state import Entry, SessionState
from guardrails.core.values.types import ErrorType

from .sketch import NO_SKETCH, likes, resized
from .tool_names import server_of
from .work import shown_to_change


NO_TURN: Final = -1
_OVER: Final = ("ok", "error")
DETERMINED: Final[frozenset[ErrorType | None]] = frozenset(
    {"validation", "not_found", "tool_missing", "invalid_path", "too_large", "code_error"}
)
"""Failures that the same call meets again unless something is done in between."""
SHARED: Final[frozenset[ErrorType | None]] = frozenset(
    {"auth", "rate_limit", "server_error", "unavailable", "timeout", "connection"}
)
"""Failures whose cause a tool may share with others of its server; any other says nothing of a tool that was not called."""
CHANGEABLE: Final[frozenset[ErrorType | None]] = frozenset({"cancelled"})
"""Failures that say nothing of the call: a sibling failed, a person said no."""


def past(state: SessionState) -> list[Entry]:
    """
    Returns the calls that are evidence, newest first: over, and of earlier turns.
    """
    turn = state.mark or NO_TURN
    return [
        entry
        for entry in reversed(state.window)
        if entry.turn != turn
        and (
            entry.status == "ok"
            or (entry.status == "error" and entry.error_type not in CHANGEABLE and not entry.retried)
        )
    ]


def past_of(state: SessionState, tool: str) -> Iterator[Entry]:
    """
    Returns the calls of *tool* among them, looked for as they are asked for: mostly the latest tells enough.
    """
    turn = state.mark or NO_TURN
    return (
        entry
        for entry in reversed(state.window)
        if entry.tool == tool
        and entry.turn != turn
        and (
            entry.status == "ok"
            or (entry.status == "error" and entry.error_type not in CHANGEABLE and not entry.retried)
        )
    )


def same_end(a: Entry, b: Entry) -> bool:
    """
    Returns whether two calls ended alike: equal results, or equal but for volatile parts.
    """
    if a.status != b.status:
        return False
    return a.result_hash == b.result_hash or (a.steady != 0 and a.steady == b.steady)


def same_evidence(a: Entry, b: Entry) -> bool:
    """
    Returns whether two calls ended alike: byte-equal results of two successes, equal but for digits of two failures.
    """
    return a.status == b.status and a.status in _OVER and a.result_hash == b.result_hash


def brought_news(state: SessionState, entry: Entry) -> bool:
    """
    Returns whether the call of *entry*, which is over, worked and brought a result of no other call of its tool in the
    window.
    """
    if entry.status != "ok" or entry.empty or entry.unfinished or state.dull_seq == entry.seq:
        return False
    return not any(other is not entry and other.tool == entry.tool and same_end(other, entry) for other in state.window)


def identical(before: Sequence[Entry], sig: int | None) -> int:
    """
    Returns how many of the latest calls of *sig* ended alike.
    """
    own = [at for at, entry in enumerate(before) if entry.sig == sig]
    if not own:
        return 0
    first = before[own[0]]
    count, turns = 1, {first.turn}
    for newer, older in pairwise(own):
        entry = before[older]
        if not same_end(first, entry):
            break
        if first.changes and shown_to_change(before[: own[0]], before[newer + 1 : older]):
            break
        if not entry.turn or entry.turn not in turns:
            count += 1
            turns.add(entry.turn)
    return count


def same_answer(before: Sequence[Entry], sig: int | None) -> int:
    """
    Returns how many of the latest calls of *sig* ended alike; other calls between them do not matter.
    """
    own = [entry for entry in before if entry.sig == sig]
    return next((at for at, entry in enumerate(own) if not same_end(own[0], entry)), len(own))


def _run(entries: Sequence[Entry], goes_on: Callable[[Entry], bool]) -> list[Entry]:
    """
    Returns the beginning of *entries* while it *goes_on*; one of each turn.
    """
    run: list[Entry] = []
    for entry in entries:
        if not goes_on(entry):
            break
        if not run or not entry.turn or entry.turn != run[-1].turn:
            run.append(entry)
    return run


def same_error(before: Sequence[Entry], tool: str, sig: int | None) -> int:
    """
    Returns with how many arguments in a row *tool* failed of one kind of error, if they were not always those of *sig*.
    """
    own = [entry for entry in before if entry.tool == tool]
    if not own or own[0].status != "error":
        return 0
    family = own[0].steady
    run = _run(own, lambda entry: entry.status == "error" and entry.steady == family != 0)
    sigs = [entry.sig for entry in run]
    # What failed again and again with the same arguments says nothing of others; what cannot be signed is never the same.
    return len({*sigs} - {None}) + sigs.count(None) if any(own != sig for own in sigs) else 0


def answers(failure: Entry) -> bool:
    """
    Returns whether a tool returned, in an object, that there is no such thing: of many that are asked for there may be
    none.
    """
    return failure.little and failure.error_type == "not_found"


def sibling_errors(before: Sequence[Entry], tool: str) -> tuple[int, set[str]]:
    """
    Returns (calls, tools): how often in a row any tool failed with one kind of error. The *tool* must be one of these
    tools, or, if the cause may lie in a server, of one server with them. Otherwise the count is 0.
    """
    if not before or before[0].status != "error":
        return 0, set()
    family = before[0].steady
    run = _run(before, lambda entry: entry.status == "error" and entry.steady == family != 0)
    tools = {entry.tool for entry in run}
    if len(tools) == 1 or not (
        tool in tools
        or (before[0].error_type in SHARED and any(server_of(tool) == server_of(other) != "" for other in tools))
    ):
        return 0, set()
    return len(run), tools


def broken(state: SessionState, last: Entry, tools: Collection[str]) -> bool:
    """
    Returns whether a call of the present turn is over that ended otherwise than *last*, the latest of a run of *tools*.
    """
    return any(
        entry.seq > last.seq
        and entry.status in _OVER
        and (len(tools) > 1 or entry.tool in tools)
        and not (same_end(entry, last) or (entry.status == last.status and entry.empty and last.empty))
        for entry in state.window
    )


def unknown(before: Sequence[Entry], tool: str) -> int:
    """
    Returns how often *tool* was called though the tool does not exist; 0 if it ever worked.
    """
    own = [entry for entry in before if entry.tool == tool]
    if any(entry.status == "ok" for entry in own):
        return 0
    return len(_run(own, lambda entry: entry.error_type == "tool_missing"))


def lively(state: SessionState, tool: str) -> bool:
    """
    Returns whether the latest call of *tool* brought news, so that a fresh call goes on with nothing.
    """
    failing: bool | None = None
    backwards = reversed(state.window)
    for entry in backwards:
        status = entry.status
        if entry.tool == tool:
            if status == "error" or (entry.empty and status == "ok"):
                return False
            if status == "ok":
                evidence = entry.result_hash
                break
        elif failing is None and status in _OVER:
            failing = status == "error"
    else:
        return not failing
    for entry in backwards:  # noqa: SIM110  hot path
        if entry.result_hash == evidence and entry.tool == tool:
            return False
    return True


def unchanged(own: Sequence[Entry], sketch: int, sig: int | None) -> int:
    """
    Returns how often in a row a tool gave the same result to calls that differ in volatile arguments only; *own* are
    its calls.
    """
    if sketch == NO_SKETCH or own[0].sketch != sketch:
        return 0
    run = _run(own, lambda entry: entry.sketch == sketch and same_end(entry, own[0]))
    if own[0].changes and own[0].little:
        # Each of these may have written something of its own: a line of a log, a beat.
        return 0
    # Of exact repeats only, others judge.
    return len(run) if any(entry.sig != sig for entry in run) else 0


def scans(run: Sequence[Entry]) -> bool:
    """
    Returns whether the equal results of a *run* are an answer of its own to each call: a flag, a zero, a few values.
    """
    return any(entry.little for entry in run)


def fruitless(last: Entry, earlier: Iterable[Entry]) -> list[Entry]:
    """
    Returns the latest calls of a tool that brought nothing, or all the same; one of each turn. The calls *earlier* are
    those before the *last*.

    The list is empty for a tool that changes something and says the same of all its changes.
    """
    if last.status == "error" or (last.changes and not last.empty):
        return []
    run, turn, empty = [last], last.turn, last.empty
    for entry in earlier:
        if entry.empty != empty or not (empty or same_end(entry, last)):
            break
        if not entry.turn or entry.turn != turn:
            run.append(entry)
            turn = entry.turn
    return run


def reworded(run: Sequence[Entry], sketch: int, most: int | None = None) -> int:
    """
    Returns how many calls of a *run* that was `fruitless` are worded like the one of *sketch*. Calls that differ from
    it only by numbers for how much is asked for count too. At most *most* are counted.
    """
    if sketch == NO_SKETCH:
        return 0
    known = [entry.sketch for entry in run if entry.sketch != NO_SKETCH]
    like = likes(sketch, known, most) or resized(sketch, known, most)
    # The first of them is not looked at before it turned out to be fruitless.
    return like + len(run) - len(known) if like else 0
