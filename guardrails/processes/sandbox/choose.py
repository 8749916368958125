"""
Which sandbox there is on this machine.
"""

import os
import sys

from dataclasses import dataclass
from typing import Final

from guardrails.core.values.errors import SandboxUnavailable

from .confinement import NAMES, Backend, Name
from .unconfined import Unconfined


_CONFINING: Final = ("bwrap", "landlock")
UNCONFINED: Final = "`sandbox: none` runs programs without one"


def choose(name: Name = "auto") -> Backend:
    """
    The sandbox *name*, or with `auto` the first of bwrap and landlock that works here, which a trial run shows once a boot.

    Raises SandboxUnavailable, with what blocked each, if none works; ValueError if there is no such sandbox.
    """
    if name not in NAMES:
        raise ValueError(f"there is no sandbox `{name}`: it is one of {', '.join(NAMES)}")
    if name == "none":
        return Unconfined()
    wanted = _CONFINING if name == "auto" else (name,)
    reasons = {}
    for each in wanted:
        try:
            return tried(each)
        except SandboxUnavailable as error:
            reasons[each] = str(error)
    told = "; ".join(f"{each}: {why}" for each, why in reasons.items())
    raise SandboxUnavailable(f"no sandbox is left: {told}; {UNCONFINED}", reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """
    The offer of this machine for one sandbox.
    """

    name: str
    blocked: str | None
    """Why it does not work here, with what to do; None: it works, as a trial run showed."""
    cannot: tuple[str, ...]
    """What it cannot do, a sentence each."""


def offers() -> tuple[Offer, ...]:
    """
    Returns the offer of this machine for each sandbox, the first choice of `auto` first.
    """
    found = []
    for name in _CONFINING:
        try:
            found.append(Offer(name=name, blocked=None, cannot=tried(name).cannot))
        except SandboxUnavailable as error:
            found.append(Offer(name=name, blocked=str(error), cannot=()))
    return tuple(found)


def tried(name: str) -> Backend:
    """
    The sandbox *name*, tried on this machine since it was started.

    Raises SandboxUnavailable if it cannot run a command here, or does not confine it.
    """
    if not sys.platform.startswith("linux"):
        system = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        raise SandboxUnavailable(f"it needs Linux, and this is {system}")

    from .bwrap import Bubblewrap
    from .folders import homes
    from .landlock import Landlock
    from .memory import key_of, remember, remembered

    backend: Backend = Bubblewrap.found() if name == "bwrap" else Landlock.found()
    key = key_of(backend.name, backend.program if isinstance(backend, Bubblewrap) else "")
    if not remembered(backend.name, key):
        from .probe import probe

        probe(backend, tuple(home for home in homes() if os.access(home, os.W_OK)))
        remember(backend.name, key)
    return backend
