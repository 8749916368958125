"""
The command `doctor`.
"""

import os
import platform
import re

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib.metadata import Distribution, PackageNotFoundError, distributions, requires, version
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.printing import FOUND, paragraph, print_json


NEXT: Final = (
    "Commands of `guardrails run` are refused here (sandbox.unavailable), all else of it works. Make it work, or go without: "
    "`guardrails run --sandbox none`."
)


OURS: Final = "toolcall-guardrails"
FOR_WORK_ON_IT: Final = ("dev", "docs", "test")
"""Extras that no user lacks."""
THEIRS: Final = "guardrails-ai"
FILES_OF_THEIRS: Final = ("guard.py", "async_guard.py", "validator_base.py", "hub")
"""What that one has in a folder of the same name, and this one has not."""
UNINSTALL: Final = (
    f"pip uninstall {THEIRS} {OURS}, delete what is left of the folder, and install the one that you want: "
    "both use the name `guardrails`"
)
_REQUIREMENT: Final = re.compile(
    r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*extra\s*==\s*['\"]([^'\"]+)['\"])?$"
)


@examples("guardrails doctor", "guardrails doctor state.db redis://localhost:6379", "guardrails doctor --json")
def doctor(
    stores: Annotated[
        list[str] | None,
        typer.Argument(metavar="STORE", help="Files of a SqliteStore and URLs of servers, to try whether they open."),
    ] = None,
    *,
    namespace: Annotated[str, typer.Option(metavar="NAME", help="The namespace of a server.")] = "guardrails",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """
    Show what works here: versions, extras, the sandbox, stores, and whether guardrails-ai stands in the way.

    The sandbox runs a command. Exit code 1: something is broken, and the next step is said. A missing sandbox counts as
    broken, a missing extra does not.
    """
    from guardrails.core.values.errors import SandboxUnavailable
    from guardrails.processes.sandbox import CANNOT, choose

    try:
        blocked = None if choose("auto") else ""
    except SandboxUnavailable as error:
        blocked = str(error)
    works, said, packages = blocked is None, versions(), wanted_packages()
    lacking = [each["name"] for each in packages.get("", ()) if each["installed"] is None]
    kept, in_the_way = [look(place, namespace) for place in stores or ()], clash(Path(said["folder"]))
    broken = [(one["problem"], one["next"]) for one in kept if one["problem"]]
    broken += [(in_the_way, UNINSTALL)] if in_the_way else []
    broken += [(f"`{name}` is not installed", f"pip install {OURS}") for name in lacking]
    if wrong_version(said):
        there = f"the installation is {said['installed']}, and `{said['folder']}` is {said['library']}"
        broken.append((there, f"pip install --force-reinstall {OURS}"))
    found = {
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "root": hasattr(os, "geteuid") and os.geteuid() == 0,
        "auto": "bwrap" if works else None,
        "sandboxes": [{"name": "bwrap", "works": works, "blocked": blocked, "cannot": list(CANNOT) if works else []}],
        "versions": said,
        "packages": packages.get("", []),
        "extras": [
            {"name": extra, "installed": all(each["installed"] is not None for each in needed), "packages": needed}
            for extra, needed in packages.items()
            if extra
        ],
        "clash": in_the_way,
        "stores": kept,
        "problems": [{"problem": problem, "next": step} for problem, step in broken],
    }
    if as_json:
        print_json(found)
    else:
        typer.echo("\n".join(paragraph(line, hanging="  ") for line in _lines(found)))
    if broken or not works:
        raise typer.Exit(FOUND)


def _lines(found: dict[str, Any]) -> Iterator[str]:
    said, extras = found["versions"], found["extras"]
    yield f"guardrails {said['library']} on Python {said['python']}, in `{said['folder']}`"
    yield (
        f"It reads and writes states of version {said['state']}, store files {said['store_file']}, records "
        f"{said['records']}, retry models {said['retry_model']}."
    )
    for title, there in (("installed", True), ("not installed", False)):
        yield f"extras {title}: {', '.join(each['name'] for each in extras if each['installed'] is there) or 'none'}"
    yield f'An extra is installed by pip install "{OURS}[NAME]".'
    for one in found["stores"]:
        by_version = ", ".join(f"{count:,} of version {version}" for version, count in one["versions"].items())
        yield f"store {one['store']}: {'opens' if one['opens'] else 'does not open'}, states: {by_version or 'none'}"
    yield f"{found['system']}, as {'root' if found['root'] else 'a user'}"
    (sandbox,) = found["sandboxes"]
    if sandbox["works"]:
        yield "bwrap: works; what it cannot do:"
        yield from (f"- {cannot}" for cannot in sandbox["cannot"])
    else:
        yield f"does not work: {sandbox['blocked']}"
        yield NEXT
    for one in found["problems"]:
        yield f"broken: {one['problem']}"
        yield f"next: {one['next']}"


def wanted_packages(lines: Iterable[str] | None = None) -> dict[str, list[dict[str, Any]]]:
    """
    The packages that are needed, under the name "", and those of each extra. *lines* are requirements in place of those of the
    installation; a checkout that is not installed has none.
    """
    if lines is None:
        lines = (requires(OURS) if _installed(OURS) else None) or ()
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        read = _REQUIREMENT.match(line.strip())
        if read is None or read[1] == OURS or (read[3] in FOR_WORK_ON_IT):
            continue
        one = {"name": read[1], "wanted": read[2].strip(), "installed": _installed(read[1])}
        found.setdefault(read[3] or "", []).append(one)
    return dict(sorted(found.items()))


def clash(folder: Path, installed: Iterable[Distribution] | None = None) -> str | None:
    """
    Returns the reason why the distribution guardrails-ai stands in the way of this one, whose package is in *folder*.
    Returns None if it does not.
    """
    left = [name for name in FILES_OF_THEIRS if (folder / name).exists()]
    if left:
        return f"`{folder}` holds files of {THEIRS}: {', '.join(left)}"
    there = distributions() if installed is None else installed
    if any((one.metadata["Name"] or "").casefold().replace("_", "-") == THEIRS for one in there):
        return f"{THEIRS} is installed too, and either overwrites files of the other"
    return None


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def look(place: str, namespace: str) -> dict[str, Any]:
    """
    Returns the contents of the store at *place*, a file or a URL. Nothing is changed. `problem` and `next` say why it is broken.
    """
    from guardrails.cli.store import line_of
    from guardrails.core.values.errors import GuardrailsError
    from guardrails.offline.figures import plural
    from guardrails.stores.places import is_url, shown_place, store_at

    found: dict[str, Any] = {"store": shown_place(place), "opens": False, "states": 0, "versions": {}, "unreadable": 0}
    found |= {"problem": None, "next": f"guardrails store ls {shown_place(place)} tells more"}
    if not is_url(place) and not Path(place).is_file():
        step = "name the file of a SqliteStore, or the URL of a server"
        return found | {"problem": f"`{place}` is no file", "next": step}
    kinds, states, unreadable = Counter[str](), Counter[str](), 0
    try:
        with closing(store_at(place, namespace=namespace)) as store:
            for one in store.entries():
                line = line_of(one, one.changed_ms, {})
                kinds[line["kind"]] += 1
                states[str(line["version"])] += 1
                unreadable += bool(line["unreadable"])
    except (GuardrailsError, OSError) as error:
        return found | {"problem": str(error)}
    problem = (
        f"{plural(unreadable, 'state')} of `{found['store']}` cannot be read by this version" if unreadable else None
    )
    return found | {
        "opens": True,
        "states": states.total(),
        "kinds": kinds,
        "versions": states,
        "unreadable": unreadable,
        "problem": problem,
        "next": found["next"] if problem else None,
    }


def versions() -> dict[str, Any]:
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


def wrong_version(found: dict[str, Any]) -> bool:
    """
    Whether the installation is of another version than the files that run.
    """
    return found["installed"] not in (None, found["library"])
