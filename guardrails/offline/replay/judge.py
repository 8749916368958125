"""
Judge a policy session by session: what it would have done, and whether that was right.

Recorded calls go through the same core as live ones, by a clock that their own times move. The result of a denied call
is not shown to the guards, for live it would not exist.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from guardrails.core.chain import Plan
from guardrails.core.decision import Decision
from guardrails.core.engine import Moment
from guardrails.core.events import EVENTS, event, lose
from guardrails.core.prepare import Prepared
from guardrails.core.state import SessionState
from guardrails.core.text.signature import sign
from guardrails.core.tools.tool_call import tool_call, unlabelled
from guardrails.core.values.types import Denial, ToolCall, micro_dollars
from guardrails.core.values.usage import Usage, cost_of, own_price
from guardrails.offline.transcripts.calls import RecordedCall
from guardrails.policy.policy import Policy

from .evidence import Past, Worth, end_of, shown_by
from .lacking import Held, no_scopes, not_judged, one_by_one
from .lens import Lens, lens
from .tally import MAX_STOPS, Judgement, Recorded, Stop, Tally, summed


STEP_MS: Final = 1 << 32
"""From one call to the next where there are no times: more than any wait."""
MOST: Final = 1 << 53
"""Milliseconds, tokens or micro-dollars above this are no such thing; a state has no room for them."""
SHOWN_TOOLS: Final = 200
SIGN: Final = 1 << 63
SIG_BITS: Final = (1 << 64) - 1
NO_CALLS: Final = {"calls": 0}


class Said(NamedTuple):
    """
    The word of a policy on one call, and what is recorded of it.
    """

    decision: Literal["allow", "nudge", "pending", "deny"]
    code: str | None
    recorded: Recorded
    observed: tuple[str, ...] = ()
    """What guards in observe mode would have denied it for."""


def sessions_of(calls: Iterable[RecordedCall]) -> list[list[RecordedCall]]:
    """
    Returns *calls* by their session, in the order in which the sessions begin. Sources may use the same name for
    sessions of theirs, and a name may have more than one life.
    """
    sessions: dict[tuple[str, str, str], list[RecordedCall]] = {}
    for call in calls:
        sessions.setdefault((call.source, call.session_id, call.run), []).append(call)
    return list(sessions.values())


@dataclass(slots=True)
class Response:
    """
    One model response. Its figures are added to those of the tool of its first call.
    """

    tally: Tally
    tokens: int = 0
    cost: int = 0
    """Micro-dollars."""
    ran: bool = False
    """One of its calls was not refused."""


@dataclass(slots=True)
class Track:
    """
    One session while it is judged.
    """

    lens: Lens
    held: Held
    tallies: dict[str, Tally]
    """Of its source, by tool."""
    state: SessionState = field(default_factory=SessionState)
    running: list[tuple[int, Decision, Prepared, Plan]] = field(default_factory=list)
    """(end in ms, decision, what it has shown, plan) of calls whose recorded result has not come yet."""
    past: Past = field(default_factory=Past)
    responses: dict[int, Response] = field(default_factory=dict)
    turn: int | None = 0
    """The latest response; 0: before the first; None: nobody says which response made a call."""
    calls: int = 0
    refused: bool = False
    """The session is over, and has refused a call since."""

    def tally(self, tool: str) -> Tally:
        """
        Returns the figures of *tool*.
        """
        found = self.tallies.get(tool)
        if found is None:
            found = self.tallies[tool] = Tally(tool)
        return found

    def decide(self, call: ToolCall, now: int, plan: Plan) -> Decision:
        """
        Returns the decision on *call*. A person who is asked is taken to say yes: what was recorded ran.
        """
        engine, states = self.lens.engine, (self.state,)
        if self.running:
            self.settle(now)
        decision = engine.decide(call, plan, now, True, None, states)
        if decision.pending and decision.seq is not None:
            asked = ((decision.denials[0].code, ""),)
            yes = {"seq": decision.seq, "sig": call.sig, "approved": True, "reason": ""}
            engine.apply(event("unpark", yes, now), now, states)
            decision = engine.decide(call, plan, now, True, None, states)
            decision.nudges = asked
        return decision

    def lose(self, decision: Decision, now: int) -> None:
        """
        Nobody knows how an admitted call ended: its admission is given up by the next call.
        """
        self.lens.engine.apply(partial(lose, seq=decision.seq, now_ms=now), now, (self.state,))

    def settle(self, now: int) -> None:
        """
        Show the results that have come back by *now*.
        """
        due = [one for one in self.running if one[0] <= now]
        if due:
            self.running = [one for one in self.running if one[0] > now]
            for end_ms, decision, shown, plan in sorted(due, key=_end):
                self.complete(decision, shown, plan, end_ms)

    def complete(self, decision: Decision, shown: Prepared, plan: Plan, now: int) -> None:
        """
        Show the result of a call to the guards.
        """
        envelope, _ = self.lens.engine.complete(decision, shown, plan, now, None, (self.state,))
        if envelope.judged is not None:
            tally = self.tallies[decision.call.tool]
            tally.asked += 1
            tally.advised += bool(envelope.retryable)


def _end(one: tuple[int, Decision, Prepared, Plan]) -> int:
    return one[0]


def _respond(at: Moment, now_ms: int, begun: bool, charged: Mapping[str, Any] | None) -> None:
    """
    A model response came: a turn of its own if it has *begun*, and its usage if that is known.
    """
    if begun:
        EVENTS["turn"](at, NO_CALLS, now_ms)
    if charged is not None:
        EVENTS["charge"](at, charged, now_ms)


@dataclass(slots=True)
class Found:
    """
    What was found out about some sessions.
    """

    tallies: dict[str, dict[str, Tally]] = field(default_factory=dict)
    """By source and tool."""
    held: dict[str, Held] = field(default_factory=dict)
    """By source."""
    stops: list[Stop] = field(default_factory=list)

    def add(self, other: "Found") -> None:
        """
        Add what was found out about the sessions that follow.
        """
        for source, tallies in other.tallies.items():
            own = self.tallies.setdefault(source, {})
            for tool, tally in tallies.items():
                own.setdefault(tool, Tally(tool)).add(tally)
            self.held.setdefault(source, Held()).add(other.held[source])
        self.stops += other.stops[: MAX_STOPS - len(self.stops)]


class Judge:
    """
    One policy over any number of recorded sessions, one after the other.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.found = Found()
        self._lenses: dict[tuple[bool, bool], Lens] = {}

    def judge(self, calls: Sequence[RecordedCall]) -> list[Said]:
        """
        Returns the word of the policy on each call of a session; *calls* are all that it has.
        """
        first = calls[0]
        key = first.ts_ms is not None, first.turn is not None
        own = self._lenses.get(key)
        if own is None:
            own = self._lenses[key] = lens(self.policy.chain, timed=key[0], turned=key[1])
        held = self.found.held.setdefault(first.source, Held())
        held.sessions += 1
        held.timeless += not own.timed
        held.turnless += not own.turned
        held.single += not own.turned and not own.timed
        track = Track(own, held, self.found.tallies.setdefault(first.source, {}), turn=0 if own.turned else None)
        said = [self._judge(track, call) for call in calls]
        for response in track.responses.values():
            if not response.ran:
                response.tally.saved_responses += 1
                response.tally.saved_tokens += response.tokens
                response.tally.saved_micro_usd += response.cost
        return said

    def _judge(self, track: Track, call: RecordedCall) -> Said:
        own, state, tool = track.lens, track.state, call.tool
        tally = track.tally(tool)
        now = _time(track, call)
        if call.tokens_in is not None or call.turn != track.turn or call.tokens_out is not None or call.cost_usd:
            self._respond(track, call, now, tally)
        plan = own.plan(tool, call.read_only, call.polling)
        track.held.blind += call.arguments is None
        track.calls = number = track.calls + 1
        made = made_of(call, str(number), plan)
        outcome, evidence = end_of(call, plan.tool)
        worth = track.past.add(made.sig, evidence)
        over = state.exhausted is not None
        decision = track.decide(made, now, plan)
        if decision.envelope is None:
            if track.responses:
                track.responses[track.turn or 0].ran = True
            if not call.has_result:
                track.lose(decision, now)
            else:
                # A result of which nothing is known is like no other.
                known = -number if evidence is None else evidence
                shown = shown_by(call, known, outcome, made, plan, looks=own.looks)
                took = call.duration_ms
                if took and own.timed:
                    track.running.append((now + min(took, MOST), decision, shown, plan))
                else:
                    track.complete(decision, shown, plan, now)
        recorded: Recorded = "worked" if outcome.error_type is None else "failed"
        if worth != "new":
            recorded = "unknown" if worth == "unknown" else "repeat"
        tally.calls += 1
        tally.pointless_second += worth == "second"
        tally.pointless_later += worth == "later"
        if call.observed:
            tally.recorded_observed += 1
            tally.recorded_observed_worked += recorded == "worked"
        if decision.envelope is None and not decision.nudges and not decision.observed:
            return _ALLOWED[recorded]
        return self._count(track, call, decision, tally, worth, recorded, over=over)

    def _count(
        self,
        track: Track,
        call: RecordedCall,
        decision: Decision,
        tally: Tally,
        worth: Worth,
        recorded: Recorded,
        *,
        over: bool,
    ) -> Said:
        """
        Returns the word on a call that did not simply pass, counted into the figures. Its session was *over* before.
        """
        observed = tuple(dict.fromkeys(one.code for one in decision.observed if isinstance(one, Denial)))
        if observed:
            tally.observed.update(observed)
            tally.observed_calls += 1
            tally.observed_second += worth == "second"
            tally.observed_later += worth == "later"
            if recorded == "worked":
                tally.wrong_observed[observed[0]] += 1
        if decision.envelope is not None:
            said = Said("deny", decision.denials[0].code, recorded, observed)
            tally.count(decision.denials[0].code, recorded, further=over and track.refused)
            tally.stopped_second += worth == "second"
            tally.stopped_later += worth == "later"
            track.refused = over
        elif decision.nudges:
            # One that is claimed at once was approved first.
            said = Said("pending" if decision.claim_n else "nudge", decision.nudges[0][0], recorded, observed)
            for code, _ in decision.nudges:
                tally.nudged[code] += 1
                tally.wrong_nudges[code] += recorded == "worked"
        else:
            said = Said("allow", None, recorded, observed)
        if (said.decision == "deny" or observed) and len(self.found.stops) < MAX_STOPS:
            code, refused = (said.code or "", True) if said.decision == "deny" else (observed[0], False)
            place = call.source, call.session_id, call.call_index, call.tool
            self.found.stops.append(Stop(*place, code, recorded, refused, call.run))
        return said

    def _respond(self, track: Track, call: RecordedCall, now: int, tally: Tally) -> None:
        """
        A model response came ahead of *call*, or more of its usage did.
        """
        number, tokens_in, tokens_out = call.turn, call.tokens_in, call.tokens_out
        begun = number is not None and number != track.turn and track.lens.turned
        if begun:
            track.turn = number
            track.responses.setdefault(number or 0, Response(tally))
        tokens = min((tokens_in or 0) + (tokens_out or 0), MOST)
        cost = None if call.cost_usd is None and not self.policy.prices else self._cost(call)
        known = tokens_in is not None or tokens_out is not None or cost is not None
        # Only the library's own records tell that a price was asked for.
        priced = call.decision is not None and (known or call.model is not None)
        charged = None
        if known or priced:
            track.held.responses += 1
            track.held.unpriced += cost is None
            tally.tokens += tokens
            tally.micro_usd += cost or 0
            if track.responses:
                response = track.responses[track.turn or 0]
                response.tokens += tokens
                response.cost += cost or 0
            model = call.model or "" if priced else None
            charged = {"cost": cost, "tokens": tokens, "model": model, "untold": not known, "unasked": model is None}
        if begun or charged is not None:
            if track.running:
                track.settle(now)
            track.lens.engine.apply(_respond, now, (track.state,), None, now, begun, charged)

    def _cost(self, call: RecordedCall) -> int | None:
        if call.cost_usd is not None:
            return min(micro_dollars(call.cost_usd), MOST)
        price = None if call.model is None else own_price(call.model, self.policy.prices)
        return None if price is None else cost_of(Usage(call.tokens_in or 0, call.tokens_out or 0), price)

    def judgement(self) -> Judgement:
        """
        Returns the figures so far.
        """
        chain = self.policy.chain
        tools: dict[str, Tally] = {}
        tallies: list[Tally] = []
        for source, of_tools in self.found.tallies.items():
            whole = summed(source, list(of_tools.values()))
            whole.sessions, whole.one_by_one = self.found.held[source].sessions, self.found.held[source].single
            tallies.append(whole)
            for name, tally in of_tools.items():
                tools.setdefault(name, Tally(name)).add(tally)
        plans = [chain.plan(name) for name in tools]
        lacks = not_judged(
            chain,
            self.found.held,
            specified=any(plan.arguments is not None for plan in plans),
            stable=any(plan.tool.repeats == "evidence" for plan in plans),
        )
        parted = one_by_one(chain, self.found.held)
        most = sorted(tools.values(), key=lambda tally: (-tally.calls, tally.source))[:SHOWN_TOOLS]
        return Judgement(
            self.policy.name,
            tallies,
            lacks | no_scopes(self.policy.scopes),
            list(self.found.stops),
            {tally.source: tally for tally in most},
            {path: model.name for path, model in chain.models.loaded.items()},
            notices=[] if parted is None else [parted],
        )


_ALLOWED: Final[dict[Recorded, Said]] = {
    "worked": Said("allow", None, "worked"),
    "repeat": Said("allow", None, "repeat"),
    "failed": Said("allow", None, "failed"),
    "unknown": Said("allow", None, "unknown"),
}


def _time(track: Track, call: RecordedCall) -> int:
    """
    The time of a call, in its session's own order.
    """
    present, at_ms = track.state.now_ms, call.ts_ms
    if not track.lens.timed:
        return present + STEP_MS
    if at_ms is not None and at_ms <= MOST:
        return max(at_ms, present)
    # Its place in the transcript is all that is known: what was called before it is over.
    return max([present, *(end_ms for end_ms, *_ in track.running)])


def made_of(call: RecordedCall, call_id: str, plan: Plan) -> ToolCall:
    """
    Returns *call* under the id *call_id*. Its signature is the recorded one if arguments are not to be checked.
    """
    tool, arguments, sig = call.tool, call.arguments, call.sig
    if plan.arguments is None or arguments is None:
        if sig is not None:
            return ToolCall(tool, arguments, call_id, None, (sig + SIGN & SIG_BITS) - SIGN)
        if type(arguments) is dict:
            labels = (*plan.tool.labels, *call.labels)
            bare = unlabelled(arguments, labels) if labels else arguments
            signed = (bare is arguments and call.signed) or sign(tool, bare)
            return ToolCall.signed(tool, arguments, call_id, signed, (), None)
    return tool_call(tool, arguments, call_id, plan.arguments, (*plan.tool.labels, *call.labels))
