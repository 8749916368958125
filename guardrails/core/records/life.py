"""
One life of a session, lived again from its records.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from guardrails.core.chain import Chain, Plan
from guardrails.core.decision import Decision, Happened
from guardrails.core.engine import Engine
from guardrails.core.events import event
from guardrails.core.guards.amounts import settings_of
from guardrails.core.refusals import stopped
from guardrails.core.state import ADMISSION_MS, SessionState, overdue
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import Denial, ToolCall

from .record import newer_told, newer_version
from .recorded import WRONG, Record, advised_of, call_of, no_good, prepared_of


MAX_WAYS: Final = 1_024


class Way(NamedTuple):
    """
    The declarations that applied to a tool when it was called.
    """

    chain: Chain
    plan: Plan


class Ways:
    """
    The settings of a chain, with the declarations of tools from records: code declares tools, and may do so between two
    calls.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._made: dict[tuple[Any, ...], Way] = {}

    def of(self, record: Record) -> Way:
        """
        Returns the declarations that applied to the call of *record*.
        """
        key = tuple(map(record.get, _DECLARED))
        way = self._made.get(key)
        if way is None:
            if len(self._made) >= MAX_WAYS:
                self._made.clear()
            way = self._made[key] = self._way(record)
        return way

    def _way(self, record: Record) -> Way:
        chain = _knowing(self._chain, record["tool"], record["known"])
        if chain.plan(record["tool"]).tool.held != record.get("held", ""):
            chain = _holding(chain, record["tool"], record.get("held", ""))
        plan = chain.plan(record["tool"])
        repeats: Any = "allow" if record["polling"] else "evidence" if record["stable"] else record.get("repeats")
        declared: dict[str, Any] = {name: record.get(name) for name in ("idempotent", "read_only", "destructive")}
        tool = replace(plan.tool, retryable=record["retryable_declared"], repeats=repeats, **declared)
        own = {
            "cost": record["estimate"],
            "tokens": record.get("estimate_tokens", 0),
            "timeout_ms": record["timeout_ms"],
            "lasts_ms": ADMISSION_MS if record["timeout_ms"] is None else record["timeout_ms"],
            "once": tool.idempotent is False or tool.destructive is True,
        }
        return Way(chain, plan.but(tool=tool, changes=record["mutates"], **own))


_DECLARED: Final = (
    *("tool", "known", "stable", "idempotent", "polling", "repeats", "read_only", "destructive", "retryable_declared"),
    *("estimate", "estimate_tokens", "timeout_ms", "mutates", "held"),
)


def _holding(chain: Chain, tool: str, held: str) -> Chain:
    """
    Returns *chain* with *tool* held for the reason *held*, or not held if that is empty.
    """
    own = chain.tools.get(tool) or Tool(name=tool)
    return chain.with_tools([replace(own, held=held)]).knowing(chain.known)


def _knowing(chain: Chain, tool: str, known: bool | None) -> Chain:
    """
    Returns *chain* with *tool* known or not, as the session named its tools. None if the session named none.
    """
    if known and (chain.known is None or tool not in chain.known):
        return chain.with_tools([Tool(name=tool)])
    if known is False and chain.known is None:
        return chain.with_tools([Tool(name=f"not {tool}")])
    return chain


class Replayed(NamedTuple):
    """
    One recorded call, decided again.
    """

    record: Record
    decision: Decision

    @property
    def same(self) -> bool:
        """
        The decision is the recorded one, with all that guards had to say. Raises SessionError if the record misstates that.
        """
        try:
            return self._same()
        except WRONG as error:
            raise no_good(error, self.record) from error

    def _same(self) -> bool:
        denials = [denial.code for denial in self.decision.denials]
        return (
            self.record["seq"] == self.decision.seq
            and denials == [code for code, *_ in self.record["denials"]]
            and (self.record["decision"] == "pending") == self.decision.pending
            and self.record["nudges"] == [code for code, _ in self.decision.nudges]
            and self.record["observed"] == [denial.code for denial in self.decision.observed]
        )


class Beside(NamedTuple):
    """
    The scopes and the family that an event concerns beside its own session.
    """

    scopes: tuple[tuple[str, str, Chain], ...] = ()
    """(name, id, chain)"""
    states: tuple[SessionState, ...] = ()
    """Those of the scopes."""
    clocks: tuple[int, ...] = ()
    """The time by the clock of each scope: a record has each by itself."""
    root: SessionState | None = None
    """That of its family's root."""


ALONE: Final = Beside()


class Rules(NamedTuple):
    """
    A policy, as a replay needs it.
    """

    chain: Chain
    scopes: Mapping[str, Chain]


NO_OTHERS: Final[Mapping[str, Rules]] = {}


class Life:
    """
    A life of the session *session_id*. Its *state* tells its place, and changes with each event.

    *others* are policies that it may have gone by later, by the hashes of their files.
    """

    def __init__(
        self, session_id: str, chain: Chain, state: SessionState, others: Mapping[str, Rules] = NO_OTHERS
    ) -> None:
        self.state = state
        self.scopes: Mapping[str, Chain] | None = None
        """Those of the policy that it went over to."""
        self._id = session_id
        self._others = others
        self._limits: dict[str, Any] = {}
        self._chain = chain
        self._ways = Ways(chain)
        self._decisions: dict[int, tuple[Decision, Way]] = {}

    def live(self, record: Record, beside: Beside = ALONE) -> Replayed | None:
        """
        Let the event of *record*, the next of this session, happen again, in *beside* too. A call is decided anew.

        Raises SessionError if a number is missing, since the events there are not known, and for a value that is no
        record.
        """
        try:
            return self._live(record, beside)
        except WRONG as error:
            raise no_good(error, record) from error

    def _live(self, record: Record, beside: Beside) -> Replayed | None:
        version = newer_version(record)
        if version is not None:
            raise SessionError(f"a record of `{self._id}` is of {newer_told(version)}")
        name, n, now = record["event"], record["n"], record["ts_ms"]
        if name == "expire":
            self._apply(name, record, self._chain, beside)
            return None
        if n > self.state.n + 1 + len(overdue(self.state, now)):
            raise SessionError(f"the records of `{self._id}` have a gap before event {n}")
        if name == "open" and "limits" in record:
            self._limits = settings_of(dict(record["limits"]))
            self._chain = self._chain.with_budget(**self._limits)
            self._ways = Ways(self._chain)
        if name == "call":
            way = self._ways.of(record)
            stop = stopped(str(record["stop"])) if "stop" in record else None
            decision = self._decide(call_of(record), way, record, beside, claims=record["claimed"], stop=stop)
            self._decisions[n] = decision, way
            return Replayed(record, decision)
        if name == "settle":
            self._settle(record, now, beside)
        elif name == "claim":
            decision, way = self._decisions[record["call_n"]]
            call = replace(decision.call, id=record.get("id", decision.call.id))
            claims = record.get("claimed", True)
            self._decisions[record["call_n"]] = self._decide(call, way, record, beside, claims=claims), way
        elif name == "park":
            # It is of the call before; one that the records do not have is an event all the same.
            if n > self.state.n:
                self._apply("note", record, self._chain, beside)
        else:
            if name == "policy":
                self._go_over(record)
            self._event(name, record, beside)
        return None

    def _event(self, name: str, record: Record, beside: Beside) -> None:
        values: dict[str, Any] = dict(record)
        of_call = name in ("suspend", "unpark") or (name == "release" and "call_n" in record)
        if of_call and (name != "unpark" or not self._waits(record)):
            known = self._decisions.get(record["call_n"])
            if known is None or name == "unpark":
                name = "note"
            else:
                values["call"] = known[0].call
        if name == "extend":
            values.pop("limits", None)
        if name == "policy":
            self._apply(name, values, self._chain, beside)
        else:
            self._apply(name, values, self._chain.with_least(record.get("least", 0)), beside)

    def _waits(self, record: Record) -> bool:
        if record["sig"] in self.state.uncertain:
            return True
        return any(
            one.seq == record["seq"] and one.stage in ("parked", "approved") for one in self.state.pending.values()
        )

    def _decide(
        self, call: ToolCall, way: Way, record: Record, beside: Beside, *, claims: bool, stop: Denial | None = None
    ) -> Decision:
        engine, states = self._engine(way.chain, beside)
        return engine.decide(call, way.plan, record["ts_ms"], claims, stop, states, beside.clocks)

    def _go_over(self, record: Record) -> None:
        rules = self._others.get(record["after"])
        if rules is None:
            raise SessionError(
                f"from event {record['n']} on `{self._id}` went by a changed policy ({record['after']}, before it "
                f"{record['before']}): that one is needed too"
            )
        self.scopes = rules.scopes
        self._chain = rules.chain.with_budget(**self._limits) if self._limits else rules.chain
        self._ways = Ways(self._chain)

    def _engine(self, chain: Chain, beside: Beside) -> tuple[Engine, tuple[SessionState, ...]]:
        engine = Engine(chain, self._id, scopes=beside.scopes, child=beside.root is not None)
        return engine, (self.state, *beside.states, *(() if beside.root is None else (beside.root,)))

    def _apply(self, name: str, values: Mapping[str, Any], chain: Chain, beside: Beside) -> Happened:
        now = values["ts_ms"]
        engine, states = self._engine(chain, beside)
        return engine.apply(event(name, values, now), now, states, beside.clocks)

    def _settle(self, record: Record, now: int, beside: Beside) -> None:
        settled = self._decisions.get(record["call_n"])
        if settled is not None:
            decision, way = settled
            engine, states = self._engine(way.chain, beside)
            told = _as_told(decision, record)
            engine.complete(told, prepared_of(record), way.plan, now, advised_of(record), states, beside.clocks)
        elif record["late"]:
            # Of another life: its number is all that it has here.
            self._apply("note", record, self._chain, beside)
        else:
            raise SessionError(f"event {record['n']} settles a call that is not in the records")


def _as_told(decision: Decision, record: Record) -> Decision:
    """
    Returns *decision* as it was when *record* was written: the call may have been taken up under another id since.
    """
    own = record.get("id", decision.call.id)
    return decision if own == decision.call.id else decision.of(replace(decision.call, id=own))
