"""
Writes a recorded session as a policy case, with a policy's decision on each of its calls.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from guardrails.core.values.errors import SessionError
from guardrails.offline.judge.judgement import Judge
from guardrails.offline.policy_cases.recorded import Decided, case_of
from guardrails.offline.readers import RecordedCall
from guardrails.policy.policy import Policy

from .inputs import Input, calls_of


COMPARED: Final = 10_000
"""Names of sessions that are looked through for the one that was meant."""
NAMED: Final = 3


def session_case(
    policy: Policy, name: str, files: Iterable[Input], session_id: str, *, until: int | None = None
) -> str:
    """
    Returns the YAML of the session *session_id*, of the first source that has it, as *policy*, called *name*, decides
    it. If a name has more than one life, `NAME@RUN` is one of them. The call with the index *until* is its last
    one.

    Raises SessionError if no file has this session or this call, or if several lives are meant. Also raises it if a
    case cannot hold the calls up to that one.
    """
    source: str | None = None
    lives: dict[str, list[RecordedCall]] = {}
    names: dict[str, None] = {}
    for call in calls_of(files):
        if session_id in {call.session_id, f"{call.session_id}@{call.run}"} and source in {None, call.source}:
            source = call.source
            lives.setdefault(call.run, []).append(call)
        elif len(names) < COMPARED:
            names[call.session_id] = None
    if not lives:
        raise SessionError(f"no session `{session_id}` in these files{_others(session_id, list(names))}")
    calls, *others = lives.values()
    if others:
        one_of = ", ".join(f"`{calls[0].session_id}@{run}`" for run in lives)
        raise SessionError(f"`{session_id}` has {len(lives)} lives; name one of {one_of}")
    if until is not None:
        calls = _cut(calls, session_id, until)
    judge = Judge(policy)
    said = (judge.judge(call) for call in calls)
    decided = [Decided(each.decision, each.code, (*each.observed, *each.hinted)) for each in said]
    closes = bool(policy.chain.responses)
    try:
        return case_of(calls, decided, policy=name, prices=policy.prices, closes=closes, whole=until is not None)
    except ValueError as error:
        raise SessionError(f"`{session_id}` up to call {until:,}: {error}") from None


def _cut(calls: list[RecordedCall], session_id: str, until: int) -> list[RecordedCall]:
    """
    The *calls* up to the one with the index *until*.
    """
    last = next((place for place, call in enumerate(calls) if call.call_index == until), None)
    if last is None:
        first, end = calls[0].call_index, calls[-1].call_index
        there = f"its calls are {first:,} to {end:,}" if len(calls) > 1 else f"its only call is {first:,}"
        raise SessionError(f"`{session_id}` has no call {until:,}: {there}")
    return calls[: last + 1]


def _others(session_id: str, names: list[str]) -> str:
    """
    Returns a sentence with the session or call to ask for in its place.
    """
    if not names:
        return ": they hold no calls"
    near = [name for name in names if session_id in name] or get_close_matches(session_id, names, NAMED)
    said = ", ".join(f"`{name}`" for name in (near or names)[:NAMED])
    if near:
        return f"; did you mean {said}?"
    return f"; they have {said}" + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")
