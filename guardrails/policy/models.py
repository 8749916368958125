"""
The model files of a policy, loaded again when they change.
"""

import os

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from guardrails.core.retries.model import MAX_BYTES, RetryModel, parse
from guardrails.core.retries.serving import RETRIES, Models
from guardrails.core.values.errors import ModelError
from guardrails.core.values.logs import log, warn_once

from .reload import Stamp, stamp_of


CHECK_MS: Final = 5_000
"""A changed file is found at the first failure after this time."""
COLD: Final = Path(__file__).parents[1] / "core" / "retries" / "cold.json"
"""What is served until there is a model: fitted on the beliefs of `learning.beliefs` alone."""


def read_model(path: str | os.PathLike[str], kind: str = RETRIES) -> RetryModel:
    """
    Returns the model of a *kind* in a file. Raises OSError, and ModelError with the mistake in it.
    """
    with Path(path).open("rb") as file:
        return parse(file.read(MAX_BYTES + 1), kind)


@cache
def cold_model() -> RetryModel:
    """
    Returns the model that is shipped.
    """
    return read_model(COLD)


class ModelFiles(Models):
    """
    The models of files, each of a kind, kept up to date. Safe in any number of threads: one looks, the others go on with the model
    that is there.

    A file that is not there stands for the shipped model, or for none of loops. A file that is not valid is logged, once for each version of
    it, and the model that was loaded before stays. A file is read whole and its hash checked, so that one that is just
    being written is never served in part.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._stamps: dict[str, Stamp | None] = {}
        self._checked_ms = -CHECK_MS
        self.refresh(0)

    def refresh(self, now_ms: int) -> None:
        """
        Look whether a file has changed, at most every `CHECK_MS` of the caller's time.
        """
        # Two sessions may have clocks of their own.
        if 0 <= now_ms - self._checked_ms < CHECK_MS:
            return
        self._checked_ms = now_ms
        for path, kind in self._kinds.items():
            # Before it is read: what is written meanwhile is found by the next look.
            stamped, model = stamp_of(path), self.loaded.get(path)
            if self._stamps.get(path, ()) == stamped:
                continue
            self._stamps[path] = stamped
            try:
                model = read_model(path, kind)
            except FileNotFoundError:
                warn_once(f"model {path}", "no model `%s` yet: what is shipped is asked until it is trained", path)
            except (ModelError, OSError) as error:
                log.error("the model `%s` cannot be used, what was loaded before stays: %s", path, error)
            if model or kind == RETRIES:
                self.loaded = {**self.loaded, path: model or cold_model()}
