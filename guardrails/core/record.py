"""
The record: one flat mapping for each event of a session.

Everything that changes a session's state is an event, numbered densely by `n`, so that the records of a session alone
replay it exactly. Each life of it (`run`) counts by itself: a name that is used again without its state counts from 1
again. A `call` line carries what the decision was made from, a `settle` line how the call ended.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

import orjson

from guardrails.core.chain import Plan
from guardrails.core.decision import Completion, Decision
from guardrails.core.refusals import STOPPED
from guardrails.core.result import evidence_of
from guardrails.core.state import Pending
from guardrails.core.text.plain_json import plain
from guardrails.core.text.signature import result_hash
from guardrails.core.text.truncation import render
from guardrails.core.values.types import MICRO, Denial, End, ToolCall


SCHEMA_VERSION: Final = 1
"""Of the records that are written; newer ones cannot be read."""
MAX_SNAPSHOT_BYTES: Final = 65_536


def columns(words: str) -> Callable[[Any], dict[str, Any]]:
    """
    Returns a function that reads a part of a line from an object: under each of *words* its attribute of this name, or of another one,
    `key=attribute`.
    """
    pairs = [word.split("=") for word in words.split()]
    keys, values = [pair[0] for pair in pairs], attrgetter(*(pair[-1] for pair in pairs))
    return lambda one: dict(zip(keys, values(one), strict=True))


_call = columns(
    "run n ts_ms=at_ms seq turn id=call.id tool=call.tool sig=call.sig code claimed cost tokens retry_source"
)
_tool = columns("""timeout_ms mutates=changes estimate=cost estimate_tokens=tokens known held=tool.held repeats=tool.repeats
    read_only=tool.read_only idempotent=tool.idempotent destructive=tool.destructive retryable_declared=tool.retryable""")
_end = columns("""run n ts_ms=at_ms duration_ms elapsed_ms mutates=changes late retryable wait_ms max_retries_remaining=retries
    is_complete limit""")
_failure = columns("error_type http_status retry_after_ms")
_decision = columns("call_n=n seq id=call.id tool=call.tool sig=call.sig")
_pending = columns("call_n=n seq id tool sig")


def snapshot(call: ToolCall) -> bytes:
    """
    Returns the arguments of *call* as JSON, cut at 64 KB if they cannot be signed.

    It is to be taken before the tool runs: a tool may change its arguments or use them up, and this does not.
    """
    if call.canonical is not None:
        return call.canonical

    # A value and what parts it from the next take two bytes at least: what is left out would be cut.
    return render(plain(call.arguments, MAX_SNAPSHOT_BYTES), MAX_SNAPSHOT_BYTES).payload


def call_record(session_id: str, decision: Decision, plan: Plan, arguments: bytes) -> dict[str, Any]:
    """
    Returns the line of a decision: its inputs, *arguments* as `snapshot` gives them, and every guard that had something
    to say.

    If the same call failed before, `retry_source` says who caused the retry: `agent` (of its own accord) or `policy` (since it was
    advised); else it is null. `sketch` is there if like calls were looked for. `stop` is the reason for which every call was refused.
    """
    call, denials = decision.call, decision.denials
    if plan.recorded is None:
        # Taken once: facts of a tool may be declared in code, which a replay does not have.
        plan.recorded = _tool(plan)
    # A comprehension is a call in Python 3.11, and there is nearly always nothing to go through.
    record: dict[str, Any] = {
        **_head("call", session_id),
        **_call(decision),
        "arguments": orjson.Fragment(arguments),
        "problems": [list(problem) for problem in call.problems] if call.problems else [],
        "decision": "pending" if decision.pending else "deny" if denials else "nudge" if decision.nudges else "allow",
        "denials": [[denial.code, denial.ends_session, denial.strike] for denial in denials] if denials else [],
        "observed": [denial.code for denial in decision.observed] if decision.observed else [],
        "nudges": [code for code, _ in decision.nudges] if decision.nudges else [],
        "guard_errors": [list(error) for error in decision.errors] if decision.errors else [],
        **plan.recorded,
    }
    # Hints are observed too.
    refused = [one.code for one in decision.observed if isinstance(one, Denial)] if decision.observed else None
    stop = denials[0].values["reason"] if denials and denials[0].code == STOPPED else None
    # Arguments may be erased, and what they were told by is not: the sketch.
    rare = {"stop": stop, "places": call.places or None, "sketch": call.sketch, "would_refuse": refused}
    rare |= decision.marks or {}
    return record | {name: value for name, value in rare.items() if value is not None}


def settle_record(session_id: str, decision: Decision, end: End, completion: Completion) -> dict[str, Any]:
    """
    Returns the line of a settled call; a sink keeps the result of the tool, or its hashes only.

    `model_version` names the model that was asked about a failure; else it is null.

    `warnings` are (code, text) of what guards say with the result, such as that a limit is near. `no_retry` is the code of a retry budget that was empty; then `retryable` says no for that reason. `uncertain`:
    nobody knows whether it happened. `unread`: no model reads it, since the call was answered before. `sandbox` names the sandbox in which the
    call ran, if there was one.

    If there are messages, the arguments are with them, for a sink that erases the parts that messages repeat of them.
    """
    call, rendered, own = decision.call, end.rendered, end.own
    exact, masked = end.hash, None
    if end.error_type is not None:
        text = evidence_of(end, rendered)
        exact, masked = result_hash(text), end.hash
    cost = decision.cost if end.cost is None else end.cost
    record: dict[str, Any] = {
        **_head("settle", session_id),
        **_end(completion),
        **_decision(decision),
        "retry_source": decision.retry_source,
        **_failure(end),
        "status": "ok" if end.error_type is None else "error",
        "error_message": end.error_message or None,
        "result_hash": exact,
        "result_hash_masked": masked,
        "result_bytes": 0 if rendered is None else len(rendered.payload),
        "cost": cost,
        "cost_usd": cost / MICRO,
        "tokens": decision.tokens if end.tokens is None else end.tokens,
        "claims": None if own is None else [own.retryable, own.retry_after_ms, own.max_retries_remaining],
        "model_version": completion.judged,
        "guard_errors": [list(error) for error in completion.errors] if completion.errors else [],
    }
    if rendered is not None:
        record["result"] = orjson.Fragment(rendered.payload)
    if call.canonical is not None and (end.error_message or completion.errors):
        record["arguments"] = orjson.Fragment(call.canonical)
    sandbox = None if own is None else own.sandbox
    rare: dict[str, Any] = {"steady": end.steady, "empty": end.came, "no_retry": completion.no_retry}
    rare["warnings"] = [list(one) for one in completion.warnings]
    rare |= {"uncertain": completion.uncertain, "unread": end.unread, "sandbox": sandbox, **(completion.marks or {})}
    return record | {name: value for name, value in rare.items() if value}


def identity(one: Any) -> dict[str, Any]:
    """
    Returns the values by which an event names *one*: a decision, an open call or a parked one.
    """
    return _decision(one) if isinstance(one, Decision) else _pending(one)


def expire_record(session_id: str, run: str, n: int, at_ms: int, pending: Pending) -> dict[str, Any]:
    """
    Returns the line of an admission that was given up.
    """
    return event_record("expire", session_id, run, n, at_ms, identity(pending))


def park_record(session_id: str, decision: Decision) -> dict[str, Any]:
    """
    Returns the line of a call that now waits for a person; its `call` line stands before it.
    """
    denial = decision.denials[0]
    asked = {"code": denial.code, "reason": denial.values.get("reason", ""), "lasts_ms": denial.parks}
    values = {**identity(decision), **asked}
    return event_record("park", session_id, decision.run, decision.park_n, decision.at_ms, values)


def event_record(event: str, session: str, run: str, n: int, at_ms: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """
    Returns the line of any other event: `charge turn request claim unpark suspend extend policy reserve release open
    close`.

    `least` is what the cheapest of the tools costs, in micro-dollars, if money is limited and no tool is free.
    """
    return {**_head(event, session), "run": run, "n": n, "ts_ms": at_ms, **values}


def _head(event: str, session: str) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, "event": event, "session_id": session}
