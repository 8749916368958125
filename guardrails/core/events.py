"""
Everything that changes a state and is no call: what models do, what people say, limits that are raised or shared, and admissions that their
hosts take up or let go.

An event is a name and its values, as the record has them: a replay lets the record itself happen. `EVENTS` has one function for each.
"""

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, Final

from guardrails.core import state as states
from guardrails.core.chain import least_of
from guardrails.core.decision import NOT_AGAIN, Happened
from guardrails.core.engine import Moment, exhausted_by, tell, tell_of
from guardrails.core.guards import LIMITING
from guardrails.core.guards.base import Facts
from guardrails.core.guards.budget import ITERATIONS, NO_LIMITS, TABLE
from guardrails.core.refusals import finish
from guardrails.core.scopes import Place, first_cause
from guardrails.core.state import Pending, SessionState
from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import Denial, ToolCall


Values = Mapping[str, Any]

LIMITS: Final = {limit.name: limit for limit in TABLE}
"""By the state's names of them."""


def happen(at: Moment, name: str, values: Values, now_ms: int) -> Happened:
    """
    Let the event *name* happen at *now_ms*. Raises SessionError if there is no such event, or it may not happen.
    """
    if name not in EVENTS:
        raise SessionError(f"unknown event `{name}` in the records")
    made = EVENTS[name](at, values, now_ms)
    return made if isinstance(made, Happened) else _happened(at, made)


def is_shared(name: str, values: Values) -> bool:
    """
    Returns whether the event happens in the session's scopes too.
    """
    if name in ("extend", "turn"):
        return "scope" in values or bool(values.get("uncharged"))
    return name in _SHARED and "child" not in values


_SHARED: Final = frozenset({"charge", "request", "release", "unpark", "suspend", "policy", "note"})


def _happened(at: Moment, limits: dict[str, int] | None = None, refused: tuple[str, str] | None = None) -> Happened:
    state = at.state
    state.n += 1
    return Happened(state.n, state.now_ms, state.run, at.marks(), limits, refused)


# What models do


def _turn(at: Moment, values: Values, now_ms: int) -> Happened | None:
    """
    A model response came, with `calls` calls (0: unknown). `uncharged`: nobody will charge it, and what was guessed of its request
    comes back.
    """
    state, chain = at.state, at.chain
    if states.note_key(state, values.get("key")):
        return NOT_AGAIN
    if values.get("uncharged"):
        _everywhere(at, "release", {"guess": True})
    at.now_ms = states.touch(state, now_ms)
    facts = Facts(at.now_ms, turn=state.present.number, turn_over=True, least=least_of(chain))
    _end(at, facts)
    tell(state, chain.on, "turn", values, facts)
    states.end_turn(state, values["calls"])
    return None


def _charge(at: Moment, values: Values, now_ms: int) -> Happened | None:
    """
    A response of `model` is to be paid, `cost` in micro-dollars; None: the price is unknown or, without a model, that nobody asked for it.
    """
    if states.note_key(at.state, values.get("key"), charged=True):
        return NOT_AGAIN
    at.now_ms = states.touch(at.state, now_ms)
    _everywhere(at, "charge", values)
    return None


def _request(at: Moment, values: Values, now_ms: int) -> Happened:
    """
    A model request starts, and holds its `estimate` (micro-dollars, tokens) for `lasts_ms` or until it is charged, if that fits. Without
    one it holds as much as responses have used on average.
    """
    estimate = values.get("estimate")
    cost, tokens = estimate or (0, 0)
    at.now_ms = states.touch(at.state, now_ms)
    refused = exhausted_by(at.places, request=True, cost=cost, tokens=tokens)
    lasts_ms, n = values.get("lasts_ms", states.ADMISSION_MS), at.state.n + 1
    more = {"n": n, "refused": refused is not None, "lasts_ms": lasts_ms, "estimate": estimate}
    _everywhere(at, "request", {**values, **more})
    return _happened(at, refused=refused)


def _everywhere(at: Moment, name: str, values: Values) -> None:
    """
    Count something in the session and in each of its scopes alike.
    """
    least = least_of(*(place.chain for place in at.places))
    for place in at.places:
        _count(place, name, values, least)
    _number(at)


def _number(at: Moment) -> None:
    """
    Number an event of the scopes, which are never over: their limits are asked each time.
    """
    for scope in at.scopes:
        scope.state.n += 1
        scope.state.exhausted = None


def _count(place: Place, name: str, values: Values, least: int) -> None:
    state, chain = place.state, place.chain
    if name == "charge":
        state.cost += values["cost"] or 0
        state.tokens += values["tokens"]
    facts = Facts(place.now_ms, holder=place.holder, turn=state.present.number, least=least)
    failed = [guard for guard, enforced, _ in tell(state, chain.on, name, values, facts) if enforced]
    if name == "release":
        # What is given back ends nothing.
        return
    if failed and (end := place.broken(failed[0])) is not None:
        states.exhaust(state, end)
    _end(place, facts)


def _end(place: Place, facts: Facts) -> None:
    """
    End the session if something is used up.
    """
    cause = first_cause(place, place.chain.spenders, facts)
    if cause is not None:
        states.exhaust(place.state, cause)


# What people and hosts say of a call


def _of(state: SessionState, values: Values) -> Pending | None:
    return state.pending.get(values.get("seq") or 0)


def _unpark(at: Moment, values: Values, now_ms: int) -> None:
    """
    A person says of a parked call, or of one whose end is unknown, whether it is to be made. Raises SessionError if it waits no more.
    """
    state = at.state
    pending, yes, sig = _of(state, values), values["approved"], values.get("sig")
    if pending is None and sig in state.uncertain:
        one = state.uncertain.pop(sig)
        if yes:
            # A person said that it is to be made: what was before is no reason against it.
            states.unsign(state, (entry for entry in state.window if entry.sig == sig))
        else:
            state.uncertain[sig] = one._replace(reason=values["reason"] or "it is never to be made again")
        _note(at, values, now_ms)
        return
    if pending is None or pending.stage not in states.ASKED or (yes and pending.stage == "approved"):
        raise SessionError("the call does not wait for an answer any more")
    if yes and pending.expires_ms <= states.time_of(state, now_ms):
        raise SessionError("the answer comes too late: the time of the question is over")
    now = states.touch(state, now_ms)
    if yes:
        states.approve(pending, now)
    else:
        states.drop(state, pending, "refuse")
    tell_of(at, at.chain.plan(pending.tool), pending, "unpark", approved=yes, reason=values["reason"])
    at.let_go(pending, "approve" if yes else "refuse")


def _suspend(at: Moment, values: Values, now_ms: int) -> None:
    """
    A host takes a call out, and goes on with it later: in minutes, in another process.
    """
    now, pending, call = states.touch(at.state, now_ms), _of(at.state, values), values.get("call")
    digest = states.digest_of(call) if isinstance(call, ToolCall) else ""
    if pending is not None and states.suspend(pending, now, digest):
        at.let_go(pending, "suspend")
    else:
        _note(at, values, now_ms)


def _release(at: Moment, values: Values, now_ms: int) -> None:
    """
    A call will never run, a model request came to nothing, or a child is over: what they hold comes back.
    """
    state, chain = at.state, at.chain
    now = at.now_ms = states.touch(state, now_ms)
    if "child" in values:
        states.release(state, values["child"], values["used"])
    elif "request" in values:
        _everywhere(at, "release", values)
        _end(at, Facts(now, turn=state.present.number, least=least_of(chain)))
    elif (pending := _of(state, values)) is not None and states.withdraw(state, pending):
        at.let_go(pending, "withdraw")
        _reopen(at)
    else:
        _note(at, values, now_ms)


def _expire(at: Moment, values: Values, now_ms: int) -> Happened:
    """
    An admission is given up, as a record says.
    """
    state, now = at.state, states.touch(at.state, now_ms)
    if (pending := _of(state, values)) is not None:
        at.give_up(pending)
    return Happened(state.n, now, state.run, None)


def _note(at: Moment, values: Values, now_ms: int) -> None:
    """
    A child begins, or it is of a call that is not known any more: time passes, and it is numbered.
    """
    _number(at)
    states.touch(at.state, now_ms)


def lose(at: Moment, seq: int | None, now_ms: int) -> None:
    """
    Let the admission of number *seq* be overdue: nobody will ever say how its call ended. It is no event of its own.
    """
    pending = at.state.pending.get(seq or 0)
    if pending is not None:
        pending.expires_ms = now_ms


# Limits


def _policy(at: Moment, values: Values, now_ms: int) -> None:
    """
    From now on another policy holds: a session that was ended by a limit goes on if that is not used up any more.
    """
    _note(at, values, now_ms)
    _reopen(at)


def _reopen(own: Place) -> None:
    state = own.state
    if state.exhausted is None or state.closed or not state.exhausted[0].startswith(f"{LIMITING.name}."):
        return
    state.exhausted = None
    _end(own, Facts(state.now_ms, turn=state.present.number, turn_over=True, least=least_of(own.chain)))


def _extend(at: Moment, values: Values, now_ms: int) -> dict[str, int] | None:
    """
    A session, or with `scope` what it shares, may use `amounts` more than its limits, or more than it has used if that is more; it goes on.

    `asked`: a further message of the user asks for it, and no more than `amounts` is left by it. Fuses and a person's answers stay. Raises
    SessionError for a limit that the policy does not set.
    """
    if "scope" not in values:
        return _raise_in(at, values, now_ms)
    chosen = [scope for scope in at.scopes if scope.name == values["scope"]]
    if not chosen:
        raise SessionError(f"the session is in no scope `{values['scope']}`")
    _raise_in(chosen[0], values, chosen[0].now_ms)
    _note(at, values, now_ms)
    return None


def _raise_in(place: Place, values: Values, now_ms: int) -> dict[str, int]:
    state, chain = place.state, place.chain
    if state.closed:
        raise SessionError("the session is closed: what it did not use was given back")
    # A budget that only observes has limits too: a host that raises them must not break in observe mode.
    budget, asked = chain.limits or NO_LIMITS, bool(values.get("asked"))
    now = states.time_of(state, now_ms)
    limits: dict[str, int] = {}
    for name, amount in values["amounts"].items():
        if name == ITERATIONS:
            # Each loop has a limit of its own; what all may do more is counted here.
            limits[name] = state.limits.get(name, 0) + amount
            continue
        limit = state.limit(name, budget.own.get(name))
        if limit is None:
            raise SessionError(f"the policy sets no limit `{LIMITS[name].setting}` that could be raised")
        used = LIMITS[name].used(state, now) - dict(zip(LIMITS, budget.before(state, now), strict=True))[name]
        limits[name] = max(limit, used + amount) if asked else max(limit, used) + amount
    # Time is noted last: what is refused is no event, and leaves no trace that a replay would miss.
    now = states.touch(state, now_ms)
    ended = state.exhausted[0].partition(".")[0] if state.exhausted is not None else ""
    if not asked or limits or ended in {name for name, *_ in chain.turn_spenders}:
        state.exhausted = None
    state.present.refused = []
    tell(state, chain.on, "extend", {"limits": limits, "asked": asked}, Facts(now, turn=state.present.number))
    state.limits.update(limits)
    _end(place, Facts(now, turn=state.present.number, least=least_of(chain)))
    return limits


def _reserve(at: Moment, values: Values, now_ms: int) -> Happened | dict[str, int] | None:
    """
    A `child` begins, with `amounts` of the limits of its parent. A limit that is not named gives a `share` of the rest
    of it, rounded up; time gives all. With `more` the child has begun already, and its own limits are raised by
    `amounts`. One too many is refused: it holds nothing, and makes no call.

    Raises SessionError if that is more than is left, or the child does not run any more.
    """
    state, chain, child, more = at.state, at.chain, values["child"], values.get("more")
    present, now = state.reserved.get(child), states.time_of(state, now_ms)
    if more and present is None:
        raise SessionError(f"`{child}` is closed: what it did not use was given back")
    refused = None if present is not None else (chain.budget or NO_LIMITS).no_child(state, at.engine.id.count("/") + 1)
    if refused is not None:
        states.touch(state, now_ms)
        state.reserved[child] = {}
        return _happened(at, {}, (refused.code, chain.worded(refused).message))
    if present is None or more:
        rest = (chain.budget or NO_LIMITS).rest(state, now)
        left = dict.fromkeys(LIMITS) | {limit.name: amount for limit, _, amount in rest}
        for name, amount in values["amounts"].items():
            # Time is not shared out: whoever wants more of it than is left has all that is left.
            fixed = more or name != "max_elapsed"
            if (available := left[name]) is not None and amount > available and fixed:
                asked = f"{LIMITS[name].setting} {LIMITS[name].shown(amount)}{' more' if more else ''}"
                raise SessionError(f"`{child}` asks for {asked}, {LIMITS[name].shown(available)} is left")
        present = _share(at, values, left, now) if present is None else _raised(present, values["amounts"])
        tell(state, chain.on, "reserve", values, Facts(now))
    states.touch(state, now_ms)
    state.reserved[child] = present
    return None if more else present


def _raised(present: dict[str, int], amounts: Values) -> dict[str, int]:
    return {name: amount + amounts.get(name, 0) for name, amount in present.items()}


def _share(own: Place, values: Values, left: Mapping[str, int | None], now: int) -> dict[str, int]:
    own.now_ms = now
    cause = exhausted_by([own])
    if cause is not None:
        raise SessionError(f"the session is exhausted ({cause[0]}), so nothing is left for `{values['child']}`")
    made = dict[str, int]()
    for name, available in left.items():
        # Time passes for all at once, so that nobody has less of it for sharing it.
        share = 1 if name == "max_elapsed" else values.get("share", 1)
        amount = values["amounts"].get(name, available and ceil(available * share))
        if amount is not None:
            made[name] = max(0, amount if available is None else min(amount, available))
    return made


def _open(at: Moment, values: Values, now_ms: int) -> None:
    """
    A child begins; `over` is (code, message) of why it makes no call.
    """
    _note(at, values, now_ms)
    if values.get("over"):
        code, message = values["over"]
        at.state.exhausted = code, message, finish(code)


def _close(at: Moment, values: Values, now_ms: int) -> dict[str, int]:
    """
    A session is over for good. Its limits are what it used, with what is held for what never ended.
    """
    state, now = at.state, states.touch(at.state, now_ms)
    hint = "Report what you have."
    states.exhaust(state, Denial("session.closed", "This session is closed.", hint, "limit_reached", ends_session=True))
    state.closed = True
    taken = NO_LIMITS.taken(state)
    # Time passed for its parent too.
    return {name: one.used(state, now) + taken.get(name, 0) for name, one in LIMITS.items() if name != "max_elapsed"}


_ALL = _turn, _charge, _request, _unpark, _suspend, _release, _expire, _note, _policy, _extend, _reserve, _open, _close
EVENTS: Final[Mapping[str, Callable[..., Any]]] = {event.__name__.removeprefix("_"): event for event in _ALL}
"""By name, what happens."""
