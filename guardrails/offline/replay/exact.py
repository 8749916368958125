"""
Decide again what was recorded, exactly: lives of sessions, lived again from their records by the same engine. Every decision must be the
recorded one. The events of a session may be spread over files, in any order.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, Final, NamedTuple

from guardrails.core.chain import Chain, Plan, changed
from guardrails.core.decision import Decision
from guardrails.core.engine import Engine, complete, decide
from guardrails.core.envelope import Envelope
from guardrails.core.events import happen
from guardrails.core.guards.budget import settings_of
from guardrails.core.guards.similarity import NO_SKETCH
from guardrails.core.record import call_record
from guardrails.core.refusals import stopped
from guardrails.core.retries.serving import Advice
from guardrails.core.state import ADMISSION_MS, ASKED, SessionState, overdue
from guardrails.core.tool import Tool
from guardrails.core.values.errors import INSTEAD, GuardrailsError, NothingFoundError, SessionError
from guardrails.core.values.types import End, Outcome, Problem, ToolCall
from guardrails.offline.transcripts.fields import mapping
from guardrails.offline.transcripts.files import Input, content_of, values_of
from guardrails.offline.transcripts.own_records import is_record, newer_records, newer_version
from guardrails.policy.policy import Policy

from .lacking import guards_of, no_arguments


Record = Mapping[str, Any]
Stream = tuple[str, ...]
"""A thing that orders some events: a life, a scope, a family."""
LifeKey = tuple[str, str]
"""(session id, run)"""
Way = tuple[Chain, Plan]
"""A chain with the declarations that applied to a tool when it was called, and the plan for the tool."""

SHOWN: Final = 20
"""Differences that are told."""
WRONG: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of a record whose fields are missing, or hold a value that no record has there."""
_DECLARED: Final = (
    *("tool", "known", "stable", "idempotent", "polling", "repeats", "read_only", "destructive", "retryable_declared"),
    *("estimate", "estimate_tokens", "timeout_ms", "mutates", "held"),
)
"""The fields of a call's record that are declarations of its tool."""


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
        fault = f"lacks or misstates {error!s:.100}" if isinstance(error, KeyError) else f"is no good: {error!s:.200}"
        raise SessionError(f"{which} {fault}") from error


# The parts of a record


def call_of(record: Record) -> ToolCall:
    """
    Returns the call of *record*.
    """
    problems = tuple(Problem(*problem) for problem in record["problems"])
    places, sketch = record.get("places"), record.get("sketch")
    if sketch is None and is_blind(record):
        sketch = NO_SKETCH
    answers = None if places is None else {guard: tuple(answers) for guard, answers in places.items()}
    arguments, sig = record.get("arguments"), record["sig"]
    return ToolCall(record["tool"], arguments, record["id"], None, sig, problems, places=answers, sketch=sketch)


def is_blind(record: Record) -> bool:
    """
    Whether arguments of the call of *record* were erased.
    """
    erased = record.get("erased")
    return type(erased) is list and any(str(path).startswith("arguments") for path in erased)


def end_of(record: Record) -> End:
    """
    Returns the outcome of *record*, with its hashes.
    """
    failure = record["error_type"], record["error_message"] or "", record["http_status"], record["retry_after_ms"]
    outcome = Outcome(None, *failure, cost=record["cost"], tokens=record["tokens"])
    failed, own = outcome.error_type is not None, None
    if record["claims"] is not None:
        claims = dict(zip(("retryable", "retry_after_ms", "max_retries_remaining"), record["claims"], strict=True))
        own = Envelope("error" if failed else "success", sandbox=record.get("sandbox"), **claims)
    evidence = record["result_hash_masked" if failed else "result_hash"]
    uncertain, unread = record.get("uncertain", False), record.get("unread", False)
    steady, came = record.get("steady", 0), record.get("empty", 0)
    return End.of(outcome, hash=evidence, own=own, steady=steady, came=came, unknown=uncertain, unread=unread)


def advised_of(record: Record) -> Advice | None:
    """
    Returns the model's words on the failure of *record*. Returns None if no model judged it.
    """
    if record.get("model_version") is None:
        return None
    # What only a budget denied, the model had advised.
    retryable = bool(record["retryable"]) or "no_retry" in record
    instead, left = INSTEAD.get(record["error_type"], "give_up"), record["max_retries_remaining"] or 0
    return Advice(retryable, record["wait_ms"] or 0, 0.0, left, instead)


def way_of(chain: Chain, *declarations: Any) -> Way:
    """
    Returns *chain* with the *declarations* of a tool, those of `_DECLARED`: code declares them, also between two calls.
    """
    of = dict(zip(_DECLARED, declarations, strict=True))
    name, held = of["tool"], of["held"] or ""
    if of["known"] and (chain.known is None or name not in chain.known):
        chain = chain.with_tools([Tool(name=name)])
    elif of["known"] is False and chain.known is None:
        # The session named its tools, and not this one.
        chain = chain.with_tools([Tool(name=f"not {name}")])
    if chain.plan(name).tool.held != held:
        own = chain.tools.get(name) or Tool(name=name)
        chain = chain.with_tools([replace(own, held=held)]).knowing(chain.known)
    plan, timeout_ms = chain.plan(name), of["timeout_ms"]
    # Records of 0.2.0 have the older words.
    repeats: Any = "allow" if of["polling"] else "evidence" if of["stable"] else of["repeats"]
    facts = {name: of[name] for name in ("idempotent", "read_only", "destructive")}
    tool = replace(plan.tool, retryable=of["retryable_declared"], repeats=repeats, **facts)
    return chain, plan.but(
        tool=tool,
        changes=of["mutates"],
        cost=of["estimate"],
        tokens=of["estimate_tokens"] or 0,
        timeout_ms=timeout_ms,
        lasts_ms=ADMISSION_MS if timeout_ms is None else timeout_ms,
        once=tool.idempotent is False or tool.destructive is True,
    )


class Replayed(NamedTuple):
    """
    One recorded call, decided again.
    """

    record: Record
    made: Record
    """That of the decision of now, without arguments."""
    recorded: str
    """The recorded decision, with all that guards had to say: `nudge (nudge loops.wait)`."""
    decided: str
    """The same of the decision of now."""
    same: bool
    """The decision is the recorded one."""


def _decision_in(record: Record) -> str:
    denials, observed = [code for code, *_ in record["denials"]], [f"observed {code}" for code in record["observed"]]
    codes = dict.fromkeys([*denials, *(f"nudge {code}" for code in record["nudges"]), *observed])
    return f"{record['decision']} ({', '.join(codes)})" if codes else record["decision"]


# The order of events


def life_key(record: Record) -> LifeKey:
    return record["session_id"], record["run"]


def root_of(record: Record) -> str:
    return str(record["session_id"]).partition("/")[0]


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


def in_order(records: Iterable[Record]) -> Iterator[Record]:
    """
    Returns *records* in an order that all their streams agree with. Raises SessionError if there is none, or for what is no record.
    """
    streams: dict[Stream, list[tuple[tuple[int, int], int]]] = {}
    order: TopologicalSorter[int] = TopologicalSorter()
    with sound():
        records = sorted(records, key=lambda record: (*life_key(record), record["n"]))
        for index, record in enumerate(records):
            order.add(index)
            for stream, place in places_of(record).items():
                streams.setdefault(stream, []).append((place, index))
        for events in streams.values():
            for (_, before), (_, after) in pairwise(sorted(events)):
                order.add(after, before)
    try:
        return map(records.__getitem__, [*order.static_order()])
    except CycleError:
        raise SessionError("the records contradict each other: no order of their events fits all numbers") from None


# The replay


class Rules(NamedTuple):
    """
    A policy, as a replay needs it.
    """

    chain: Chain
    scopes: Mapping[str, Chain]


@dataclass
class Life:
    """
    A life of the session *id*, which goes by its *rules*.
    """

    id: str
    rules: Rules
    state: SessionState = field(default_factory=SessionState)
    limits: dict[str, Any] = field(default_factory=dict)
    """Of a child: settings of its budget."""
    decisions: dict[int, tuple[Decision, Way]] = field(default_factory=dict)
    """By the number of the call."""

    def go_by(self, rules: Rules) -> None:
        """
        Go by other *rules* from now on.
        """
        self.rules = rules._replace(chain=rules.chain.with_limits(**self.limits)) if self.limits else rules


class Replay:
    """
    Lives of sessions, and scopes, with the states that records have brought them to.

    *others* are policies that sessions may have gone over to when their own files changed, by the hashes in their records.
    """

    def __init__(self, rules: Rules, others: Mapping[str, Rules]) -> None:
        self.rules, self.others = rules, others
        self.lives: dict[LifeKey, Life] = {}
        self.scopes: dict[Stream, SessionState] = {}
        self.way_of = lru_cache(1_024)(way_of)

    def live(self, record: Record) -> Replayed | None:
        """
        Let the event of *record* happen again. A call is decided anew.

        Raises SessionError if a number is missing, since the events there are not known, and for a value that is no record.
        """
        with sound(record):
            life, name, n = self._life(*life_key(record)), record["event"], record["n"]
            if name != "expire" and n > life.state.n + 1 + len(overdue(life.state, record["ts_ms"])):
                raise SessionError(f"the records of `{life.id}` have a gap before event {n}")
            if name == "open" and "limits" in record:
                life.limits = settings_of(dict(record["limits"]))
                life.go_by(life.rules)
            if name == "call":
                way = self.way_of(life.rules.chain, *map(record.get, _DECLARED))
                decision = self._decide(life, record, call_of(record), way, n)
                made = call_record(life.id, decision, way[1], b"")
                alike = record["seq"] == made["seq"] and len(record["denials"]) == len(made["denials"])
                recorded, decided = _decision_in(record), _decision_in(made)
                return Replayed(record, made, recorded, decided, alike and recorded == decided)
            if name == "claim":
                decision, way = life.decisions[record["call_n"]]
                call = replace(decision.call, id=record.get("id", decision.call.id))
                self._decide(life, record, call, way, record["call_n"])
            elif name == "settle":
                self._settle(life, record)
            elif name != "park" or n > life.state.n:
                self._event(life, record)
            return None

    def _life(self, session_id: str, run: str) -> Life:
        return self.lives.setdefault((session_id, run), Life(session_id, self.rules))

    def _decide(self, life: Life, record: Record, call: ToolCall, way: Way, n: int) -> Decision:
        chain, plan = way
        stop = stopped(str(record["stop"])) if "stop" in record else None
        engine, states, clocks = self._at(life, record, chain)
        values = (call, plan, record["ts_ms"], record.get("claimed", True), stop)
        decision = engine.apply(decide, values, record["ts_ms"], states, clocks)
        life.decisions[n] = decision, way
        return decision

    def _settle(self, life: Life, record: Record) -> None:
        settled = life.decisions.get(record["call_n"])
        if settled is None:
            if not record["late"]:
                raise SessionError(f"event {record['n']} settles a call that is not in the records")
            # Of another life: its number is all that it has here.
            self._happen(life, record, "note", record)
            return
        decision, (chain, plan) = settled
        # It may have been taken up under another id since.
        decision = decision.of(replace(decision.call, id=record.get("id", decision.call.id)))
        engine, states, clocks = self._at(life, record, chain)
        values = (decision, end_of(record), plan, record["ts_ms"], advised_of(record))
        engine.apply(complete, values, record["ts_ms"], states, clocks)

    def _event(self, life: Life, record: Record) -> None:
        name, n, values = record["event"], record["n"], dict(record)
        if name == "policy":
            if (rules := self.others.get(after := record["after"])) is None:
                raise SessionError(f"from event {n} on `{life.id}` went by a changed policy: {after} is needed too")
            life.go_by(rules)
        elif name == "extend":
            values.pop("limits", None)
        elif name == "park" or not self._is_asked(life, record):
            name = "note"
        elif (decided := life.decisions.get(record.get("call_n", 0))) is not None:
            values["call"] = decided[0].call
        self._happen(life, record, name, values)

    def _is_asked(self, life: Life, record: Record) -> bool:
        """
        Returns whether a person is asked about the call that an `unpark` is of.
        """
        asked = [one.seq for one in life.state.pending.values() if one.stage in ASKED]
        root = self._root(record) or life.state
        return record["event"] != "unpark" or record["sig"] in root.uncertain or record["seq"] in asked

    def _happen(self, life: Life, record: Record, name: str, values: Record) -> None:
        engine, states, clocks = self._at(life, record, changed(life.rules.chain, least_cost=record.get("least", 0)))
        engine.apply(happen, (name, values, record["ts_ms"]), record["ts_ms"], states, clocks)

    def _at(self, life: Life, record: Record, chain: Chain) -> tuple[Engine, list[SessionState], list[int]]:
        """
        Returns an engine of *chain*, with the states and clocks that the event of *record* concerns: those of the session, of the scopes
        in which it happened too, and of the root of a family.
        """
        scopes, states, clocks = list[Any](), [life.state], list[int]()
        for name, (own, run, n, now_ms) in record.get("scopes", {}).items():
            if name not in life.rules.scopes:
                raise SessionError(f"`{life.id}` is in a scope `{name}`, which the policy does not have")
            state = self.scopes.setdefault(("scope", name, own, run), SessionState())
            if n != state.n + 1:
                gap = f"the records of the scope `{name}` of `{own}` have a gap before event {n}"
                raise SessionError(f"{gap}: those of all its sessions are needed")
            scopes.append((name, own, life.rules.scopes[name]))
            states.append(state)
            clocks.append(now_ms)
        if root := self._root(record):
            if record["family"][2] != root.shared + 1:
                raise SessionError(f"the records of the family of `{life.id}` have a gap before event {record['n']}")
            states.append(root)
        return Engine(chain, life.id, scopes=scopes, child=root is not None), states, clocks

    def _root(self, record: Record) -> SessionState | None:
        return self._life(root_of(record), record["family"][0]).state if "family" in record else None


# Files of records


@dataclass
class Exactness:
    """
    The outcome of deciding records again.
    """

    policy: str
    sessions: int = 0
    calls: int = 0
    differing: int = 0
    """Calls that are decided otherwise, and sessions that cannot be replayed."""
    broken_lines: int = 0
    notices: list[str] = field(default_factory=list)
    """What was met on the way: files that are cut off, lines that are too long."""
    not_judged: dict[str, str] = field(default_factory=dict)
    """Guard to reason: what the records lack for it."""
    without: list[str] = field(default_factory=list)
    """Files that hold no records of this library."""
    events: int = 0
    """Lines that are records."""
    first: list[dict[str, Any]] = field(default_factory=list)
    """Those that there is room for, each with `session_id` and what is recorded and replayed; without `n` it is the session as a whole."""

    @property
    def same(self) -> bool:
        """
        Every decision is the recorded one.
        """
        return not self.differing

    def differs(self, *difference: Any) -> None:
        """
        Count a difference, and keep it while there is room.
        """
        self.differing += 1
        named = dict(zip(("session_id", "n", "tool", "recorded", "replayed"), difference, strict=True))
        self.first += [named] * (len(self.first) < SHOWN)

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the same for another program.
        """
        return {**asdict(self), "exact": self.same}


def replayed(policy: Policy, files: Iterable[Input], others: Iterable[Policy] = ()) -> Exactness:
    """
    Returns all sessions of *files*, decided again by *policy*, or by one of *others* once they went over to it.

    Files without records are named. Raises SessionError if no file holds records of this library, or these contradict each other;
    NothingFoundError if they hold no call.
    """
    exactness = Exactness(policy.name)
    known = {each.digest: Rules(each.chain, each.scopes) for each in (policy, *others) if each.digest is not None}
    # An event that is written twice happened once.
    events = list({repr(record): record for file in files for record in _records(file, exactness)}.values())
    exactness.events, exactness.sessions = len(events), len(set(map(life_key, events)))
    if not events:
        first, *rest = exactness.without or [""]
        more = f", nor do {len(rest):,} more files" if rest else ""
        none = f"`{first}` holds no records of this library{more}" if first else "there are no files"
        raise (SessionError if first else NothingFoundError)(
            f"{none}: `--exact` has nothing to decide again; leave it out"
        )
    again, broken = Replay(Rules(policy.chain, policy.scopes), known), set()
    for record in in_order(events):
        try:
            one = None if life_key(record) in broken else again.live(record)
            if one is not None:
                exactness.calls += 1
                if not one.same:
                    exactness.differs(record["session_id"], record["n"], record["tool"], one.recorded, one.decided)
        except GuardrailsError as error:
            broken.add(life_key(record))
            exactness.differs(record["session_id"], None, None, str(error), "cannot be replayed")
    if not exactness.calls and exactness.same:
        raise NothingFoundError("the records hold no calls: `--exact` has nothing to decide again")
    calls = [record for record in events if record["event"] == "call"]
    guards = guards_of(policy.chain, (record["tool"] for record in calls))
    exactness.not_judged = no_arguments(guards, sum(map(is_blind, calls)))
    return exactness


def _records(file: Input, exactness: Exactness) -> list[Record]:
    """
    Returns the records in *file*.
    """
    try:
        values, broken = values_of(content_of(file.parts.values()))
    except OSError as error:
        fault = f"`{file.path}` cannot be read: {error.strerror or error}"
        if not file.from_folder:
            raise SessionError(fault) from None
        exactness.notices.append(fault)
        values, broken = [], []
    records = [value for _, value in values if is_record(value) and type(value.get("run")) is str]
    exactness.broken_lines += len(broken)
    exactness.without += () if records else (file.path,)
    newer = [version for _, value in values if (version := newer_version(mapping(value))) is not None]
    if newer:
        left = f"lines left out: {len(newer):,}; records of {newer_records(max(newer))}"
        exactness.notices.append(f"`{file.path}`: {left}")
    return records
