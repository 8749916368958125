"""
What the stores of files, databases and servers have in common: turns of threads, tries, faults in words, forks.
"""

import itertools
import threading
import time

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, Self, TypeVar

from guardrails.core.state import SessionState
from guardrails.core.values.errors import StoreError
from guardrails.core.values.units import duration_ms

from .base import NESTED, Stored, When, at_forks
from .live import Live


T = TypeVar("T")
BATCH: Final = 500
"""States that are read, or dropped, in one go, so that calls of others get in between."""
MEANS: Final = {
    "busy": "was locked by others for {:g} s: end what holds it, or give the store a longer `timeout`",
    "away": "cannot be reached, or did not answer within {:g} s: see that it runs, and its address",
    "starting": "still starts, loads or fails over after {:g} s: try again, or give the store a longer `timeout`",
    "login": "did not let this user in: correct user and password in its URL",
    "forbidden": "does not let this user do it: give it the rights that docs/stores.md names",
    "read-only": "is read-only: give this process the right to write it and its folder",
    "folder": "cannot be opened: its folder must be there, and this process must be allowed to write it",
    "replica": "is a replica, which takes no writes: give the address of the primary",
    "full": "is full: free some space, or `prune` sessions that are over; what was admitted before is kept",
    "disk": "cannot read or write its disk: see its log, or the system's",
    "damaged": (
        "is damaged, or no database: put a copy of it back, or move it away together with its `-wal` and `-shm` files, "
        "which starts all sessions and scopes afresh"
    ),
    "foreign": "holds what another program wrote: use another file, `table` or `namespace`",
    "": "cannot be used",
}
"""By its kind, the meaning of a fault and its remedy; seconds stand for how long it was tried."""
PASSING: Final = frozenset({"busy", "away", "starting", "replica"})
"""Kinds of faults that may be over in a moment."""
FORKED: Final = "this process was forked in the middle of an update of the store `{}`: start it by spawn, or not from inside of a guard"
_UNSURE: Final = "; the step that was under way may have been kept: then more is charged than was used, never less"


class Stale(Exception):
    """
    Others changed the states meanwhile: the step is to be done again.
    """


class Slot:
    """
    A place in which one thread at a time asks the store, by a link of its own: a connection, or a writer.
    """

    __slots__ = ("busy", "link", "lock", "unsure")

    def __init__(self) -> None:
        # Reentrant, so that a step which asks the store finds itself out instead of waiting for itself.
        self.lock = threading.RLock()
        self.busy = False
        self.link: Any = None
        self.unsure = False
        """Whether a commit is under way of which nobody knows yet whether it took place."""


class PersistentStore(ABC):
    """
    A store that outlives its processes.
    """

    blocks: Final = True
    _places: ClassVar[int] = 8
    """Threads that ask at once; others wait for them."""
    _pause_s: ClassVar[float] = 0.02
    """Between two tries, in seconds."""
    _resends: ClassVar[bool] = False
    """Whether a commit may be sent again whose answer was lost."""
    _errors: type[Exception]
    """Of the library that it uses."""

    def __init__(self, place: str, timeout: float, live: int) -> None:
        self.place: Final = place
        self._timeout = timeout
        self._live = Live(live)
        self._begin()
        at_forks(self)

    def _begin(self) -> None:
        self._own = threading.local()
        self._numbers = itertools.count()
        self._slots = [Slot() for _ in range(self._places)]

    @abstractmethod
    def _kind(self, error: Exception) -> str:
        """
        Returns the kind of an error, a key of `MEANS`.
        """

    @abstractmethod
    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`. Nothing is kept if *step* raises, or is interrupted.
        """

    @abstractmethod
    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """

    @abstractmethod
    def read(self, key: str) -> Stored | None:
        """
        See `Listed.read`.
        """

    @abstractmethod
    def _page(self, prefix: str, last: str) -> Sequence[tuple[str, Stored | None]]:
        """
        Returns the next keys after *last* that begin with *prefix*, in their order, each with its state if it is still there.
        """

    @abstractmethod
    def _drop(self, idle_ms: int, prefix: str, *, scopes: bool) -> Iterator[int]:
        """
        Drop what was idle, in parts. Returns how many states each part had.
        """

    @abstractmethod
    def __len__(self) -> int: ...

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        See `Listed.entries`. They come in the order of their keys.
        """
        last = ""
        while page := self._page(prefix, last):
            yield from (one for _, one in page if one is not None)
            last = page[-1][0]

    def prune(
        self,
        idle: float | str,
        *,
        scopes: bool = False,
        prefix: str = "",
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """
        Drop sessions, and *scopes* if asked, that have not changed for *idle* (seconds, or `30d`) and whose key begins
        with *prefix*. Returns the number of dropped states. The function *progress* is told now and then how many they
        are so far.

        Call it now and then, in any process. The time must be longer than any of your sessions pauses between two calls.
        A scope that is dropped starts afresh, so the scopes of a budget that never ends must stay. Raises ValueError if
        *idle* is no duration.
        """
        dropped = 0
        for gone in self._drop(duration_ms(idle), prefix, scopes=scopes):
            dropped += gone
            if progress is not None:
                progress(dropped)
        return dropped

    def _ask(self, ask: Callable[[Slot], T]) -> T:
        """
        Returns the answer that *ask* gets, asked again while that may help and there is time.
        """
        until, own = time.monotonic() + self._timeout, self._own
        if not hasattr(own, "slot"):
            own.slot = self._slots[next(self._numbers) % len(self._slots)]
        slot: Slot = own.slot
        with slot.lock:
            if slot.busy:
                raise RuntimeError(NESTED)
            slot.busy = True
            try:
                while True:
                    try:
                        return ask(slot)
                    except (self._errors, Stale) as error:
                        self._go_on(error, slot, until)
            except Exception:
                raise
            except BaseException:
                self._let_go(slot)  # An answer may be on its way.
                raise
            finally:
                slot.busy = slot.unsure = False

    def _go_on(self, error: Exception, slot: Slot, until: float) -> None:
        """
        Wait until it may be asked again. Raises StoreError if that does not help, or there is no time.
        """
        kind = "busy" if isinstance(error, Stale) else self._kind(error)
        # What was answered with a refusal was not kept.
        unsure = slot.unsure and kind == "away"
        if kind not in PASSING or (unsure and not self._resends) or time.monotonic() + self._pause_s > until:
            raise explained(error, kind, self.place, self._timeout, unsure=unsure) from error
        if not isinstance(error, Stale):
            time.sleep(self._pause_s)

    def _let_go(self, slot: Slot) -> None:
        link, slot.link = slot.link, None
        if link is not None:
            with suppress(self._errors):
                link.close()

    def close(self) -> None:
        """
        Let go of the file, or of the connections; the next use opens it again.
        """
        self._live.clear()
        for slot in self._slots:
            with slot.lock:
                if slot.busy:
                    raise RuntimeError(NESTED)
                self._let_go(slot)

    def _at_fork(self, when: When) -> None:
        if when == "child":
            self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        for slot in getattr(self, "_slots", ()):
            self._let_go(slot)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r})"


def explained(error: Exception, kind: str, place: str, timeout_s: float, *, unsure: bool = False) -> StoreError:
    """
    Returns the error to raise for *error* of this *kind* at the store *place*. If *unsure*, it is not known whether the step was kept.
    """
    if isinstance(error, StoreError):
        return error
    said = MEANS[kind].format(timeout_s)
    return StoreError(f"the store `{place}` {said}{_UNSURE if unsure else ''} ({str(error).strip()})")


def name_of(key: str) -> bytes:
    """
    Returns *key* as bytes, whatever a program uses as a name: NUL and lone surrogates too.
    """
    return key.encode("utf-8", "surrogatepass")


def key_of(name: bytes) -> str:
    """
    Returns the key that `name_of` made *name* of.
    """
    return name.decode("utf-8", "surrogatepass")
