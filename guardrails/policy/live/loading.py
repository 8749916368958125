"""
A policy of a file that follows the changes of that file.
"""

import os

from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from typing import Any, TypeVar

from guardrails.policy.loading import load_document
from guardrails.policy.source import is_name

from .files import Loaded, PolicyFiles
from .live import Live


P = TypeVar("P", bound=Live)


def loaded(
    make: Callable[..., P],
    source: str | PathLike[str],
    *,
    guards: Sequence[Any],
    tools: Sequence[Any],
    reload: float | None,
) -> P:
    """
    Returns the policy that *make* makes of the file, or the name, *source*. A file is looked at every *reload* seconds,
    never if that is None.

    Raises PolicyError with every mistake.
    """
    said = load_document(source, guards)
    sources = said.pop("sources")
    made = make(tools=tools, **said)
    if reload is not None and not is_name(os.fspath(source)):
        # A name is a file of the library, which no one edits.
        again = partial(_again, make, os.path.abspath(source), guards, tools)  # noqa: PTH100
        made.files = PolicyFiles(sources, again, every_s=reload)
    return made


def _again(make: Callable[..., Any], path: str, guards: Sequence[Any], tools: Sequence[Any]) -> Loaded:
    said = load_document(path, guards)
    sources = said.pop("sources")
    return Loaded(make(tools=tools, **said), sources)
