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
from guardrails.hooks.options import Options
from guardrails.policy.compiled.loading import sources_of


CHECK_S: Final = 1.0
"""Seconds between two looks at the code; policies are looked at each time."""
_PACKAGE: Final = str(Path(__file__).parents[2])
Stamp = tuple[int, int, int]


class Watch:
    """
    Remembers the code of *package* as it is now, and policies as they are when they are first asked about.
    """

    def __init__(self, package: str = _PACKAGE, *, check_s: float = CHECK_S) -> None:
        self._package = package
        self._check_s = check_s
        self._code = {str(path): _stamp(str(path)) for path in Path(package).rglob("*.py")}
        self._policies: dict[str, tuple[dict[str, Stamp | None], dict[str, str]]] = {}
        self._stores: dict[str, tuple[int, int]] = {}
        self._checked_s = time.monotonic()
        self._lock = threading.Lock()

    def changed(self, options: Options) -> bool:
        """
        Returns whether the files behind an answer by *options* have changed: loaded code, the content of the policy, or
        a store that was taken away.
        """
        with self._lock:
            path = options.store_path
            if path in self._stores and self._stores[path] != _place(path):
                return True
            return self._code_changed() or self._policy_changed(options.policy)

    def used(self, options: Options) -> None:
        """
        An answer by *options* was given, so that its store is open.
        """
        path = options.store_path
        place = _place(path)
        if place is not None:
            self._stores.setdefault(path, place)

    def _code_changed(self) -> bool:
        now_s = time.monotonic()
        if now_s - self._checked_s < self._check_s:
            return False
        self._checked_s = now_s
        loaded = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
        return any(self._code.get(path) != _stamp(path) for path in loaded if path.startswith(self._package))

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
        self._policies[policy] = (stamps or dict.fromkeys(found), found)
        return bool(sources) and found != sources


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _place(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino
