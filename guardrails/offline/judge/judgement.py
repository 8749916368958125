"""
Judge a policy call by call: what it would have done, and whether that was right.

Recorded calls go through the same core as live ones, by a clock that their own times move. The result of a denied call
is not shown to the guards, for live it would not exist.
"""

from collections.abc import Mapping
from typing import Any, Final

from guardrails.core.outcome.plain_failures import may_fail
from guardrails.core.values.types import micro_dollars
from guardrails.core.values.usage import Usage, cost_of
from guardrails.offline.readers.base import RecordedCall
from guardrails.policy.policy import Policy

from .counting import Said, count_denied, count_denied_without_cap, explained, said_of
from .evidence import BITS, SUCCESS, Worth, evidence_of, outcome_of_call, shown_by
from .lacking import Held, no_scopes, not_judged, one_by_one
from .lens import Lens, lens
from .made import made_of
from .result import MAX_STOPS, Judgement, Kind, Stop, Tally, TimeLine, add
from .side import Side
from .track import Track, Turn
from .tracks import OpenTracks, Tracks


STEP_MS: Final = 1 << 32
"""From one call to the next where there are no times: more than any wait."""
MOST: Final = 1 << 53
"""Milliseconds, tokens or micro-dollars above this are no such thing; a state has no room for them."""
MAX_TOOLS: Final = 10_000
"""Names of tools that have figures of their own in one source; a model that makes up names cannot fill the memory."""
OTHER_TOOLS: Final = "(other tools)"
SHOWN_TOOLS: Final = 200
SHOWN_SESSIONS: Final = 100


class Judge:
    """
    One policy over any number of recorded calls, which may be of any number of sessions at once.
    """

    def __init__(self, policy: Policy, tracks: Tracks | None = None) -> None:
        self.policy = policy
        self.tracks: Tracks = OpenTracks() if tracks is None else tracks
        self.stops: list[Stop] = []
        self.tallies: dict[str, dict[str, Tally]] = {}
        """By source and tool."""
        self.held: dict[str, Held] = {}
        self.specified = self.stable = False
        self._lenses: dict[tuple[bool, bool], Lens] = {}
        # Of the session that was called last, which most often is called next.
        self._source = self._session_id = self._run = ""
        self._track: Track | None = None
        self._of_tools: dict[str, Tally] = {}
        self._held = Held()

    def judge(self, call: RecordedCall) -> Said:  # noqa: PLR0915  one way through, and the hot one
        """
        Returns the word of the policy on the next call of its session.
        """
        track = self._track
        if track is None or call.session_id != self._session_id or call.source != self._source or call.run != self._run:
            track = self._switch(call)
        lens, main, tool = track.lens, track.main, call.tool
        tally = self._of_tools.get(tool)
        if tally is None:
            tally = self._tally(tool, lens)
        now, at_ms = main.state.now_ms, call.ts_ms
        if lens.timed and at_ms is not None and at_ms <= MOST:
            if at_ms > now:  # noqa: PLR1730  hot path
                now = at_ms
        else:
            now = self._now(track, now)
        if call.tokens_in is not None or call.turn != track.turn.number or call.tokens_out is not None or call.cost_usd:
            self._respond(track, call, now, tally)
        plan = lens.plan(tool, call.read_only, call.polling)
        self._held.blind += call.arguments is None
        track.calls = number = track.calls + 1
        track.last = call.call_index
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
            end += duration if duration < MOST else MOST  # noqa: FURB136  hot path
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
                self._saved(track.turn, -1)
        said = said_of(decision, tally, worth)
        further = over and track.refused
        if said.decision == "deny":
            self._deny(track, tally, decision.denials[0].code, worth, over=over)
        if said.code is not None or said.observed:
            said = explained(said, tally, worth, track.past, over=over, further=further)
            self._stop(call, track, said, worth)
        return said

    def _switch(self, call: RecordedCall) -> Track:
        if self._track is not None:
            self._track.past.settle()
        source = call.source
        held = self.held.get(source)
        if held is None:
            held = self.held[source] = Held()
            self.tallies[source] = {}
        key = source, call.session_id, call.run
        track = self.tracks.get(key, self.lens)
        if track is None:
            lens = self.lens(call.ts_ms is not None, call.turn is not None)
            track = Track(lens, Side(lens.engine), turn=Turn(0 if lens.turned else None), first=call.call_index)
            self.tracks.put(key, track)
            held.sessions += 1
            held.timeless += not lens.timed
            held.turnless += not lens.turned
            held.single += not lens.turned and not lens.timed
        self._source, self._session_id, self._run = key
        self._track, self._held, self._of_tools = track, held, self.tallies[source]
        return track

    def lens(self, timed: bool, turned: bool) -> Lens:  # noqa: FBT001
        """
        Returns the chain for sessions of this kind.
        """
        found = self._lenses.get((timed, turned))
        if found is None:
            found = self._lenses[timed, turned] = lens(self.policy.chain, timed=timed, turned=turned)
        return found

    def _tally(self, tool: str, lens: Lens) -> Tally:
        plan = lens.engine.chain.plan(tool)
        self.specified = self.specified or plan.arguments is not None
        self.stable = self.stable or plan.tool.stable
        name = tool if len(self._of_tools) < MAX_TOOLS else OTHER_TOOLS
        return self._of_tools.setdefault(name, Tally(self._source))

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
            held = self._held
            held.responses += 1
            if cost is None:
                held.unpriced += 1
            saved = turn.stopped
            if saved:
                self._saved(turn, -1)
            tally.tokens += tokens
            tally.micro_usd += cost or 0
            turn.tokens += tokens
            turn.cost += cost or 0
            if saved:
                self._saved(turn, 1)
        if begun or known or priced:
            model = call.model or "" if priced else None
            track.respond(now, cost, tokens if known else None, turn=begun, model=model)

    def _cost(self, call: RecordedCall) -> int | None:
        if call.cost_usd is not None:
            return min(micro_dollars(call.cost_usd), MOST)
        if call.model is None:
            return None
        return cost_of(Usage(call.tokens_in or 0, call.tokens_out or 0), call.model, self.policy.prices)

    def _saved(self, turn: Turn, sign: int) -> None:
        tally = self._of_tools.get(turn.tool) or self._of_tools[OTHER_TOOLS]
        tally.saved_responses += sign
        tally.saved_tokens += sign * turn.tokens
        tally.saved_micro_usd += sign * turn.cost
        turn.stopped = sign > 0

    def _deny(self, track: Track, tally: Tally, code: str, worth: Worth, *, over: bool) -> None:
        further = over and track.refused
        track.refused = over
        count_denied(tally, code, worth, further=further)
        if track.free is None:
            count_denied_without_cap(tally, code, worth, further=further)
        tally.saved_calls += 1
        turn = track.turn
        if turn.number and not turn.admitted and not turn.stopped:
            self._saved(turn, 1)

    def _stop(self, call: RecordedCall, track: Track, said: Said, worth: Worth) -> None:
        index, source, session_id, run = call.call_index, call.source, call.session_id, call.run
        code = said.code or said.observed[0]
        kind: Kind = "deny" if said.decision == "deny" else "observe" if said.code is None else "nudge"
        track.stop((index, kind, code))
        if len(self.stops) < MAX_STOPS:
            at_ms = call.ts_ms if track.lens.timed else None
            pointless = None if worth == "unknown" else worth != "new"
            self.stops.append(
                Stop(
                    source,
                    session_id,
                    index,
                    tool=call.tool,
                    decision=kind,
                    code=code,
                    at_ms=at_ms,
                    pointless=pointless,
                    run=run,
                    why=said.why,
                )
            )

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the figures so far as JSON has them; the open sessions are in `tracks`.
        """
        return {
            "tallies": {
                source: {name: tally.values() for name, tally in of_tools.items()}
                for source, of_tools in self.tallies.items()
            },
            "held": {source: held.to_list() for source, held in self.held.items()},
            "stops": [stop.to_list() for stop in self.stops],
            "declared": [self.specified, self.stable],
        }

    def take_over(self, data: Mapping[str, Any]) -> None:
        """
        Go on from the data of `to_dict`.
        """
        for source, of_tools in data["tallies"].items():
            self.tallies[source] = {name: Tally.from_dict(tally) for name, tally in of_tools.items()}
        self.held = {source: Held(*figures) for source, figures in data["held"].items()}
        self.stops = [Stop(*stop) for stop in data["stops"]]
        self.specified, self.stable = data["declared"]

    def judgement(self) -> Judgement:
        """
        Returns the figures so far.
        """
        tools: dict[str, Tally] = {}
        tallies: list[Tally] = []
        for source, of_tools in self.tallies.items():
            held = self.held[source]
            whole = Tally(source, sessions=held.sessions, one_by_one=held.single)
            for name, tally in of_tools.items():
                add(whole, tally)
                add(tools.setdefault(name, Tally(name)), tally)
            tallies.append(whole)
        parted = one_by_one(self.policy.chain, self.held)
        most = sorted(tools.values(), key=lambda tally: (-tally.calls, tally.source))[:SHOWN_TOOLS]
        return Judgement(
            self.policy.name,
            tallies,
            not_judged(self.policy.chain, self.held, specified=self.specified, stable=self.stable)
            | no_scopes(self.policy.scopes),
            list(self.stops),
            {tally.source: tally for tally in most},
            [TimeLine(*key, track.cells()) for key, track in self.tracks.busiest(SHOWN_SESSIONS, self.lens)],
            notices=[] if parted is None else [parted],
            spilled_sessions=self.tracks.spilled,
        )
