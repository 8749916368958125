"""
The command `doctor`.
"""

import os
import platform
import re

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final

import typer

from .printing import FOUND, Json, print_json, say, show


OURS: Final = "toolcall-guardrails"
THEIRS: Final = "guardrails-ai"
"""A distribution that installs a package of this very name."""
FOR_WORK_ON_IT: Final = ("dev", "docs", "test")
"""Extras that no user lacks."""
REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*extra\s*==\s*['\"]([^'\"]+)['\"])?$")
"""Of a package: its name, the wanted versions, the extra that needs it."""


def doctor(*, as_json: Json = False) -> None:
    """
    Show what works here: versions, extras, the sandbox.

    The sandbox runs a command. Exit code 1: something is broken, and the next step is said. A missing sandbox counts as
    broken, a missing extra does not. `guardrails store ls` tries a store.

    \b
    Examples:
      guardrails doctor
      guardrails doctor --json
    """
    from guardrails.core.values.errors import SandboxUnavailable
    from guardrails.processes.sandbox import bubblewrap

    try:
        blocked = None if bubblewrap() else ""
    except SandboxUnavailable as error:
        blocked = str(error)
    works, versions, packages = (
        blocked is None,
        versions_of(),
        wanted_packages((_installed(OURS) and requires(OURS)) or ()),
    )
    problems = []
    if _installed(THEIRS):
        clash = f"{THEIRS} is installed too, and either overwrites files of the other"
        problems.append({"problem": clash, "next": f"pip uninstall {THEIRS} {OURS}, and install the one you want"})
    if versions["installed"] not in (None, versions["library"]):
        other = f"the installation is {versions['installed']}, and this is {versions['library']}"
        problems.append({"problem": other, "next": f"pip install --force-reinstall {OURS}"})
    extras: list[dict[str, Any]] = [
        {"name": extra, "installed": all(one["installed"] for one in needed), "packages": needed}
        for extra, needed in packages.items()
        if extra
    ]
    found = {
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "root": hasattr(os, "geteuid") and os.geteuid() == 0,
        "auto": "bwrap" if works else None,
        "sandboxes": [{"name": "bwrap", "works": works, "blocked": blocked}],
        "versions": versions,
        "packages": packages.get("", []),
        "extras": extras,
        "problems": problems,
    }
    if as_json:
        print_json(found)
    else:
        there, missing = ([one["name"] for one in extras if one["installed"] is here] for here in (True, False))
        show({**found, "packages": None, "extras": ", ".join(there), "extras not installed": ", ".join(missing)})
        say(f'An extra is installed by pip install "{OURS}[NAME]".')
    if problems or not works:
        raise typer.Exit(FOUND)


def wanted_packages(lines: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """
    The packages that the requirements *lines* need, under the name "", and those of each extra.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        read = REQUIREMENT.match(line.strip())
        if read is not None and read[1] != OURS and read[3] not in FOR_WORK_ON_IT:
            one = {"name": read[1], "wanted": read[2].strip(), "installed": _installed(read[1])}
            found.setdefault(read[3] or "", []).append(one)
    return dict(sorted(found.items()))


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def versions_of() -> dict[str, Any]:
    """
    The versions by name; and of what is written.
    """
    from guardrails.core.packing import VERSION
    from guardrails.core.record import SCHEMA_VERSION
    from guardrails.core.retries.model import VERSION as RETRIES
    from guardrails.core.values.version import __version__
    from guardrails.stores.sqlite import VERSION as FILE

    return {
        "python": platform.python_version(),
        "library": __version__,
        "installed": _installed(OURS),
        "folder": str(Path(__file__).parents[2]),
        "state": VERSION,
        "store_file": FILE,
        "records": SCHEMA_VERSION,
        "retry_model": RETRIES,
    }
