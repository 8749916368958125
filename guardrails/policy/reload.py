"""
The files of a policy: what names one, what tells one content of it from another, and read again when a time stamp changes.

Promises, each with a test:

* A file that changes, or one that it extends, holds from the next call on; a call that runs is settled, and who waits for a person waits on.
* Files that are not valid, or are gone, are logged once for each mistake, and the policy from before stays. They are read again every 2 s.
  No call fails of it.
* One thread looks, the others go on; what is written while a file is read is found by the next look.
* Other scopes need a start of the process. The same content written again is no change.
"""

import os
import threading

from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from .policy import Policy


LOOK_S: Final = 0.1
"""Seconds between two looks."""
AGAIN_S: Final = 2.0
"""Seconds after which files that were no good are read again though none of them has changed: another may be there now."""

Stamp = tuple[int, int, int, int]


Contents = tuple[Mapping[str, Stamp | None], str]
"""Of the files of a policy the stamps, by whole path, and what stands for all that they hold."""


def is_name(text: str) -> bool:
    """
    Returns whether *text* is the name of a policy, and not a path: letters, digits, `_` and `-` only.
    """
    return text != "" and text.isascii() and f"_{text.replace('-', '_')}".isidentifier()


def stamp_of(path: str) -> Stamp | None:
    """
    Returns the stamp that tells one version of the file *path* from another; None if no file can be seen.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    # Who copies with the times of the original keeps all but the time of the change.
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


class PolicyFiles:
    """
    The files of a policy, with their *contents*, which *load* reads again.
    """

    def __init__(self, contents: Contents, load: "Callable[[], tuple[Policy, Contents]]", every_s: float) -> None:
        self.every_s = every_s
        """Seconds between two looks."""
        self._load, self._lock = load, threading.Lock()
        self._wrong, self._again_s = "", 0.0
        self._stamps, self.digest = contents

    def look(self, policy: "Policy") -> None:
        """
        Bring *policy* up to date with its files, if they have changed.
        """
        stamps = {path: stamp_of(path) for path in self._stamps}
        again = self._wrong and monotonic() >= self._again_s
        if (stamps != self._stamps or again) and self._lock.acquire(blocking=False):
            try:
                self._renew(policy, stamps)
            finally:
                self._lock.release()

    def _renew(self, policy: "Policy", stamps: Mapping[str, Stamp | None]) -> None:
        from guardrails.core.values.errors import PolicyError
        from guardrails.core.values.logs import log

        try:
            made, contents = self._load()
            if made.scopes.keys() != policy.scopes.keys():
                both = f"{sorted(made.scopes)} and were {sorted(policy.scopes)}"
                raise PolicyError([f"the scopes are {both}: that needs a start of the process"])
        except Exception as error:  # also what a guard of one's own raises: no call may fail of it
            reason = str(error) or repr(error)
            if reason != self._wrong:
                log.error("the changed policy `%s` cannot be used, the one from before stays: %s", policy.name, reason)
            self._wrong, self._again_s, self._stamps = reason, monotonic() + AGAIN_S, stamps
            return
        after = contents[1]
        if after != self.digest:
            policy.changed, policy.digest, made.chain.source = True, after, after
            policy.scopes, policy.prices, policy.model_files = made.scopes, made.prices, made.model_files
            # The last of them is the chain: it is by that that a session knows.
            policy.stop, policy.chain = made.stop, made.chain
            log.warning("the policy `%s` has changed, and holds from the next call on: %s", policy.name, after)
        # Last: what breaks off before is done again.
        self._wrong, (self._stamps, self.digest) = "", contents

    def within(self, folder: str) -> bool:
        """
        Returns whether one of them is in *folder*, or a link that leads to it. A link to a link counts at its two ends.
        """
        roots = os.path.join(os.path.realpath(folder), ""), os.path.join(os.path.abspath(folder), "")
        ends = (end(path) for path in self._stamps for end in (os.path.abspath, os.path.realpath))
        return any(place.startswith(roots) for place in ends)
