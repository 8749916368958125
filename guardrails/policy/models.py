"""
The model files of a policy, loaded again when they change.
"""

import os
import threading

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from guardrails.core.retries.model import MAX_BYTES, RetryModel, parse
from guardrails.core.retries.serving import Models
from guardrails.core.values.errors import ModelError
from guardrails.core.values.logs import log, warn_once

from .reload import Stamp, stamp, stamp_of


CHECK_MS: Final = 5_000
"""A changed file is found at the first failure after this time."""
COLD: Final = Path(__file__).parents[1] / "core" / "retries" / "cold.json"
"""What is served until there is a model: fitted on the beliefs of `learning.beliefs` alone."""


def read_model(path: str | os.PathLike[str]) -> RetryModel:
    """
    Returns the model in a file. Raises OSError, and ModelError with the mistake in it.
    """
    return _read(path)[0]


@cache
def cold_model() -> RetryModel:
    """
    Returns the model that is shipped.
    """
    return read_model(COLD)


class ModelFiles:
    """
    The models in *paths*, kept up to date in *models*. Safe in any number of threads: one looks, the others go on with
    the model that is there.

    A file that is not there stands for the shipped model. A file that is not valid is logged, once for each version of
    it, and the model that was loaded before stays. A file is read whole and its hash checked, so that one that is just
    being written is never served in part.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.models = Models()
        self._paths = tuple(dict.fromkeys(paths))
        self._seen: dict[str, Stamp | None] = {}
        self._checked_ms = 0
        self._lock = threading.Lock()
        self._look()

    def refresh(self, now_ms: int) -> None:
        """
        Look whether a file has changed, at most every `CHECK_MS` of the caller's time.
        """
        # Two sessions may have clocks of their own.
        if 0 <= now_ms - self._checked_ms < CHECK_MS or self._lock.locked():
            return
        with self._lock:
            self._look()
            self._checked_ms = now_ms

    def _look(self) -> None:
        loaded, seen = dict(self.models.loaded), dict(self._seen)
        for path in self._paths:
            stamped = stamp_of(path)
            if path in loaded and seen.get(path) == stamped:
                continue
            seen[path] = stamped
            try:
                loaded[path], seen[path] = _read(path)
            except FileNotFoundError:
                if path not in loaded:
                    warn_once(f"model {path}", "no model `%s` yet: the shipped one is asked until it is trained", path)
            except (ModelError, OSError) as error:
                log.error("the model `%s` cannot be used, what was loaded before stays: %s", path, error)
            loaded.setdefault(path, cold_model())
        # What a signal breaks off before is looked for again.
        self.models.loaded, self._seen = loaded, seen


def _read(path: str | os.PathLike[str]) -> tuple[RetryModel, Stamp]:
    with Path(path).open("rb") as file:
        found = os.fstat(file.fileno())
        text = file.read(MAX_BYTES + 1)
    return parse(text), stamp(found)
