"""
The command `doctor`.
"""

import os
import platform

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from guardrails.cli.front.group import examples
from guardrails.cli.text.printing import FOUND, paragraph, print_json


if TYPE_CHECKING:
    from guardrails.processes.sandbox import Offer

NEXT: Final = (
    "Commands of `guardrails run` are refused here (sandbox.unavailable), all else of it works. Make one of these work, or go "
    "without: `guardrails run --sandbox none`."
)


@examples("guardrails doctor", "guardrails doctor --json")
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002
) -> None:
    """
    Show which sandboxes work on this machine, what keeps the others from it, and what each cannot do.

    Each is tried: it runs a command that has to work, and one that must not write, read a key or connect. Exit code 0: there
    is one. 1: there is none.
    """
    from guardrails.processes.sandbox import offers

    found = offers()
    auto = next((one.name for one in found if one.blocked is None), None)
    if as_json:
        print_json(_data(found, auto))
    else:
        typer.echo(_text(found, auto))
    if auto is None:
        raise typer.Exit(FOUND)


def _data(found: "tuple[Offer, ...]", auto: str | None) -> dict[str, Any]:
    return {
        "system": _system(),
        "root": _is_root(),
        "auto": auto,
        "sandboxes": [
            {"name": one.name, "works": one.blocked is None, "blocked": one.blocked, "cannot": list(one.cannot)}
            for one in found
        ],
    }


def _text(found: "tuple[Offer, ...]", auto: str | None) -> str:
    said = [f"{_system()}, as {'root' if _is_root() else 'a user'}"]
    for one in found:
        if one.blocked is not None:
            said += ["", paragraph(f"{one.name}: does not work: {one.blocked}", hanging="  ")]
            continue
        said += ["", f"{one.name}: works{', `auto` takes it' if one.name == auto else ''}; what it cannot do:"]
        said += [paragraph(f"- {cannot}", indent="  ", hanging="    ") for cannot in one.cannot]
    return "\n".join(said if auto is not None else [*said, "", paragraph(NEXT)])


def _system() -> str:
    return f"{platform.system()} {platform.release()} ({platform.machine()})"


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
