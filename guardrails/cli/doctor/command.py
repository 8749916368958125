"""
The command `doctor`.
"""

import os
import platform

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.printing import FOUND, paragraph, print_json

from .shown import installation_lines


NEXT: Final = (
    "Commands of `guardrails run` are refused here (sandbox.unavailable), all else of it works. Make it work, or go without: "
    "`guardrails run --sandbox none`."
)


@examples("guardrails doctor", "guardrails doctor state.db redis://localhost:6379", "guardrails doctor --json")
def doctor(
    stores: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STORE", help="Files of a SqliteStore and URLs of a RedisStore, to try whether they open."
        ),
    ] = None,
    *,
    namespace: Annotated[str, typer.Option(metavar="NAME", help="The namespace of a RedisStore.")] = "guardrails",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """
    Show what works here: versions, extras, the sandbox, stores, and whether guardrails-ai stands in the way.

    The sandbox runs a command. Exit code 1: something is broken, and the next step is said. A missing sandbox counts as
    broken, a missing extra does not.
    """
    from .packages import UNINSTALL, clash, wanted_packages, wrong_packages
    from .stores import look
    from .versions import versions, wrong_version

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
                        "in_range": all(one.in_range for one in ones),
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
