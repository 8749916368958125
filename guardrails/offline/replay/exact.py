"""
Decide again what was recorded: lives of sessions, lived again from their records by the same engine.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, Final, NamedTuple

from guardrails.core.chain import Chain, Plan
from guardrails.core.decision import Decision, Happened
from guardrails.core.engine import Engine
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.events import event
from guardrails.core.guards.amounts import settings_of
from guardrails.core.guards.similarity import NO_SKETCH
from guardrails.core.prepare import Prepared
from guardrails.core.record import newer_told, newer_version
from guardrails.core.refusals import stopped
from guardrails.core.retries.serving import Advised
from guardrails.core.state import ADMISSION_MS, SessionState, overdue
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import Denial, Outcome, Problem, ToolCall


Record = Mapping[str, Any]
Stream = tuple[str, ...]
"""A thing that orders some events: a life, a scope, a family."""
LifeKey = tuple[str, str]
"""(session id, run)"""


WRONG: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of a record whose fields are missing, or hold a value that no record has there."""


@contextmanager
def sound(record: object = None) -> Iterator[None]:
    """
    Raises SessionError if *record*, or one of several, turns out to be no record of this library.
    """
    try:
        yield
    except WRONG as error:
        n, own = (record.get("n"), record.get("session_id")) if isinstance(record, Mapping) else (None, None)
        which = f"the record of event {n!r:.20} of `{own!s:.80}`" if n is not None else "a record"
        said = f"lacks or misstates {error!s:.100}" if isinstance(error, KeyError) else f"is no good: {error!s:.200}"
        raise SessionError(f"{which} {said}") from error


def call_of(record: Record) -> ToolCall:
    """
    Returns the call of *record*.
    """
    problems = tuple(Problem(*problem) for problem in record["problems"])
    places, sketch = record.get("places"), record.get("sketch")
    if sketch is None and any(str(path).startswith("arguments") for path in record.get("erased") or ()):
        sketch = NO_SKETCH
    return ToolCall(
        record["tool"],
        record.get("arguments"),
        record["id"],
        None,
        record["sig"],
        problems,
        places=None if places is None else {guard: tuple(answers) for guard, answers in places.items()},
        sketch=sketch,
    )


def prepared_of(record: Record) -> Prepared:
    """
    Returns the outcome of *record*, with its hashes.
    """
    outcome = Outcome(
        None,
        record["error_type"],
        record["error_message"] or "",
        record["http_status"],
        record["retry_after_ms"],
        cost=record["cost"],
        tokens=record["tokens"],
    )
    own = None
    if record["claims"] is not None:
        retryable, wait_ms, retries = record["claims"]
        own = Envelope(
            "success" if outcome.error_type is None else "error",
            retryable=retryable,
            retry_after_ms=wait_ms,
            max_retries_remaining=retries,
            sandbox=record.get("sandbox"),
        )
    evidence = record["result_hash" if outcome.error_type is None else "result_hash_masked"]
    unknown = record.get("uncertain", False)
    unread = record.get("unread", False)
    return Prepared(outcome, None, evidence, own, record.get("steady", 0), record.get("empty", 0), unknown, unread)


def advised_of(record: Record) -> Advised | None:
    """
    Returns the model's words on the failure of *record*. Returns None if no model judged it.
    """
    if record.get("model_version") is None:
        return None
    # What only a budget denied, the model had advised.
    retryable = bool(record["retryable"]) or "no_retry" in record
    return Advised(retryable, record["wait_ms"], record["max_retries_remaining"] or 0)


MAX_WAYS: Final = 1_024
_DECLARED: Final = (
    *("tool", "known", "stable", "idempotent", "polling", "repeats", "read_only", "destructive", "retryable_declared"),
    *("estimate", "estimate_tokens", "timeout_ms", "mutates", "held"),
)
Way = tuple[Chain, Plan]
"""A chain with the declarations that applied to a tool when it was called, and the plan for the tool."""


def way_of(chain: Chain, record: Record) -> Way:
    """
    Returns *chain* with the declarations of the tool that *record* calls: code declares them, also between two calls.
    """
    name, known, held = record["tool"], record["known"], record.get("held", "")
    if known and (chain.known is None or name not in chain.known):
        chain = chain.with_tools([Tool(name=name)])
    elif known is False and chain.known is None:
        # The session named its tools, and not this one.
        chain = chain.with_tools([Tool(name=f"not {name}")])
    if chain.plan(name).tool.held != held:
        own = chain.tools.get(name) or Tool(name=name)
        chain = chain.with_tools([replace(own, held=held)]).knowing(chain.known)
    plan, timeout_ms = chain.plan(name), record["timeout_ms"]
    repeats: Any = "allow" if record["polling"] else "evidence" if record["stable"] else record.get("repeats")
    declared: dict[str, Any] = {name: record.get(name) for name in ("idempotent", "read_only", "destructive")}
    tool = replace(plan.tool, retryable=record["retryable_declared"], repeats=repeats, **declared)
    plan = plan.but(
        tool=tool,
        changes=record["mutates"],
        cost=record["estimate"],
        tokens=record.get("estimate_tokens", 0),
        timeout_ms=timeout_ms,
        lasts_ms=ADMISSION_MS if timeout_ms is None else timeout_ms,
        once=tool.idempotent is False or tool.destructive is True,
    )
    return chain, plan


class Replayed(NamedTuple):
    """
    One recorded call, decided again.
    """

    record: Record
    decision: Decision

    @property
    def recorded(self) -> str:
        """
        The recorded decision, with all that guards had to say: `nudge (nudge loops.wait)`.
        """
        record = self.record
        return _said(record["decision"], [code for code, *_ in record["denials"]], record["nudges"], record["observed"])

    @property
    def decided(self) -> str:
        """
        The same of the decision of now.
        """
        found, denials, nudges = self.decision, self.decision.denials, [code for code, _ in self.decision.nudges]
        word = "pending" if found.pending else "deny" if denials else "nudge" if nudges else "allow"
        return _said(word, [one.code for one in denials], nudges, [one.code for one in found.observed])

    @property
    def same(self) -> bool:
        """
        The decision is the recorded one. Raises SessionError if the record misstates that.
        """
        with sound(self.record):
            record, decision = self.record, self.decision
            alike = record["seq"] == decision.seq and len(record["denials"]) == len(decision.denials)
            return alike and self.recorded == self.decided


def _said(decision: str, denials: list[str], nudges: list[str], observed: list[str]) -> str:
    codes = [*denials, *(f"nudge {code}" for code in nudges), *(f"observed {code}" for code in observed)]
    return f"{decision} ({', '.join(dict.fromkeys(codes))})" if codes else decision


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
        self._decisions: dict[int, tuple[Decision, Way]] = {}
        self._go_by(chain)

    def _go_by(self, chain: Chain) -> None:
        self._chain = chain.with_budget(**self._limits) if self._limits else chain
        self._ways: dict[tuple[Any, ...], Way] = {}

    def live(self, record: Record, beside: Beside = ALONE) -> Replayed | None:
        """
        Let the event of *record*, the next of this session, happen again, in *beside* too. A call is decided anew.

        Raises SessionError if a number is missing, since the events there are not known, and for a value that is no
        record.
        """
        with sound(record):
            return self._live(record, beside)

    def _live(self, record: Record, beside: Beside) -> Replayed | None:
        version = newer_version(record)
        if version is not None:
            raise SessionError(f"a record of `{self._id}` is of {newer_told(version)}")
        name, n, now = record["event"], record["n"], record["ts_ms"]
        if name != "expire" and n > self.state.n + 1 + len(overdue(self.state, now)):
            raise SessionError(f"the records of `{self._id}` have a gap before event {n}")
        if name == "open" and "limits" in record:
            self._limits = settings_of(dict(record["limits"]))
            self._go_by(self._chain)
        if name == "call":
            stop = stopped(str(record["stop"])) if "stop" in record else None
            decision = self._decide(call_of(record), self._way(record), record, beside, record["claimed"], stop)
            return Replayed(record, decision)
        if name == "settle":
            self._settle(record, now, beside)
        elif name == "claim":
            decision, way = self._decisions[record["call_n"]]
            call = replace(decision.call, id=record.get("id", decision.call.id))
            self._decide(call, way, record, beside, record.get("claimed", True))
        elif name != "park" or n > self.state.n:
            self._event(name, record, beside)
        return None

    def _event(self, name: str, record: Record, beside: Beside) -> None:
        values = dict(record)
        if name in ("suspend", "unpark") or (name == "release" and "call_n" in record):
            known = self._decisions.get(record["call_n"])
            if name == "unpark" and not self._waits(record, beside):
                name = "note"
            elif name != "unpark":
                name, values["call"] = (name, known[0].call) if known is not None else ("note", None)
        elif name == "park":
            # It is of the call before; one that the records do not have is an event all the same.
            name = "note"
        elif name == "extend":
            values.pop("limits", None)
        if name == "policy":
            self._go_over(record)
        alone = name in ("policy", "expire", "note")
        chain = self._chain if alone else self._chain.with_least(record.get("least", 0))
        self._apply(name, values, chain, beside)

    def _waits(self, record: Record, beside: Beside) -> bool:
        waiting = (one.seq for one in self.state.pending.values() if one.stage in ("parked", "approved"))
        family = self.state if beside.root is None else beside.root
        return record["sig"] in family.uncertain or record["seq"] in waiting

    def _way(self, record: Record) -> Way:
        key = tuple(map(record.get, _DECLARED))
        way = self._ways.get(key)
        if way is None:
            if len(self._ways) >= MAX_WAYS:
                self._ways.clear()
            way = self._ways[key] = way_of(self._chain, record)
        return way

    def _decide(
        self, call: ToolCall, way: Way, record: Record, beside: Beside, claims: bool, stop: Denial | None = None
    ) -> Decision:
        engine, states = self._engine(way[0], beside)
        decision = engine.decide(call, way[1], record["ts_ms"], claims, stop, states, beside.clocks)
        self._decisions[record["n" if record["event"] == "call" else "call_n"]] = decision, way
        return decision

    def _go_over(self, record: Record) -> None:
        rules = self._others.get(record["after"])
        if rules is None:
            raise SessionError(
                f"from event {record['n']} on `{self._id}` went by a changed policy ({record['after']}, before it "
                f"{record['before']}): that one is needed too"
            )
        self.scopes = rules.scopes
        self._go_by(rules.chain)

    def _engine(self, chain: Chain, beside: Beside) -> tuple[Engine, tuple[SessionState, ...]]:
        engine = Engine(chain, self._id, scopes=beside.scopes, child=beside.root is not None)
        return engine, (self.state, *beside.states, *(() if beside.root is None else (beside.root,)))

    def _apply(self, name: str, values: Mapping[str, Any], chain: Chain, beside: Beside) -> Happened:
        now = values["ts_ms"]
        engine, states = self._engine(chain, beside)
        return engine.apply(event(name, values, now), now, states, beside.clocks)

    def _settle(self, record: Record, now: int, beside: Beside) -> None:
        settled = self._decisions.get(record["call_n"])
        if settled is None:
            if not record["late"]:
                raise SessionError(f"event {record['n']} settles a call that is not in the records")
            # Of another life: its number is all that it has here.
            self._apply("note", record, self._chain, beside)
            return
        decision, (chain, plan) = settled
        engine, states = self._engine(chain, beside)
        own = record.get("id", decision.call.id)
        if own != decision.call.id:
            # The call was taken up under another id since.
            decision = decision.of(replace(decision.call, id=own))
        engine.complete(decision, prepared_of(record), plan, now, advised_of(record), states, beside.clocks)


def life_key(record: Record) -> LifeKey:
    return record["session_id"], record["run"]


def root_of(record: Record) -> str:
    return str(record["session_id"]).partition("/")[0]


def kin(records: Iterable[Record]) -> Iterator[list[Record]]:
    """
    Returns *records* in groups that must be replayed together: sessions that share something. Raises SessionError for what is no record.
    """
    group: dict[Stream, Stream] = {}

    def leader(of: Stream) -> Stream:
        while group.setdefault(of, of) != of:
            group[of] = of = group[group[of]]
        return of

    groups: dict[Stream, list[Record]] = {}
    with sound():
        placed = [(record, [*places_of(record)]) for record in records]
        for _, (first, *others) in placed:
            for stream in others:
                group[leader(stream)] = leader(first)
        for record, (first, *_) in placed:
            groups.setdefault(leader(first), []).append(record)
    yield from groups.values()


def places_of(record: Record) -> dict[Stream, tuple[int, int]]:
    """
    Returns all that orders the event of *record*, with its place in each.
    """
    session_id, run = life_key(record)
    places: dict[Stream, tuple[int, int]] = {("life", session_id, run): (int(record["n"]), 0)}
    for name, (own, life, n, _) in record.get("scopes", {}).items():
        places["scope", name, own, life] = n, 0
    if "family" in record:
        root_run, root_n, place = record["family"]
        places["family", root_of(record), root_run] = root_n, place
    elif "/" not in session_id:
        places["family", session_id, run] = int(record["n"]), 0
    return places


def in_order(records: list[Record]) -> Iterator[Record]:
    """
    Returns *records* in an order that all their streams agree with.
    """
    streams: dict[Stream, list[tuple[tuple[int, int], int]]] = {}
    order: TopologicalSorter[int] = TopologicalSorter()
    for index, record in enumerate(records):
        order.add(index)
        for stream, place in places_of(record).items():
            streams.setdefault(stream, []).append((place, index))
    for events in streams.values():
        for (_, before), (_, after) in pairwise(sorted(events)):
            order.add(after, before)
    try:
        yield from map(records.__getitem__, order.static_order())
    except CycleError:
        raise SessionError(
            "the records contradict each other: no order of their events fits all their numbers"
        ) from None


def replay_together(
    chain: Chain,
    records: Iterable[Record],
    *,
    scopes: Mapping[str, Chain] | None = None,
    others: Mapping[str, Rules] = NO_OTHERS,
) -> Iterator[Replayed]:
    """
    Decides the calls of sessions that share something again, from the records of all of them, in their order. They are
    sessions of one scope (*scopes* as a policy has them), or a session and its children. All are held in memory.
    *others* as `replay` takes them.

    Raises SessionError if a number of a session, a scope or a family is missing, since the events there are not known.
    A value that is no record raises it too.
    """
    states = _States(chain, scopes or {}, others)
    with sound():
        for record in in_order(sorted(records, key=lambda record: (*life_key(record), record["n"]))):
            made = states.life(*life_key(record)).live(record, states.beside(record))
            if made is not None:
                yield made


class _States:
    """
    The lives of sessions, and the scopes of a policy by name, with the states that records have brought them to.
    """

    def __init__(self, whole: Chain, chains: Mapping[str, Chain], others: Mapping[str, Rules]) -> None:
        self._whole = whole
        self._others = others
        self.chains = chains
        self._lives: dict[LifeKey, Life] = {}
        self.scopes: dict[Stream, SessionState] = {}

    def life(self, session_id: str, run: str) -> Life:
        """
        Returns that life of the session.
        """
        found = self._lives.get((session_id, run))
        if found is None:
            found = self._lives[session_id, run] = Life(session_id, self._whole, SessionState(), self._others)
        return found

    def beside(self, record: Record) -> Beside:
        """
        Returns the scopes and the family in which the event of *record* happened beside its session. Raises
        SessionError if a number is missing, or the policy has no such scope.
        """
        beside = self._scopes_of(record) if "scopes" in record else ALONE
        if "family" not in record:
            return beside
        root = self.life(root_of(record), record["family"][0])
        if record["family"][2] != root.state.shared + 1:
            raise SessionError(
                f"the records of the family of `{record['session_id']}` have a gap before event {record['n']}"
            )
        return beside._replace(root=root.state)

    def _scopes_of(self, record: Record) -> Beside:
        given = self.life(*life_key(record)).scopes
        chains = self.chains if given is None else given
        present: list[tuple[str, str, Chain]] = []
        states, clocks = [], []
        for name, (own, run, n, now_ms) in record["scopes"].items():
            if name not in chains:
                raise SessionError(f"`{record['session_id']}` is in a scope `{name}`, which the policy does not have")
            state = self.scopes.setdefault(("scope", name, own, run), SessionState())
            if n != state.n + 1:
                raise SessionError(
                    f"the records of the scope `{name}` of `{own}` have a gap before event {n}: those of all its "
                    "sessions are needed"
                )
            present.append((name, own, chains[name]))
            states.append(state)
            clocks.append(now_ms)
        return Beside(tuple(present), tuple(states), tuple(clocks))


def replay(
    chain: Chain,
    records: Iterable[Record],
    state: SessionState | None = None,
    *,
    others: Mapping[str, Rules] = NO_OTHERS,
) -> Iterator[Replayed]:
    """
    Decides the calls of one session again from its records, in the order of their numbers.

    Each life of its name (`run`) begins with a new state, in the order in which the records first tell of them. A
    child's limits are in its records, and so are the declarations of its tools. The replay starts at *state*, which holds the
    state at the end. The policies in *others* are those that the session went over to when its own files changed, by
    the names in their records. Without them, that session cannot be replayed. Raises SessionError if a number is
    missing, since the events there are not known, and for a value that is no record.

    The records of a session alone do not tell what it shares with others: scopes, the counters and the work of its
    family. See `replay_together`.
    """
    if state is None:
        state = SessionState()
    lives: dict[str, list[Record]] = {}
    with sound():
        for record in records:
            lives.setdefault(record["run"], []).append(record)
        ordered = [sorted(life, key=lambda line: int(line["n"])) for life in lives.values()]
    for index, life in enumerate(ordered):
        if index:
            # Each life of a name begins with a state as new.
            new = SessionState()
            for field in fields(state):
                setattr(state, field.name, getattr(new, field.name))
        again = Life(str(life[0].get("session_id")), chain, state, others)
        yield from filter(None, map(again.live, life))
