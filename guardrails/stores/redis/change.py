"""
One change of several states in the server, all or none, exactly once.
"""

import time

from collections.abc import Sequence
from typing import Any, Final

from guardrails.core.state import SessionState
from guardrails.core.values.logs import log
from guardrails.stores.live import Held, Live, unpacked

from .scripts import COMMIT, HEAD_BYTES, MARK_BYTES, POKE, SETTLE, TURN_MS
from .wire import Cut, Wire


_DONE: Final = 1
_WAIT: Final = 3
"""The answer to a commit while another writer may go first."""
_PATIENCE: Final = b"%.2f" % (1.5 * TURN_MS / 1_000)
"""How long to be told, in seconds, before a look at whether who has the turn is still alive."""
_LOST: Final = 2
"""The answer to a commit whose writer's commit before is not there any more."""


def name_of(stem: bytes, key: str) -> bytes:
    """
    Returns the name that the server keeps the state of *key* by.
    """
    # Whatever a program uses as a name, lone surrogates too.
    return stem + b"s:" + key.encode("utf-8", "surrogatepass")


class Change:
    """
    The states of *keys*: looked at, changed by a step, committed, and looked at again if others were faster.

    `sent` while it is not known whether a commit took place.
    """

    def __init__(self, wire: Wire, stem: bytes, keys: Sequence[str], place: str) -> None:
        self._wire = wire
        self._stem = stem
        self._keys = keys
        self._names = [name_of(stem, key) for key in keys]
        self._place = place
        self._taken: list[Held] = []
        self._packed: list[bytes] = []
        self._fresh = False
        """Whether the states are as the server said in this very change, all at once."""
        self._number = 0
        self.sent = False

    @property
    def states(self) -> list[SessionState]:
        """
        The states, for a step to change.
        """
        return [held.state for held in self._taken]

    def recall(self, live: Live) -> None:
        """
        Begin with the states in *live*, if it has them all: the commit finds out whether they are still true.
        """
        found = [live.take(key) for key in self._keys]
        taken = [held for held in found if held is not None]
        if len(taken) == len(found):
            self._taken = taken

    def look(self, limit_s: float) -> None:
        """
        Ask the server for the states, unless they are here. Raises as `Wire.ask`, and StateUnreadable.
        """
        if self._taken or not self._keys:
            return
        found = self._wire.ask(limit_s, b"MGET", *self._names)
        self._taken = [self._held(key, said) for key, said in zip(self._keys, found, strict=True)]
        self._fresh = True

    def commit(self, limit_s: float) -> bool:
        """
        Have the server write the states that the step changed. Returns whether it did. If not, the states are as others
        left them.

        Raises as `Wire.ask`: after Cut, `settled` tells.
        """
        wire, taken = self._wire, self._taken
        self._packed = packed = [held.pack() for held in taken]
        if self._fresh and all(now == held.packed for now, held in zip(packed, taken, strict=True)):
            return True
        try:
            self._number = wire.next(limit_s)
        except BaseException:
            # The step has changed these states: run again, it is to begin from others.
            self._drop()
            raise
        arguments = [wire.writer, b"%d" % self._number, wire.mark(self._number), b"%d" % (len(self._stem) + 3)]
        for held, now in zip(taken, packed, strict=True):
            arguments += (held.mark, b"" if now == held.packed else now)
        keys = [self._stem + name for name in (b"writers", b"keys", b"turns", b"line")] + self._names
        self.sent = True
        try:
            said, *found = wire.run(COMMIT, keys, [*arguments, b"%d" % wire.last], limit_s)
        except Cut:
            raise
        except Exception:
            self._drop()
            raise
        if said in (_DONE, _LOST):
            self._check(said)
            self._written()
            return True
        self._drop()
        if said == _WAIT:
            found = self._wait(found[0], limit_s)
        if found:
            self._taken = [self._again(*each) for each in zip(self._keys, taken, found, strict=True)]
            # Who waited was told of one state; the others are as they were read, which nobody has looked at since.
            self._fresh = said != _WAIT
        return False

    def _wait(self, place: int, limit_s: float) -> list[Any]:
        """
        Wait in line for the state at *place*; what the server has, as `commit` gets it, or nothing if it is not known.
        """
        wire, stem, name = self._wire, self._stem, self._names[place]
        key, until = name[len(stem) + 2 :], time.monotonic() + limit_s
        told = stem + b"go:" + wire.writer + key
        while True:
            said = wire.ask(limit_s, b"BLPOP", told, _PATIENCE)
            if said is None and time.monotonic() > until:
                return []
            keys = [stem + b"turns", stem + b"line", name, told]
            found = wire.run(POKE, keys, [key, wire.writer], limit_s) if said is None else said[1]
            if found is not None:
                return [found if n == place else 1 for n in range(len(self._keys))] if found else []

    def settled(self, limit_s: float) -> bool:
        """
        Returns whether the commit whose answer was lost took place. If not, it never will, and the states are to be
        looked at anew.

        Raises as `Wire.ask`.
        """
        wire = self._wire
        numbers = [b"%d" % number for number in (self._number, self._number + 1, wire.last)]
        said, last = wire.run(SETTLE, [self._stem + b"writers"], [wire.writer, *numbers], limit_s)
        self._check(said)
        if int(float(last)) == self._number:
            self._written()
            return True
        wire.last = int(float(last))
        self._drop()
        return False

    def _check(self, said: int) -> None:
        if said == _LOST:
            log.error(
                "the store `%s` has lost what was committed to it: it was restarted without its log, or a replica that was "
                "behind took over; sessions and scopes go on from what it has",
                self._place,
            )

    def keep(self, live: Live) -> None:
        """
        Have *live* remember the states that are in the server now.
        """
        live.keep(self._keys, self._taken)

    def _drop(self) -> None:
        self.sent = self._fresh = False
        self._taken = []

    def _written(self) -> None:
        self.sent = False
        self._wire.last = self._number
        mark = self._wire.mark(self._number)
        for held, now in zip(self._taken, self._packed, strict=True):
            if now != held.packed:
                held.mark, held.packed = mark, now

    def _held(self, key: str, said: bytes | None) -> Held:
        if said is None:
            return Held(b"", b"", SessionState())
        packed = said[HEAD_BYTES:]
        return Held(said[:MARK_BYTES], packed, unpacked(key, packed, self._place))

    def _again(self, key: str, held: Held, said: Any) -> Held:
        if said != 1:
            return self._held(key, said)
        # It is in the server as it was read, and the step has changed it here since.
        return (
            Held(held.mark, held.packed, unpacked(key, held.packed, self._place))
            if held.mark
            else self._held(key, None)
        )
