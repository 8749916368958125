"""
The command `doctor`.
"""

import os
import platform
import re

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from .printing import FOUND, Json, points, print_json, say
from .store import Namespace


OURS: Final = "toolcall-guardrails"
THEIRS: Final = "guardrails-ai"
"""A distribution that installs a package of this very name."""
FOR_WORK_ON_IT: Final = ("dev", "docs", "test")
"""Extras that no user lacks."""
REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*extra\s*==\s*['\"]([^'\"]+)['\"])?$")
"""Of a package: its name, the wanted versions, the extra that needs it."""


def doctor(
    stores: Annotated[
        list[str] | None, typer.Argument(metavar="STORE", help="Files of a SqliteStore and URLs of servers to open.")
    ] = None,
    *,
    namespace: Namespace = "guardrails",
    as_json: Json = False,
) -> None:
    """
    Show what works here: versions, extras, the sandbox, stores.

    The sandbox runs a command. Exit code 1: something is broken, and the next step is said. A missing sandbox counts as
    broken, a missing extra does not.

    \b
    Examples:
      guardrails doctor
      guardrails doctor state.db redis://localhost:6379
      guardrails doctor --json
    """
    from guardrails.processes.sandbox import CANNOT

    blocked, versions, packages = (
        _blocked(),
        versions_of(),
        wanted_packages((_installed(OURS) and requires(OURS)) or ()),
    )
    opened = [look(place, namespace) for place in stores or ()]
    clash = f"{THEIRS} is installed too, and either overwrites files of the other" if _installed(THEIRS) else None
    broken = [(one["problem"], one["next"]) for one in opened if one["problem"]]
    broken += [(clash, f"pip uninstall {THEIRS} {OURS}, and install the one that you want")] if clash else []
    lacking = [one["name"] for one in packages.get("", ()) if one["installed"] is None]
    broken += [(f"`{name}` is not installed", f"pip install {OURS}") for name in lacking]
    if versions["installed"] not in (None, versions["library"]):
        broken.append((f"the installation is {versions['installed']}", f"pip install --force-reinstall {OURS}"))
    works, cannot = blocked is None, [] if blocked else list(CANNOT)
    found = {
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "root": hasattr(os, "geteuid") and os.geteuid() == 0,
        "auto": "bwrap" if works else None,
        "sandboxes": [{"name": "bwrap", "works": works, "blocked": blocked, "cannot": cannot}],
        "versions": versions,
        "packages": packages.get("", []),
        "extras": [
            {"name": extra, "installed": all(one["installed"] for one in needed), "packages": needed}
            for extra, needed in packages.items()
            if extra
        ],
        "clash": clash,
        "stores": opened,
        "problems": [{"problem": problem, "next": step} for problem, step in broken],
    }
    print_json(found) if as_json else _show(found)
    if broken or not works:
        raise typer.Exit(FOUND)


def _show(found: dict[str, Any]) -> None:
    versions, extras, (sandbox,) = found["versions"], found["extras"], found["sandboxes"]
    say(
        f"guardrails {versions['library']} on Python {versions['python']}, in `{versions['folder']}`, {found['system']}"
    )
    for what, installed in (("installed", True), ("not installed", False)):
        names = ", ".join(each["name"] for each in extras if each["installed"] is installed)
        say(f'extras {what} (pip install "{OURS}[NAME]"): {names or "none"}')
    for one in found["stores"]:
        versions = ", ".join(f"{count:,} of version {version}" for version, count in one["versions"].items())
        say(f"store {one['store']}: {'opens' if one['opens'] else 'does not open'}, states: {versions or 'none'}")
    if sandbox["works"]:
        points("The sandbox bwrap works. It cannot hold:", sandbox["cannot"])
    else:
        say(f"The sandbox does not work: {sandbox['blocked']}")
        say(
            "`guardrails run` refuses commands here. In a container, which confines them: `guardrails run --sandbox none`."
        )
    points("Broken", [f"broken: {one['problem']}; next: {one['next']}" for one in found["problems"]])


def _blocked() -> str | None:
    """
    What keeps the sandbox from working. Returns None if it works.
    """
    from guardrails.core.values.errors import SandboxUnavailable
    from guardrails.processes.sandbox import choose

    try:
        choose("auto")
    except SandboxUnavailable as error:
        return str(error)
    return None


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


def look(place: str, namespace: str) -> dict[str, Any]:
    """
    Returns the contents of the store at *place*, a file or a URL. Nothing is changed. `problem` and `next` say why it is broken.
    """
    from guardrails.cli.store import state_of
    from guardrails.core.values.errors import GuardrailsError
    from guardrails.stores.places import is_url, shown_place, store_at

    name = shown_place(place)
    found: dict[str, Any] = {"store": name, "opens": False, "states": 0, "kinds": {}, "versions": {}, "unreadable": 0}
    try:
        if not is_url(place) and not Path(place).is_file():
            raise FileNotFoundError(f"`{place}` is no file")
        with closing(store_at(place, namespace=namespace)) as store:
            states = [state_of(one, {}) for one in store.entries()]
    except (GuardrailsError, OSError) as error:
        return found | {
            "problem": str(error),
            "next": "name the file of a SqliteStore, or the URL of a server that runs",
        }
    unreadable = sum(one["unreadable"] is not None for one in states)
    kinds, versions = (Counter(str(one[part]) for one in states) for part in ("kind", "version"))
    problem = f"{unreadable} of {len(states)} states of `{name}` cannot be read by this version" if unreadable else None
    figures = {"opens": True, "states": len(states), "kinds": kinds, "versions": versions, "unreadable": unreadable}
    return found | figures | {"problem": problem, "next": f"guardrails store ls {name}" if unreadable else None}


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
