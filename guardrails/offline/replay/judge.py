"""
Judge a policy session by session: what it would have done, and whether that was right.

Recorded calls go through the same core as live ones, by a clock that their own times move. The result of a denied call
is not shown to the guards, for live it would not exist.
"""

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from operator import itemgetter
from typing import Any, Final, NamedTuple

from guardrails.core.chain import Chain, Plan
from guardrails.core.decision import Decision
from guardrails.core.engine import Engine, complete, decide
from guardrails.core.events import happen, lose
from guardrails.core.guards.rules import Rules
from guardrails.core.state import SessionState
from guardrails.core.tool import Tool, tool_call
from guardrails.core.values.types import Denial, End, ToolCall, micro_dollars
from guardrails.core.values.usage import Usage, cost_of, own_price
from guardrails.offline.replay.evidence import Past, end_of, shown_by
from guardrails.offline.replay.lacking import NEEDS, not_judged
from guardrails.offline.replay.tally import Judgement, Row
from guardrails.offline.transcripts.calls import RecordedCall
from guardrails.policy.policy import Policy


TEXT_ONLY: Final = ("summary", "truncate")
"""Guards that only shape what the model reads; `Retryable` stays, for what it says of retries is remembered."""
MAX_PLANS: Final = 1_024


class Lens(NamedTuple):
    """
    The chain for one kind of session.
    """

    engine: Engine
    timed: bool
    """Calls have times."""
    turned: bool
    """Calls say which model response made them."""
    plan: Callable[[str, bool | None, bool], Plan]
    """The plan for a tool, which its transcript declares to be read-only (None: it says nothing) or polling."""


def lens(chain: Chain, *, timed: bool, turned: bool) -> Lens:
    """
    Returns the part of *chain* that can be judged in a session whose calls are *timed* and *turned*, or not.
    """
    lacking = {"starts", *(() if timed else ("times", "soon")), *(() if turned else ("turns",))}
    gone = {(name, setting) for name, setting, need in NEEDS if need in lacking} | {(name, "") for name in TEXT_ONLY}
    made = without(chain, gone)
    # Nobody reads it.
    made.left_out |= {"progress"}

    @lru_cache(MAX_PLANS)
    def plan(tool: str, read_only: bool | None, polling: bool) -> Plan:
        known = made.plan(tool)
        own = declared(known.tool, read_only, polling)
        # Nobody reads a success.
        changes = known.changes if own is known.tool else own.changes
        return known.but(tool=own, changes=changes, success_shapes=())

    return Lens(Engine(made), timed, turned, plan)


def without(chain: Chain, gone: Collection[tuple[str, str]]) -> Chain:
    """
    Returns *chain* without the guards and settings *gone*, pairs of their names; a guard as a whole has `""` for a setting.
    """

    def left(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {setting: value for setting, value in settings.items() if (name, setting) not in gone}

    guards = [
        guard.but({"rules": tuple(one for one in guard.rules if not one.timed)})
        if isinstance(guard, Rules) and ("rules", "timed") in gone
        else replace(guard, **dict[str, Any]({each: None for name, each in gone if each and name == guard.name}))
        for guard in chain.guards
        if (guard.name, "") not in gone
    ]
    rules = [
        replace(rule, guards={name: left(name, own) for name, own in rule.guards.items() if (name, "") not in gone})
        for rule in chain.rules
    ]
    return chain.with_guards(guards, rules)


def declared(tool: Tool, read_only: bool | None, polling: bool) -> Tool:
    """
    Returns *tool* as it was declared in its own run, read-only (None: unknown) or *polling*; what the policy declares stands above that.
    """
    tool = replace(tool, repeats="allow") if polling else tool
    return tool if read_only is None or tool.read_only is not None else replace(tool, read_only=read_only)


STEP_MS: Final = 1 << 32
"""From one call to the next where there are no times: more than any wait."""
MOST: Final = 1 << 53
"""Milliseconds, tokens or micro-dollars above this are no such thing; a state has no room for them."""
SIGN: Final = 1 << 63
SIG_BITS: Final = (1 << 64) - 1


def sessions_of(calls: Iterable[RecordedCall]) -> list[list[RecordedCall]]:
    """
    Returns *calls* by their session, in the order in which the sessions begin. Sources may use the same name for
    sessions of theirs, and a name may have more than one life.
    """
    sessions: dict[tuple[str, str, str], list[RecordedCall]] = {}
    for call in calls:
        sessions.setdefault((call.source, call.session_id, call.run), []).append(call)
    return list(sessions.values())


class Judge:
    """
    One policy over any number of recorded sessions.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._lens = cache(partial(lens, policy.chain))

    def judge(self, calls: Sequence[RecordedCall]) -> list[Row]:
        """
        Returns the word of the policy on each call of a session; *calls* are all that it has.
        """
        first = calls[0]
        track = Track(self._lens(timed=first.ts_ms is not None, turned=first.turn is not None), self.policy)
        for call in calls:
            track.judge(call)
        return track.rows

    def judgement(self, rows: list[Row]) -> Judgement:
        """
        Returns the figures of *rows*, those of all sessions.
        """
        chain = self.policy.chain
        lacks = not_judged(chain, rows)
        lacks |= {f"scopes.{name}": "no transcript says whose a session is" for name in self.policy.scopes}
        models = {path: model.name for path, model in chain.models.loaded.items()}
        return Judgement(self.policy.name, rows, lacks, models)


Running = tuple[int, Decision, End, Plan, Row]
"""(end in ms, decision, what it has shown, plan, row) of a call whose recorded result has not come yet."""


class Track:
    """
    One session while it is judged.
    """

    def __init__(self, lens: Lens, policy: Policy) -> None:
        self.lens, self.policy = lens, policy
        self.state = SessionState()
        self.past = Past()
        self.rows: list[Row] = []
        self.running: list[Running] = []
        """In the order in which they end."""
        self.turn: int | None = 0 if lens.turned else None
        """The latest response; 0: before the first; None: nobody says which response made a call."""

    def judge(self, call: RecordedCall) -> None:
        """
        Add the row of *call*.
        """
        own = self.lens
        row = Row(call.source, call.session_id, call.run, call.call_index, call.tool, own.timed, own.turned)
        row.blind, row.watched = call.arguments is None, bool(call.observed)
        self.rows.append(row)
        now = self._time(call)
        if call.tokens_in is not None or call.turn != self.turn or call.tokens_out is not None or call.cost_usd:
            self._respond(call, row, now)
        plan = own.plan(call.tool, call.read_only, call.polling)
        made = made_of(call, str(len(self.rows)), plan)
        outcome, evidence = end_of(call, plan.tool)
        row.signed, row.worth = made.sig is not None, self.past.add(made.sig, evidence)
        if row.worth != "new":
            row.recorded = "unknown" if row.worth == "unknown" else "repeat"
        elif outcome.error_type is not None:
            row.recorded = "failed"
        decision = self._decide(made, plan, now)
        if decision.observed:
            row.observed = tuple(dict.fromkeys(one.code for one in decision.observed if isinstance(one, Denial)))
        if decision.envelope is not None:
            row.decision, row.codes = "deny", (decision.denials[0].code,)
            return
        if decision.nudges:
            # One that is claimed at once was approved first.
            row.decision = "pending" if decision.claim_n else "nudge"
            row.codes = tuple(code for code, _ in decision.nudges)
        if not call.has_result:
            # Nobody knows how it ended: the next call gives it up.
            own.engine.apply(lose, (decision.seq, now), now, (self.state,))
            return
        # A result of which nothing is known is like no other.
        shown = shown_by(call, -len(self.rows) if evidence is None else evidence, outcome, made, plan)
        if call.duration_ms and own.timed:
            insort(self.running, (now + min(call.duration_ms, MOST), decision, shown, plan, row), key=itemgetter(0))
        else:
            self._complete(decision, shown, plan, row, now)

    def _time(self, call: RecordedCall) -> int:
        """
        The time of a call, in its session's own order.
        """
        present, at_ms = self.state.now_ms, call.ts_ms
        if not self.lens.timed:
            return present + STEP_MS
        if at_ms is not None and at_ms <= MOST:
            return max(at_ms, present)
        # Its place in the transcript is all that is known: what was called before it is over.
        return max(present, self.running[-1][0]) if self.running else present

    def _decide(self, call: ToolCall, plan: Plan, now: int) -> Decision:
        """
        The decision on *call*. A person who is asked is taken to say yes: what was recorded ran.
        """
        self._settle(now)
        asking = decide, (call, plan, now, True, None), now, (self.state,)
        decision = self.lens.engine.apply(*asking)
        if decision.pending and decision.seq is not None:
            asked = ((decision.denials[0].code, ""),)
            self._event("unpark", {"seq": decision.seq, "sig": call.sig, "approved": True, "reason": ""}, now)
            decision = self.lens.engine.apply(*asking)
            decision.nudges = asked
        return decision

    def _settle(self, now: int) -> None:
        """
        Show the results that have come back by *now*.
        """
        while self.running and self.running[0][0] <= now:
            end_ms, decision, shown, plan, row = self.running.pop(0)
            self._complete(decision, shown, plan, row, end_ms)

    def _complete(self, decision: Decision, shown: End, plan: Plan, row: Row, now: int) -> None:
        envelope, _ = self.lens.engine.apply(complete, (decision, shown, plan, now, None), now, (self.state,))
        if envelope.judged is not None:
            row.advised = bool(envelope.retryable)

    def _respond(self, call: RecordedCall, row: Row, now: int) -> None:
        """
        A model response came ahead of *call*, or more of its usage did.
        """
        number, tokens_in, tokens_out = call.turn, call.tokens_in, call.tokens_out
        if number is not None and number != self.turn and self.lens.turned:
            self.turn = number
            self._settle(now)
            self._event("turn", {"calls": 0}, now)
        tokens = min((tokens_in or 0) + (tokens_out or 0), MOST)
        cost = None if call.cost_usd is None and not self.policy.prices else self._cost(call)
        known = tokens_in is not None or tokens_out is not None or cost is not None
        # Only the library's own records tell that a price was asked for.
        priced = call.decision is not None and (known or call.model is not None)
        if not (known or priced):
            return
        row.priced = cost is not None
        self._settle(now)
        model = call.model or "" if priced else None
        usage = {"cost": cost, "tokens": tokens, "model": model, "untold": not known, "unasked": model is None}
        self._event("charge", usage, now)

    def _cost(self, call: RecordedCall) -> int | None:
        if call.cost_usd is not None:
            return min(micro_dollars(call.cost_usd), MOST)
        price = None if call.model is None else own_price(call.model, self.policy.prices)
        return None if price is None else cost_of(Usage(call.tokens_in or 0, call.tokens_out or 0), price)

    def _event(self, name: str, values: Mapping[str, Any], now: int) -> None:
        self.lens.engine.apply(happen, (name, values, now), now, (self.state,))


def made_of(call: RecordedCall, call_id: str, plan: Plan) -> ToolCall:
    """
    Returns *call* under the id *call_id*. Its signature is the recorded one if arguments are not to be checked, and none if they are unknown.
    """
    tool, arguments, labels = call.tool, call.arguments, (*plan.tool.labels, *call.labels)
    if arguments is None or (plan.arguments is None and call.sig is not None):
        return ToolCall(tool, arguments, call_id, None, call.sig and (call.sig + SIGN & SIG_BITS) - SIGN)
    if plan.arguments is None and call.signed and type(arguments) is dict and not labels:
        signature, sig, canonical = call.signed
        return ToolCall(tool, arguments, call_id, signature, sig, (), canonical)
    return tool_call(tool, arguments, call_id, plan.arguments, labels)
