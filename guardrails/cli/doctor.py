"""
The command `doctor`.
"""

import platform
import re

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final

from guardrails import __version__

from .console import Json, show


OURS: Final = "toolcall-guardrails"
FOR_WORK_ON_IT: Final = ("dev", "docs", "test")
"""Extras that no user lacks."""
REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]++)[^;]*;\s*extra\s*==\s*['\"]([^'\"]+)['\"]$")
"""A package, and the extra that needs it."""


def doctor(*, as_json: Json = False) -> bool:
    """
    Show what works here: versions, extras, the sandbox.

    The sandbox runs a command. Exit code 1: something is broken, and the next step is said. A missing sandbox counts as
    broken, a missing extra does not: `pip install "toolcall-guardrails[NAME]"` adds it. `guardrails store ls` tries a store.

    \b
    Examples:
      guardrails doctor
      guardrails doctor --json
    """
    from guardrails.core.values.errors import SandboxUnavailable
    from guardrails.processes.sandbox import bubblewrap

    blocked = None
    try:
        bubblewrap()
    except SandboxUnavailable as error:
        blocked = str(error)
    works, installed, problems = blocked is None, _installed(OURS), []
    versions = {"python": platform.python_version(), "library": __version__, "installed": installed}
    versions["folder"] = str(Path(__file__).parents[2])
    if installed not in (None, __version__):
        other = f"the installation is {installed}, and this is {__version__}"
        problems.append({"problem": other, "next": f"pip install --force-reinstall {OURS}"})
    extras = lacking((installed and requires(OURS)) or ())
    document = {
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "auto": "bwrap" if works else None,
        "sandboxes": [{"name": "bwrap", "works": works, "blocked": blocked}],
        "versions": versions,
        "extras": [{"name": extra, "lacks": packages} for extra, packages in extras.items()],
        "problems": problems,
    }
    show(document, as_json=as_json)
    return bool(problems) or not works


def lacking(requirements: Iterable[str]) -> dict[str, list[str]]:
    """
    The packages of each extra, by the *requirements* of this one, that are not installed.
    """
    packages: dict[str, list[str]] = {}
    for line in requirements:
        read = REQUIREMENT.match(line.strip())
        if read is not None and read[1] != OURS and read[2] not in FOR_WORK_ON_IT:
            packages.setdefault(read[2], []).extend([read[1]] * (_installed(read[1]) is None))
    return dict(sorted(packages.items()))


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
