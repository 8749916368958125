"""
What a history must show: never over, nothing admitted forgotten, linearizable, and decided as the engine decides.
"""

import json

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from guardrails import Policy
from guardrails.core.records.replay import replay_together
from guardrails.core.state.packing import pack, unpack
from guardrails.core.state.state import SessionState
from guardrails.core.values.errors import SessionError
from guardrails.stores.base import Store
from tests.faults.history import NEW, Operation, operations, version_of
from tests.faults.linear import Placed, Violation, linearized, lines_of
from tests.faults.shop import LIMITS, PRICE_USD, TENANT_USD, policy


LOST_NS: Final = 2_000_000_000
"""What a log that is put on the disk each second may lose: Redis waits for a disk that is slow for two."""
TENANT: Final = round(TENANT_USD * 1_000_000)
PRICE: Final = round(PRICE_USD * 1_000_000)
"""Micro-dollars of a tenant, and of a call."""


def final_states(store: Store, history: Sequence[Operation]) -> dict[str, SessionState]:
    """
    What *store* now holds under each key of *history*.
    """
    keys = sorted({key for operation in history for attempt in operation.attempts for key in attempt.before})
    return {key: store.update([key], lambda states: unpack(pack(states[0]))) for key in keys}


def checked(lines: Sequence[str], states: Mapping[str, SessionState], losses: Sequence[int] = ()) -> dict[str, Any]:
    """
    The figures of the history that *lines* tell, which left *states*. Raises Violation if it is not what was promised.

    *losses* are the moments at which what was answered just before them may be gone, as is stated: then it is counted.
    """
    raised = [line for line in map(loaded, lines) if line.get("raised")]
    if raised:
        raise Violation("raised", f"{len(raised)} steps raised what no fault explains: {raised[0]['said']}")
    history = operations(lines)
    lost: dict[str, int] = {}
    final = {key: version_of(state) for key, state in states.items()}
    ends = Counter(operation.end for operation in history)
    steps = {
        "steps": len(history),
        **{end: ends[end] for end in ("ok", "fail", "info")},
        "more than one attempt": sum(len(operation.attempts) > 1 for operation in history),
    }
    used_up = Counter(scope_of(key) for key, state in states.items() if full(scope_of(key), state))
    if losses:
        history, lost = kept(history, final, losses)
    ordered = linearized(history, final)
    ran = [line for line in map(loaded, lines) if line.get("e") == "ran"]
    admitted = decided_again(ordered, policy())
    if losses:
        known = [line for line in ran if line["id"] in admitted]
        lost["calls that ran and are forgotten"] = len(ran) - len(known)
        if len(ran) - len(known) > lost["steps lost"]:
            raise Violation("forgotten", f"{len(ran) - len(known)} calls ran that nobody knows of")
    never_over(known if losses else ran, states)
    nothing_forgotten(known if losses else ran, admitted, states)
    return {
        **steps,
        "info that happened": sum(operation.end == "info" for operation, _ in ordered),
        "admitted": len(admitted),
        "ran": len(ran),
        **lost,
        "used up": dict(used_up),
    }


def scope_of(key: str) -> str:
    """
    The name of the scope whose state has *key*; empty if it is a session's.
    """
    return key.split("/")[1] if key.startswith("/") else ""


def full(scope: str, state: SessionState) -> bool:
    """
    Whether *state* of a *scope* is at one of its limits.
    """
    spent = scope == "tenant" and state.cost + state.held_cost == TENANT
    return spent or state.calls == LIMITS.get(scope)


def kept(
    history: Sequence[Operation], final: Mapping[str, str], losses: Sequence[int]
) -> tuple[list[Operation], dict[str, int]]:
    """
    Those of *history* that were not lost at one of the moments *losses*, and how much was. Raises Violation if one is lost that
    was answered more than `LOST_NS` before such a moment.
    """
    known = {key: {NEW, *(version for version, _ in line)} for key, line in lines_of(history, final).items()}
    there: list[Operation] = []
    ages = []
    for operation in history:
        result = operation.result
        if result is None or all(version in known[key] for key, version in result.after.items()):
            there.append(operation)
            continue
        age = min((at - operation.answered_ns for at in losses if at >= operation.answered_ns), default=1 << 62)
        if age > LOST_NS:
            raise Violation("forgotten", f"a step is gone that was answered {age / 1e9:.1f} s before a loss", operation)
        ages.append(age)
    return there, {"steps lost": len(ages), "ms before the loss at most": max(ages, default=0) // 1_000_000}


def decided_again(ordered: Sequence[Placed], terms: Policy) -> dict[str, dict[str, Any]]:
    """
    The records of the admitted calls, by their id. Raises Violation if the engine decides one of *ordered* otherwise when it
    runs alone.
    """
    records = [record for _, attempt in ordered for record in attempt.records]
    # As a reader of a file has them.
    records = json.loads(json.dumps(records))
    admitted = {}
    try:
        for again in replay_together(terms.chain, records, scopes=terms.scopes):
            if not again.same:
                raise Violation("decision", f"the engine alone decides {again.decision} for {again.record}")
            if again.record["decision"] == "allow":
                admitted[again.record["id"]] = dict(again.record)
    except SessionError as error:
        raise Violation("decision", f"the records cannot be decided again: {error}") from error
    return admitted


def never_over(ran: Sequence[Mapping[str, Any]], states: Mapping[str, SessionState]) -> None:
    """
    Raise Violation if more was used than a scope allows, by its state or by the executions that the tools saw.
    """
    for (name, own), (calls, cost) in seen_by_tools(ran).items():
        if calls > LIMITS[name]:
            raise Violation("over", f"{calls} calls ran of the {name} `{own}`, who may make {LIMITS[name]}")
        if name == "tenant" and cost > TENANT:
            raise Violation("over", f"the calls that ran of `{own}` cost {cost} micro-dollars, of {TENANT}")
    for key, state in states.items():
        name = scope_of(key)
        if name and state.calls > LIMITS[name]:
            raise Violation("over", f"`{key}` has {state.calls} calls of {LIMITS[name]}")
        if name == "tenant" and state.cost + state.held_cost > TENANT:
            raise Violation("over", f"`{key}` has {state.cost} and holds {state.held_cost} micro-dollars")


def seen_by_tools(ran: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[int, int]]:
    """
    How many calls ran of each scope, by its name and id, and what they cost in micro-dollars.
    """
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    for line in ran:
        for scope in (("global", "global"), *line["scopes"].items()):
            calls, cost = seen.get(scope, (0, 0))
            seen[scope] = calls + 1, cost + (PRICE if line["tool"] == "pay" else 0)
    return seen


def nothing_forgotten(
    ran: Sequence[Mapping[str, Any]], admitted: Mapping[str, Mapping[str, Any]], states: Mapping[str, SessionState]
) -> None:
    """
    Raise Violation if a call ran twice, or ran and is not admitted in the history, or is not counted in a scope.
    """
    times = Counter(line["id"] for line in ran)
    for line in ran:
        if times[line["id"]] > 1:
            raise Violation("twice", f"the call `{line['id']}` ran {times[line['id']]} times")
        if line["id"] not in admitted:
            raise Violation("forgotten", f"the call `{line['id']}` of `{line['session']}` ran, and nobody knows of it")
    counted: Counter[str] = Counter()
    for record in admitted.values():
        counted[record["session_id"]] += 1
        for name, (own, *_) in record["scopes"].items():
            counted[f"/{name}/{own}"] += 1
    for key, state in states.items():
        if state.calls != counted[key]:
            raise Violation("forgotten", f"`{key}` counts {state.calls} calls, the history has {counted[key]}")


def loaded(line: str) -> dict[str, Any]:
    """
    What *line* says; nothing if a kill has cut it.
    """
    try:
        said: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return said
