"""
The files of a policy: read again when they change.
"""

import os
import threading

from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import Any, Final, NamedTuple

from guardrails.core.values.errors import GuardrailsError, PolicyError
from guardrails.core.values.logs import log
from guardrails.policy.source import digest, digests
from guardrails.session.terms import Terms

from .switch import LOOK_S, Stamp, stamp_of


AGAIN_S: Final = 2.0
"""Seconds after which files that were no good are read again though none of them has changed: another may be there now."""
MAX_LINKS: Final = 40
"""As many as a system follows."""


class Loaded(NamedTuple):
    """
    A policy, and the digest of each file that it was made of, by whole path.
    """

    policy: Terms
    sources: Mapping[str, str]


class PolicyFiles:
    """
    The *sources* of a policy, which *load* reads again. Safe in any number of threads: one looks, the others go on.

    Files that are not valid are logged, once for each mistake, and the policy that was loaded before stays.
    """

    def __init__(self, sources: Mapping[str, str], load: Callable[[], Loaded], *, every_s: float = LOOK_S) -> None:
        self.every_s = every_s
        """Seconds between two looks."""
        self._load = load
        self.changed = False
        self._wrong = ""
        self._again_s = 0.0
        self._begin_locks()
        self._begin(sources)

    def _begin(self, sources: Mapping[str, str]) -> None:
        self._sources = tuple(sources)
        self.digest = _digest(sources)
        """What stands for their contents, in order."""
        stamps: dict[str, Stamp | None] = {path: stamp_of(path) for path in sources}
        # One that was written since it was read is no longer what was loaded: the next look is to find that.
        self._stamps = stamps if digests(sources) == sources else {}

    def _begin_locks(self) -> None:
        self._pid, self._lock, self._looking = os.getpid(), threading.RLock(), False

    def within(self, folder: str) -> bool:
        """
        Returns whether one of them is in *folder*, or a link that leads to it.
        """
        roots = os.path.join(os.path.realpath(folder), ""), os.path.join(os.path.abspath(folder), "")  # noqa: PTH100, PTH118
        return any(place.startswith(roots) for path in self._sources for place in _places(path))

    def look(self, policy: Any) -> None:
        """
        Bring *policy* up to date with its files, if they have changed.
        """
        stamps = {path: stamp_of(path) for path in self._sources}
        wait = bool(self._wrong) and monotonic() < self._again_s
        if stamps == self._stamps and (not self._wrong or wait):
            return
        if self._pid != os.getpid():
            # A lock that another thread held while this process forked is held for good.
            self._begin_locks()
        if self._looking:
            return
        # A signal between an `acquire` and its `try` would leave the lock taken for good: `with` has no such place.
        with self._lock:
            self._looking = True
            try:
                if _digest(digests(self._sources)) == self.digest and not self._wrong:
                    # Somebody has written the same again.
                    self._stamps = stamps
                else:
                    self._take(policy, stamps)
            finally:
                self._looking = False

    def _take(self, policy: Any, stamps: dict[str, Stamp | None]) -> None:
        try:
            made, sources = self._load()
            mistakes = _misfits(policy, made)
            if mistakes:
                raise PolicyError(mistakes)  # noqa: TRY301
        except Exception as error:  # noqa: BLE001  also what a guard of one's own raises: no call may fail of it
            said = str(error) if isinstance(error, (GuardrailsError, OSError)) else repr(error)
            if said != self._wrong:
                log.error("the changed policy `%s` cannot be used, the one from before stays: %s", policy.name, said)
            self._wrong, self._again_s, self._stamps = said, monotonic() + AGAIN_S, stamps
            return
        after = _digest(sources)
        if after != self.digest:
            self.changed, made.chain.source = True, after
            policy.scopes, policy.prices, policy.model_files = made.scopes, made.prices, made.model_files
            # The last of them: it is by the chain that a session knows.
            policy.chain = made.chain
            log.warning("the policy `%s` has changed, and holds from the next call on: %s", policy.name, after)
        self._wrong = ""
        # A signal that comes before this has all of it done again.
        self._begin(sources)


def _places(path: str) -> Iterator[str]:
    """
    Returns the places at which somebody could replace *path*: each link on the way, and its target.
    """
    for _ in range(MAX_LINKS):
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
        yield os.path.join(folder, name)  # noqa: PTH118
        yield os.path.join(os.path.realpath(folder), name)  # noqa: PTH118
        if not os.path.islink(path):  # noqa: PTH114
            return
        path = os.path.join(folder, os.readlink(path))  # noqa: PTH115, PTH118


def _misfits(policy: Terms, made: Terms) -> list[str]:
    """
    Why *made* cannot stand in the place of *policy* while sessions run.
    """
    if policy.scopes.keys() == made.scopes.keys():
        return []
    both = f"{sorted(made.scopes)} and were {sorted(policy.scopes)}"
    return [f"the scopes are {both}: that needs a start of the process"]


def _digest(sources: Mapping[str, str]) -> str:
    return digest("\0".join(content or "-" for content in sources.values()).encode())
