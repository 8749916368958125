"""
The start of a program: the command that a sandbox makes of another, for every module that starts processes.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """
    A program, ready to be started by `run_started`, or by asyncio with these arguments, environment and folder.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    """All of it: nothing else of this process's own may be added."""
    folder: str
    backend: str
    """The sandbox that it runs in: `bwrap`, `landlock` or `none`."""
    whole: bool
    """Its first process ends all others if it is asked to end (SIGTERM), or if its own children are killed."""
