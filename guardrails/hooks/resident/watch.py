"""
Whether the files that this process was made of are still the same.
"""

import os
import sys
import threading
import time

from pathlib import Path
from typing import Final

from guardrails.core.values.errors import PolicyError
from guardrails.policy.compiled.loading import sources_of


CHECK_S: Final = 1.0
"""Seconds between two looks at the code; policies are looked at each time."""
_PACKAGE: Final = str(Path(__file__).parents[2])
Stamp = tuple[int, int, int]


class Watch:
    """
    Remembers the library's code as it is now, and policies as they are when they are first asked about.
    """

    def __init__(self) -> None:
        self._code = {str(path): _stamp(str(path)) for path in Path(_PACKAGE).rglob("*.py")}
        self._policies: dict[str, tuple[dict[str, Stamp | None], dict[str, str]]] = {}
        self._checked_s = time.monotonic()
        self._lock = threading.Lock()

    def changed(self, policy: str) -> bool:
        """
        Whether code that was loaded, or a file of the policy that is used by the name or path *policy*, has other content.
        """
        with self._lock:
            return self._code_changed() or self._policy_changed(policy)

    def _code_changed(self) -> bool:
        now_s = time.monotonic()
        if now_s - self._checked_s < CHECK_S:
            return False
        self._checked_s = now_s
        loaded = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
        return any(self._code.get(path) != _stamp(path) for path in loaded if path.startswith(_PACKAGE))

    def _policy_changed(self, policy: str) -> bool:
        stamps, sources = self._policies.get(policy, ({}, {}))
        if sources and all(_stamp(path) == stamp for path, stamp in stamps.items()):
            return False
        try:
            # Before the content: a change in between shows as a stamp that is older.
            stamps = {path: _stamp(path) for path in sources}
            found = sources_of(policy)
        except PolicyError:
            # Whoever answers says what is wrong; what was answered before by this policy is over.
            return bool(sources)
        self._policies[policy] = (stamps or {path: None for path in found}, found)
        return bool(sources) and found != sources


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
