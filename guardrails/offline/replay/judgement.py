"""
Judge a policy session by session: what it would have done, and whether that was right.

Recorded calls go through the same core as live ones, by a clock that their own times move. The result of a denied call
is not shown to the guards, for live it would not exist.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from guardrails.core.result.failures import may_fail
from guardrails.core.values.types import micro_dollars
from guardrails.core.values.usage import Usage, cost_of
from guardrails.offline.transcripts.calls import RecordedCall
from guardrails.policy.policy import Policy

from .counting import Said, count_denied, count_denied_without_cap, explained, said_of
from .evidence import BITS, SUCCESS, Worth, evidence_of, outcome_of_call, shown_by
from .lacking import Held, no_scopes, not_judged, one_by_one
from .lens import Lens, lens
from .result import MAX_STOPS, Judgement, Kind, Stop, Tally, add
from .track import Response, Side, Track, made_of


STEP_MS: Final = 1 << 32
"""From one call to the next where there are no times: more than any wait."""
MOST: Final = 1 << 53
"""Milliseconds, tokens or micro-dollars above this are no such thing; a state has no room for them."""
SHOWN_TOOLS: Final = 200


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
    One policy over any number of recorded sessions, one after the other.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.stops: list[Stop] = []
        self.tallies: dict[str, dict[str, Tally]] = {}
        """By source and tool."""
        self.held: dict[str, Held] = {}
        self._lenses: dict[tuple[bool, bool], Lens] = {}

    def judge(self, calls: Sequence[RecordedCall]) -> list[Said]:
        """
        Returns the word of the policy on each call of a session; *calls* are all that it has.
        """
        first = calls[0]
        lens = self._lens(first.ts_ms is not None, first.turn is not None)
        held = self.held.setdefault(first.source, Held())
        tallies = self.tallies.setdefault(first.source, {})
        track = Track(lens, Side(lens.engine), held, tallies, turn=Response(0 if lens.turned else None))
        held.sessions += 1
        held.timeless += not lens.timed
        held.turnless += not lens.turned
        held.single += not lens.turned and not lens.timed
        return [self._judge(track, call) for call in calls]

    def _judge(self, track: Track, call: RecordedCall) -> Said:
        lens, main, tool = track.lens, track.main, call.tool
        tally = track.tally(tool)
        now, at_ms = main.state.now_ms, call.ts_ms
        if lens.timed and at_ms is not None and at_ms <= MOST:
            if at_ms > now:
                now = at_ms
        else:
            now = self._now(track, now)
        if call.tokens_in is not None or call.turn != track.turn.number or call.tokens_out is not None or call.cost_usd:
            self._respond(track, call, now, tally)
        plan = lens.plan(tool, call.read_only, call.polling)
        track.held.blind += call.arguments is None
        track.calls = number = track.calls + 1
        made = made_of(call, str(number), plan)
        outcome, evidence = SUCCESS, call.plain_hash
        plain = plan.tool.result is None and (call.result is None or not may_fail(call.result))
        if plain and call.is_error is False and evidence is not None and call.has_result:
            evidence &= BITS
        else:
            outcome = outcome_of_call(call, plan.tool)
            evidence = evidence_of(call, outcome is not SUCCESS)
        worth = track.past.add(made.sig, evidence, call.result, made)
        tally.calls += 1
        if worth == "second":
            tally.pointless_second += 1
        elif worth == "later":
            tally.pointless_later += 1
        end, duration = now, call.duration_ms
        if duration is not None and lens.timed:
            end += duration if duration < MOST else MOST
        if evidence is None:
            # A result of which nothing is known is like no other.
            evidence = -number
        shown = shown_by(call, evidence, outcome, looks=lens.looks) if call.has_result else None
        over = main.state.exhausted is not None
        decision = main.step(made, now, plan, shown, end)
        free = track.free
        if free is not None:
            free_over = free.state.exhausted is not None
            other = free.step(made, now, plan, shown, end)
            if other.envelope is not None:
                count_denied_without_cap(tally, other.denials[0].code, worth, further=free_over and track.free_refused)
                track.free_refused = free_over
        if decision.envelope is None:
            track.turn.admitted = True
            if track.turn.stopped:
                track.saved(-1)
        said = said_of(decision, tally, worth)
        further = over and track.refused
        if said.decision == "deny":
            _deny(track, tally, decision.denials[0].code, worth, over=over)
        if said.code is not None or said.observed:
            said = explained(said, tally, worth, track.past, over=over, further=further)
            self._stop(call, track, said, worth)
        return said

    def _lens(self, timed: bool, turned: bool) -> Lens:
        found = self._lenses.get((timed, turned))
        if found is None:
            found = self._lenses[timed, turned] = lens(self.policy.chain, timed=timed, turned=turned)
        return found

    def _now(self, track: Track, present: int) -> int:
        """
        The time of a call that has none of its own.
        """
        if not track.lens.timed:
            return present + STEP_MS
        # Its place in the transcript is all that is known: what was called before it is over.
        return max([present, *(end_ms for end_ms, *_ in track.main.running)])

    def _respond(self, track: Track, call: RecordedCall, now: int, tally: Tally) -> None:
        """
        A model response came ahead of *call*, or more of its usage did.
        """
        turn, number, tokens_in, tokens_out = track.turn, call.turn, call.tokens_in, call.tokens_out
        begun = number is not None and number != turn.number and track.lens.turned
        if begun:
            turn.begin(number, call.tool)
        tokens = min((tokens_in or 0) + (tokens_out or 0), MOST)
        cost = None if call.cost_usd is None and not self.policy.prices else self._cost(call)
        known = tokens_in is not None or tokens_out is not None or cost is not None
        # Only the library's own records tell that a price was asked for.
        priced = call.decision is not None and (known or call.model is not None)
        if known or priced:
            track.held.responses += 1
            track.held.unpriced += cost is None
            saved = turn.stopped
            if saved:
                track.saved(-1)
            tally.tokens += tokens
            tally.micro_usd += cost or 0
            turn.tokens += tokens
            turn.cost += cost or 0
            if saved:
                track.saved(1)
        if begun or known or priced:
            model = call.model or "" if priced else None
            track.respond(now, cost, tokens if known else None, turn=begun, model=model)

    def _cost(self, call: RecordedCall) -> int | None:
        if call.cost_usd is not None:
            return min(micro_dollars(call.cost_usd), MOST)
        if call.model is None:
            return None
        return cost_of(Usage(call.tokens_in or 0, call.tokens_out or 0), call.model, self.policy.prices)

    def _stop(self, call: RecordedCall, track: Track, said: Said, worth: Worth) -> None:
        code = said.code or said.observed[0]
        kind: Kind = "deny" if said.decision == "deny" else "observe" if said.code is None else "nudge"
        if len(self.stops) < MAX_STOPS:
            self.stops.append(
                Stop(
                    call.source,
                    call.session_id,
                    call.call_index,
                    tool=call.tool,
                    decision=kind,
                    code=code,
                    pointless=None if worth == "unknown" else worth != "new",
                    run=call.run,
                    why=said.why,
                )
            )

    def judgement(self) -> Judgement:
        """
        Returns the figures so far.
        """
        chain = self.policy.chain
        tools: dict[str, Tally] = {}
        tallies: list[Tally] = []
        for source, of_tools in self.tallies.items():
            held = self.held[source]
            whole = Tally(source, sessions=held.sessions, one_by_one=held.single)
            for name, tally in of_tools.items():
                add(whole, tally)
                add(tools.setdefault(name, Tally(name)), tally)
            tallies.append(whole)
        plans = [chain.plan(name) for name in tools]
        specified, stable = (
            any(plan.arguments is not None for plan in plans),
            any(plan.tool.repeats == "evidence" for plan in plans),
        )
        parted = one_by_one(chain, self.held)
        most = sorted(tools.values(), key=lambda tally: (-tally.calls, tally.source))[:SHOWN_TOOLS]
        return Judgement(
            self.policy.name,
            tallies,
            not_judged(chain, self.held, specified=specified, stable=stable) | no_scopes(self.policy.scopes),
            list(self.stops),
            {tally.source: tally for tally in most},
            notices=[] if parted is None else [parted],
        )


def _deny(track: Track, tally: Tally, code: str, worth: Worth, *, over: bool) -> None:
    further = over and track.refused
    track.refused = over
    count_denied(tally, code, worth, further=further)
    if track.free is None:
        count_denied_without_cap(tally, code, worth, further=further)
    tally.saved_calls += 1
    turn = track.turn
    if turn.number and not turn.admitted and not turn.stopped:
        track.saved(1)
