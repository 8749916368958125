"""
The places of programs: standard library only.
"""

import os

from .globs import encoded


def located(name: str, environment: dict[str, str]) -> str | None:
    """
    Returns the place of the program *name*, by the PATH of *environment*. Returns None if it is nowhere.

    Folders of PATH that are relative are left out: what they are would change with each `cd`.
    """
    folders = environment.get("PATH", os.defpath).split(":")
    return next((path for folder in folders if folder.startswith("/") and is_program(path := f"{folder}/{name}")), None)


def is_program(path: str) -> bool:
    """
    Returns whether *path* is a file that may be run.
    """
    place = encoded(path)
    return os.path.isfile(place) and os.access(place, os.X_OK)
