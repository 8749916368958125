"""
Sessions in a server of Redis or Valkey, shared by processes of many machines.
"""

import os
import re
import threading
import time
import weakref

from collections.abc import Callable, Sequence
from typing import Any, Final, Self, TypeVar

from guardrails.core.state import SessionState
from guardrails.core.values.errors import StoreError
from guardrails.stores.base import NESTED
from guardrails.stores.live import LIVE, Live
from guardrails.stores.turns import Turns

from .address import Address
from .change import Change
from .explained import FAILURES, explained, passing
from .rows import Rows
from .wire import Cut, Refused, Wire


T = TypeVar("T")
_NAMESPACE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.25


class RedisStore(Rows):
    """
    States in the server at *url* (`redis://HOST:PORT/DATABASE`, `rediss://` with TLS, `unix:///PATH`) or of a
    `redis.Redis`, under the keys of *namespace*. Safe in any number of threads, processes and machines.

    One `update` reads the states, runs the step here, and has the server write all of them at once if none was changed
    meanwhile. Otherwise the step is run again. No process ever holds a lock there. It takes *timeout* seconds at most,
    then raises StoreError, as if the server cannot be reached or refuses.

    Raises StoreError if the server could drop states for lack of memory, MissingExtra if the package `redis` is missing.
    """

    blocks: Final = True

    def __init__(self, url: Any, *, namespace: str = "guardrails", timeout: float = 5.0, live: int = LIVE) -> None:
        if not _NAMESPACE.fullmatch(namespace):
            raise StoreError(f"`{namespace}` is no namespace: use 1 to 100 letters, digits and `_.:-`")
        self._address = Address(url)
        self.namespace: Final = namespace
        self._stem = f"{{{namespace}}}:".encode()
        self._timeout = timeout
        self._live = Live(live)
        self._down = True
        """The last try reached nothing: there is one more, and no waiting."""
        self._begin()
        self._ask(lambda wire, limit: wire.ask(limit, b"PING"))
        _stores.add(self)

    def _begin(self) -> None:
        self._wires: list[Wire] = []
        self._turns = Turns()
        self._own = threading.local()

    @property
    def place(self) -> str:
        """
        The server's URL without the secrets in it.
        """
        return self._address.shown

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`.
        """
        own, turns = self._own, self._turns
        if getattr(own, "busy", False):
            raise RuntimeError(NESTED)
        until = time.monotonic() + self._timeout
        ticket = turns.ticket()
        own.busy = True
        try:
            if not turns.wait(keys, ticket, until):
                raise StoreError(
                    f"other threads used the store `{self.place}` for {self._timeout:g} s: see what it waits for"
                )
            return self._change(keys, step, until)
        finally:
            own.busy = False
            try:
                turns.leave(keys, ticket)
            except BaseException:
                turns.leave(keys, ticket)  # Ctrl-C came first: a key that stays taken would stop all others
                raise

    def _change(self, keys: Sequence[str], step: Callable[[list[SessionState]], T], until: float) -> T:
        wires, wire = self._wires, self._wire()
        change = Change(wire, self._stem, keys, self.place)
        change.recall(self._live)
        pauses = 0
        try:
            while True:
                try:
                    if change.sent and change.settled(_limit(until)):
                        break
                    change.look(_limit(until))
                    result = step(change.states)
                    if self._wires is not wires:
                        raise StoreError(
                            f"this process was forked in the middle of an update of the store `{self.place}`: start it by "
                            "spawn, or not from inside of a guard"
                        )
                    done = change.commit(_limit(until))
                    self._down = False
                    if done:
                        break
                    if time.monotonic() > until:
                        raise StoreError(
                            f"others changed the same states in the store `{self.place}` for {self._timeout:g} s without a "
                            "pause. Have fewer workers share a scope, or give it a longer `timeout`"
                        )
                except FAILURES as error:
                    pauses += 1
                    self._failed(wire, error, until, pauses, unsure=change.sent)
            change.keep(self._live)
            return result
        except Exception:
            raise
        except BaseException:
            wire.drop()  # an answer may be on its way
            raise
        finally:
            if self._wires is wires:
                wires.append(wire)

    def _wire(self) -> Wire:
        try:
            return self._wires.pop()
        except IndexError:
            return Wire(self._address.connection, self._stem)

    def _failed(self, wire: Wire, error: Exception, until: float, tries: int, *, unsure: bool = False) -> None:
        """
        Wait a moment before the next try, or raise StoreError if *error* will not pass, or there is no time.
        """
        if isinstance(error, Refused) and error.code == "MOVED":
            wire.drop()
            self._address.moved(str(error))
        elif passing(error):
            wire.drop()
            self._address.back()
        pause = min(_PAUSE_S * 2 ** (tries - 1), _LONGEST_PAUSE_S)
        cut = isinstance(error, Cut)
        if passing(error) and not (cut and self._down) and time.monotonic() + pause < until:
            time.sleep(pause)
            return
        if cut:
            self._down = True
            self._hang_up()
        raise explained(error, self.place, self._timeout, unsure=unsure) from error

    def _hang_up(self) -> None:
        while self._wires:
            try:
                self._wires.pop().drop()
            except IndexError:
                return

    def _ask(self, ask: Callable[[Wire, float], T]) -> T:
        """
        Returns the answer that *ask* gets of a wire in a limit of time; asked again while that may help.
        """
        if getattr(self._own, "busy", False):
            raise RuntimeError(NESTED)
        until, tries = time.monotonic() + self._timeout, 0
        wires, wire = self._wires, self._wire()
        self._own.busy = True
        try:
            while True:
                try:
                    got = ask(wire, _limit(until))
                except FAILURES as error:
                    tries += 1
                    self._failed(wire, error, until, tries)
                else:
                    self._down = False
                    return got
        finally:
            self._own.busy = False
            if self._wires is wires:
                wires.append(wire)

    def clock(self) -> float:
        """
        Returns seconds since 1970 by the server's clock, as of the latest connection: one time for all who use it.

        For `policy.session(..., clock=store.clock)`, if the clocks of machines may differ.
        """
        return self._ask(lambda wire, limit: wire.now_us(limit)) / 1e6

    def close(self) -> None:
        """
        Close the connections; the next use makes new ones.
        """
        if getattr(self._own, "busy", False):
            raise RuntimeError(NESTED)
        self._hang_up()
        self._live.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_wires"):
            self._hang_up()

    def __repr__(self) -> str:
        return f"RedisStore({self.place!r}, namespace={self.namespace!r})"


def _limit(until: float) -> float:
    # Half of what is left, so that there is time to find out what became of a commit whose answer never came.
    return max((until - time.monotonic()) / 2, 0.001)


_stores: "weakref.WeakSet[RedisStore]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for store in list(_stores):
        # Closed here only: the parent goes on with its own.
        store._hang_up()  # noqa: SLF001
        store._begin()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
