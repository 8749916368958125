"""
The commands `guardrails hook install`, `uninstall` and `status`. Exit code 0: done; 1: something was found; 2: it cannot be done.
"""

import argparse
import json
import os
import subprocess
import sys

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from guardrails.core.values.errors import PolicyError, os_message

from ..options import Options
from .command import ISOLATED, quoted, shell_of, words
from .places import CLIENTS, Client
from .printing import say
from .settings import HOOKS, Unusable, entries, read, with_ours, without, write


ABOUT: Final = """
Guards for coding CLIs: a hook sees each tool call, and refuses what the policy
refuses.

Clients start `guardrails hook --client NAME ...` by themselves: one event as
JSON in, one answer out.
"""
EXAMPLES: Final = """
Examples:
  guardrails hook install claude    # write it into the client's settings
  guardrails hook status            # is it there, and does it answer?
  guardrails hook uninstall claude  # take it out again
"""
_EXAMPLES: Final = {
    "install": ("claude", "codex gemini --policy strict", "claude --project --observe"),
    "uninstall": ("claude", "claude codex gemini"),
    "status": ("", "claude --json"),
}
_TRUST: Final = "Codex skips hooks that nobody has trusted, and says nothing: start `codex`, type `/hooks`, look at ours and trust it."
_FOLDERS: Final = "Gemini CLI runs hooks in folders that it trusts only: `/permissions` in it says whether this one is."


def main(argv: Sequence[str], *, python: str | None = None) -> int:
    """
    Run the command *argv*; the exit code. *python* is the interpreter that the hook is started with, if not this one.
    """
    parser = _parser()
    try:
        said = parser.parse_args(argv)
    except SystemExit as ended:
        return int(ended.code or 0)
    try:
        if said.command == "install":
            return _install(said, python or sys.executable)
        if said.command == "uninstall":
            return _uninstall(said)
        from .status import status

        return status(said.clients or list(CLIENTS), as_json=said.as_json, python=python or sys.executable)
    except (OSError, ValueError) as error:
        why = os_message(error) if isinstance(error, OSError) else error
        say(f"guardrails hook {said.command}: {why}", error=True)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="guardrails hook",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="install|uninstall|status")
    install = _command(commands, "install", "write the hook into a client's settings")
    uninstall = _command(commands, "uninstall", "take the hook out again")
    for command in (install, uninstall):
        command.add_argument("clients", nargs="+", choices=tuple(CLIENTS), metavar="claude|codex|gemini")
        place = command.add_mutually_exclusive_group()
        place.add_argument(
            "--project",
            dest="place",
            action="store_const",
            const="project",
            help="use the settings of this folder, not your own",
        )
        place.add_argument(
            "--local",
            dest="place",
            action="store_const",
            const="local",
            help="use those of this folder that git ignores (claude only)",
        )
        command.set_defaults(place="user")
    install.add_argument(
        "--policy", metavar="NAME|PATH", default="default", help="the policy that guards; `default` if none is named"
    )
    install.add_argument("--observe", action="store_true", help="decide and record, but refuse nothing")
    install.add_argument("--store", metavar="PATH|URL", help="keep the states of sessions there, or in redis://..")
    install.add_argument("--records", metavar="PATH", help="write a line of each decision there")
    install.add_argument("--user", metavar="U", help="the user of these sessions, for a scope `user`")
    install.add_argument("--tenant", metavar="T", help="their tenant, for a scope `tenant`")
    shown = _command(commands, "status", "say whether the hook is there, and whether it answers")
    shown.add_argument("clients", nargs="*", choices=[*CLIENTS, []], metavar="claude|codex|gemini")
    shown.add_argument("--json", dest="as_json", action="store_true", help="print JSON")
    return parser


def _command(commands: Any, name: str, says: str) -> argparse.ArgumentParser:
    lines = "".join(f"  {f'guardrails hook {name} {rest}'.rstrip()}\n" for rest in _EXAMPLES[name])
    made: argparse.ArgumentParser = commands.add_parser(
        name,
        help=says,
        description=f"{says[0].upper()}{says[1:]}{'' if says.endswith('?') else '.'}",
        epilog=f"Examples:\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    return made


def _install(said: argparse.Namespace, python: str) -> int:
    _checked_policy(said.policy)
    _checked_start(python)
    edits = []
    for client, path in _paths(said):
        options = Options(
            client=client.name,
            policy=said.policy,
            store=said.store,
            records=said.records,
            observe=said.observe,
            user=said.user,
            tenant=said.tenant,
        )
        command = quoted(words(python, options), shell_of(client.name))
        wanted = dict.fromkeys(client.events, client.handler(command, windows=os.name == "nt"))
        try:
            file = read(path)
            settings = with_ours(file.settings, wanted)
        except Unusable as error:
            groups = {event: [{HOOKS: [handler]}] for event, handler in wanted.items()}
            text = json.dumps({HOOKS: groups}, indent=2, ensure_ascii=False)
            where = "" if str(path) in str(error) else f"{path}: "
            raise Unusable(f"{where}{error}; nothing was changed. Put this in by hand:\n{text}") from None
        edits.append((client, file, settings, command))
    # All files have been read before the first is written.
    for client, file, settings, command in edits:
        path = file.path
        if settings == file.settings:
            say(f"{client.title}: installed already, {path}")
            continue
        write(file, settings)
        say(f"{client.title}: installed, {path}\n  {command}")
        if said.place == "project":
            say("  The command has a path of this machine in it: not for a repository that others use.")
        if client.name != "claude":
            say(f"  {_TRUST if client.name == 'codex' else _FOLDERS}")
    return 0


def _uninstall(said: argparse.Namespace) -> int:
    for client, file in [(client, read(path)) for client, path in _paths(said)]:
        if not any(entries(file.settings)):
            say(f"{client.title}: not installed, {file.path}{_elsewhere(client, file.path)}")
            continue
        write(file, without(file.settings))
        say(f"{client.title}: taken out, {file.path}{'' if file.path.exists() else ' is gone'}")
    return 0


def _paths(said: argparse.Namespace) -> list[tuple[Client, Path]]:
    found = []
    for name in dict.fromkeys(said.clients):
        client = CLIENTS[name]
        if said.place not in client.places():
            raise ValueError(f"{client.title} has no settings that are kept out of git: use --project, or neither")
        found.append((client, client.path(said.place, Path.cwd())))
    return found


def _elsewhere(client: Client, path: Path) -> str:
    for place in client.places():
        other = client.path(place, Path.cwd())
        try:
            if other != path and any(entries(read(other).settings)):
                return f"; it is in {other}: use {'neither option' if place == 'user' else f'--{place}'}"
        except OSError:
            continue
    return ""


def _checked_policy(policy: str) -> None:
    from guardrails.policy.policy import Policy

    try:
        Policy.load(policy)
    except PolicyError as error:
        raise ValueError(str(error)) from None


def _checked_start(python: str) -> None:
    """
    Raises ValueError if *python* does not find this library as a hook starts it.
    """
    found = subprocess.run(
        [python, ISOLATED, "-c", "import guardrails.hooks.door"],
        capture_output=True,
        check=False,
        cwd=Path(python).anchor or None,
        timeout=60,
    )
    if found.returncode:
        raise ValueError(
            f"`{python} {ISOLATED}` does not find guardrails: install it into that environment. "
            "A hook reads neither PYTHONPATH nor the folder it is started in, where anybody's guardrails.py may be"
        )
