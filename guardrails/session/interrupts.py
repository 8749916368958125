"""
State and record are one step: an exception that a signal's handler raises in the middle never tears them apart.

A handler of signals runs between any two instructions of the main thread. A step that it interrupts is kept as a whole,
and then recorded all the same, or not at all. Only in memory is there a third way: the step broke off in the middle of
the states. They are mended then, and a record says where they stand.
"""

from binascii import b2a_base64
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from guardrails.core.engine.decision import Decision
from guardrails.core.engine.engine import Engine, Event
from guardrails.core.engine.events.admissions import Note
from guardrails.core.engine.plan import Plan
from guardrails.core.state.packing import shown
from guardrails.core.state.state import SessionState
from guardrails.core.values.logs import log
from guardrails.stores.base import Store, was_kept

from .recorder import Recorder


T = TypeVar("T")
TIMES: Final = 16
"""How often the same work is begun again: so many signals in a few microseconds are no person's."""


class Recorded(Protocol):
    """
    A session with records.
    """

    id: str
    _store: Store
    _untold: list[Callable[[], object]]

    @property
    def _records(self) -> Recorder | None: ...
    def _time(self) -> int: ...


class Calling(Protocol):
    """
    A session with calls.
    """

    id: str
    _passes: tuple[type[BaseException], ...]

    def _read(self, look: Callable[[SessionState, int], bool]) -> bool: ...
    def _settle(self, decision: Decision, plan: Plan, result: object) -> object: ...
    def _let_go(self, made: object) -> None: ...


class Step(NamedTuple):
    """
    An event on its way into a store: the function that applies it, and the keys of its states.
    """

    engine: Engine
    keys: Sequence[str]
    event: Event[Any]


def surely(work: Callable[[], T]) -> T:
    """
    Returns the result of *work*, which is begun again if a signal interrupts it: to do it twice must be no harm.
    """
    for _ in range(TIMES - 1):
        try:
            return work()
        except Exception:
            raise
        except BaseException:  # noqa: BLE001, S112  the first interruption is raised on by whoever asks
            continue
    return work()


def recovered(
    ledger: Recorded, step: Step, error: BaseException, hand: Callable[[Recorder, Any], object], made: object = None
) -> bool:
    """
    Let *hand* record the changes of *step*, although *error* came out of it. Returns whether the step happened and
    stays so. Its result is *made*, if only its record was interrupted.

    A step that broke off in the middle is recorded by the states in which it left the sessions.
    """
    event = step.event
    if made is None and not was_kept(error):
        return False

    def record() -> bool:
        if made is not None or hasattr(event, "made"):
            if ledger._records is not None:  # noqa: SLF001
                hand(ledger._records.once(), event.made if made is None else made)  # noqa: SLF001
            return True
        if hasattr(event, "torn"):
            _tell(ledger, step)
        return False

    try:
        return surely(record)
    except Exception as failed:  # noqa: BLE001  such as a stack that is full: what interrupted is raised on
        log.error("what was interrupted could not be recorded: %s", failed, extra={"session": ledger.id})
        ledger._untold.append(record)  # noqa: SLF001
        return hasattr(event, "made")


def tell_rest(ledger: Recorded) -> None:
    """
    Record the events that could not be recorded when they were interrupted.
    """
    while ledger._untold:  # noqa: SLF001
        record = ledger._untold.pop()  # noqa: SLF001
        try:
            surely(record)
        except Exception as failed:  # noqa: BLE001
            log.error("what was interrupted is not recorded: %s", failed, extra={"session": ledger.id})


def end(calls: Calling, decision: Decision, plan: Plan, error: BaseException) -> None:
    """
    Settle an admitted call that is still open, as *error* broke off the work that would have settled it.
    """
    if not decision.n or decision.envelope is not None or (calls._passes and isinstance(error, calls._passes)):  # noqa: SLF001
        return
    n = decision.n

    def settle() -> None:
        if calls._read(lambda state, _: any(one.n == n and one.parked is None for one in state.pending.values())):  # noqa: SLF001
            calls._settle(decision, plan, error)  # noqa: SLF001

    _surely_try(calls, settle)


def let_go(calls: Calling, decision: Decision) -> None:
    """
    Let the call of *decision* hold nothing: it was claimed, and an interruption kept it from being run.
    """
    _surely_try(calls, lambda: calls._let_go(decision))  # noqa: SLF001


def _surely_try(calls: Calling, work: Callable[[], object]) -> None:
    try:
        surely(work)
    except Exception as failed:  # noqa: BLE001  what interrupted is raised on
        log.error("an interrupted call stays open: %s", failed, extra={"session": calls.id})


def _tell(ledger: Recorded, step: Step) -> None:
    """
    Record where the states of *step* stand.
    """
    engine = step.engine if step.event.shared else step.engine.within(())

    def stand(states: list[SessionState]) -> tuple[Any, list[bytes]]:
        return engine.apply(Note(ledger._time()), states), [shown(state) for state in states]  # noqa: SLF001

    made, packed = ledger._store.update(step.keys, stand)  # noqa: SLF001
    log.warning("a step was interrupted, its states are mended", extra={"session": ledger.id})
    records = ledger._records  # noqa: SLF001
    if records is not None:
        values = {"states": [b2a_base64(each, newline=False).decode() for each in packed], **(made.marks or {})}
        records.event("interrupted", made, values)
