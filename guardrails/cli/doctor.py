"""
The command `doctor`.
"""

import os
import platform
import re

from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distributions, requires, version
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.printing import FOUND, paragraph, print_json
from guardrails.core.values.errors import EXTRAS, install


NEXT: Final = (
    "Commands of `guardrails run` are refused here (sandbox.unavailable), all else of it works. Make it work, or go without: "
    "`guardrails run --sandbox none`."
)


class Package(NamedTuple):
    """
    A package that is wanted, and what is there of it.
    """

    name: str
    wanted: str
    installed: str | None

    def to_dict(self) -> dict[str, Any]:
        """
        The same for another program.
        """
        return self._asdict()


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
    blocked = _blocked()
    said, packages = versions(), wanted_packages()
    kept = [look(place, namespace) for place in stores or ()]
    in_the_way = clash(Path(said["folder"]))
    problems = [wrong_version(said), *wrong_packages(packages)]
    problems += [(in_the_way, UNINSTALL)] if in_the_way else []
    problems += [(one["problem"], one["next"]) for one in kept if one["problem"]]
    broken = [one for one in problems if one is not None]
    if as_json:
        print_json(
            {
                **_data(blocked),
                "versions": said,
                "packages": [one.to_dict() for one in packages.get("", ())],
                "extras": [
                    {
                        "name": extra,
                        "installed": all(one.installed is not None for one in ones),
                        "packages": [one.to_dict() for one in ones],
                    }
                    for extra, ones in packages.items()
                    if extra
                ],
                "clash": in_the_way,
                "stores": kept,
                "problems": [{"problem": problem, "next": step} for problem, step in broken],
            }
        )
    else:
        typer.echo("\n".join(installation_lines(said, packages, kept)) + "\n")
        typer.echo(_text(blocked))
        for problem, step in broken:
            typer.echo(
                "\n" + paragraph(f"broken: {problem}", hanging="  ") + "\n" + paragraph(f"next: {step}", hanging="  ")
            )
    if blocked is not None or broken:
        raise typer.Exit(FOUND)


def _blocked() -> str | None:
    """
    Returns why the sandbox does not work here; None: it does.
    """
    from guardrails.core.values.errors import SandboxUnavailable
    from guardrails.processes.sandbox import choose

    try:
        choose("auto")
    except SandboxUnavailable as error:
        return str(error)
    return None


def _data(blocked: str | None) -> dict[str, Any]:
    from guardrails.processes.sandbox import CANNOT

    works = blocked is None
    return {
        "system": _system(),
        "root": _is_root(),
        "auto": "bwrap" if works else None,
        "sandboxes": [{"name": "bwrap", "works": works, "blocked": blocked, "cannot": list(CANNOT) if works else []}],
    }


def _text(blocked: str | None) -> str:
    from guardrails.processes.sandbox import CANNOT

    said = [f"{_system()}, as {'root' if _is_root() else 'a user'}", ""]
    if blocked is not None:
        return "\n".join([*said, paragraph(f"does not work: {blocked}", hanging="  "), "", paragraph(NEXT)])
    said += ["bwrap: works; what it cannot do:"]
    return "\n".join([*said, *(paragraph(f"- {cannot}", indent="  ", hanging="    ") for cannot in CANNOT)])


def _system() -> str:
    return f"{platform.system()} {platform.release()} ({platform.machine()})"


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def installation_lines(
    versions: dict[str, Any], packages: dict[str, list[Package]], stores: list[dict[str, Any]]
) -> Iterator[str]:
    """
    Versions, extras and *stores*, a paragraph for each.
    """
    yield paragraph(
        f"guardrails {versions['library']} on Python {versions['python']}, in `{versions['folder']}`", hanging="  "
    )
    yield paragraph(
        f"It reads and writes states of version {versions['state']}, store files {versions['store_file']}, "
        f"records {versions['records']}, retry models {versions['retry_model']}.",
        hanging="  ",
    )
    extras = {extra: ones for extra, ones in packages.items() if extra}
    yield ""
    if not extras:
        yield paragraph("extras: not known, since this is a checkout that was not installed", hanging="  ")
    else:
        there = [extra for extra, ones in extras.items() if all(one.installed is not None for one in ones)]
        lacking = [extra for extra in extras if extra not in there]
        yield paragraph(f"extras that are installed: {', '.join(there) or 'none'}", hanging="  ")
        if lacking:
            say = f"extras that are not: {', '.join(lacking)}; for example {install(lacking[0])}"
            yield paragraph(say, hanging="  ")
    for one in stores:
        yield ""
        yield paragraph(f"store {one['store']}: {_kept(one)}", hanging="  ")


def _kept(one: dict[str, Any]) -> str:
    if not one["opens"]:
        return "does not open"
    many = "1 state" if one["states"] == 1 else f"{one['states']:,} states"
    by_version = ", ".join(f"{count:,} of version {version}" for version, count in one["versions"].items())
    return f"opens, and keeps {many}" + (f": {by_version}" if by_version else "")


OURS: Final = "toolcall-guardrails"
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


def wanted_packages(lines: Iterable[str] | None = None) -> dict[str, list[Package]]:
    """
    The packages that are needed, under the name "", and those of each extra. *lines* are requirements in place of those of the
    installation; a checkout that is not installed has none.
    """
    if lines is None:
        try:
            lines = requires(OURS) or ()
        except PackageNotFoundError:
            lines = ()
    found: dict[str, list[Package]] = {}
    for line in lines:
        read = _REQUIREMENT.match(line.strip())
        if read is None or read[1] == OURS or (read[3] is not None and read[3] not in EXTRAS):
            continue
        found.setdefault(read[3] or "", []).append(Package(read[1], read[2].strip(), _installed(read[1])))
    return dict(sorted(found.items()))


def wrong_packages(found: dict[str, list[Package]]) -> list[tuple[str, str]]:
    """
    Returns the packages that are needed and lack, each with the next step.
    """
    return [
        (f"`{one.name}` is not installed", f"pip install {OURS}") for one in found.get("", ()) if one.installed is None
    ]


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
    from guardrails.core.values.errors import GuardrailsError
    from guardrails.stores.opened import store_at
    from guardrails.stores.places import is_url, shown_place

    found: dict[str, Any] = {"store": shown_place(place), "opens": False, "states": 0, "versions": {}, "unreadable": 0}
    found |= {"problem": None, "next": None}
    if not is_url(place) and not Path(place).is_file():
        why = "is a folder" if Path(place).is_dir() else "is not there"
        return found | {
            "problem": f"`{place}` {why}",
            "next": "name the file of a SqliteStore, or the URL of a server",
        }
    try:
        store = store_at(place, namespace=namespace)
        try:
            found |= {"opens": True, **_counted(store)}
        finally:
            store.close()
    except (GuardrailsError, OSError) as error:
        return found | {"problem": str(error), "next": f"guardrails store ls {shown_place(place)} tries it again"}
    if found["unreadable"]:
        many = "1 state" if found["unreadable"] == 1 else f"{found['unreadable']:,} states"
        return found | {
            "problem": f"{many} of `{found['store']}` cannot be read by this version",
            "next": f"guardrails store ls {found['store']} lists why",
        }
    return found


def _counted(store: Any) -> dict[str, Any]:
    from guardrails.cli.store.shown import line_of

    versions: Counter[int | None] = Counter()
    kinds: Counter[str] = Counter()
    unreadable = 0
    for one in store.entries():
        line = line_of(one, one.changed_ms, {})
        versions[line["version"]] += 1
        kinds[line["kind"]] += 1
        unreadable += bool(line["unreadable"])
    return {
        "states": versions.total(),
        "kinds": dict(kinds),
        "versions": {str(version): count for version, count in sorted(versions.items(), key=str)},
        "unreadable": unreadable,
    }


def versions() -> dict[str, Any]:
    """
    The versions by name; and of what is written.
    """
    from guardrails.core.packing import VERSION
    from guardrails.core.records.record import SCHEMA_VERSION
    from guardrails.core.retries.model import VERSION as RETRIES
    from guardrails.core.values.version import __version__
    from guardrails.stores.sqlite_file import VERSION as FILE

    try:
        installed = version(OURS)
    except PackageNotFoundError:
        installed = None
    return {
        "python": platform.python_version(),
        "library": __version__,
        "installed": installed,
        "folder": str(Path(__file__).parents[2]),
        "state": VERSION,
        "store_file": FILE,
        "records": SCHEMA_VERSION,
        "retry_model": RETRIES,
    }


def wrong_version(found: dict[str, Any]) -> tuple[str, str] | None:
    """
    Returns the broken ones, each with the next step. Returns None if nothing is.
    """
    if found["installed"] in (None, found["library"]):
        return None
    said = f"the installation is {found['installed']}, and `{found['folder']}` is {found['library']}"
    return said, f"pip install --force-reinstall {OURS}"
