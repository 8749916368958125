"""
Guards for coding CLIs: a hook sees each tool call, and refuses what the policy
refuses. Clients start `guardrails hook --client NAME ...` by themselves: one
event as JSON in, one answer out.

usage: guardrails hook install CLIENT... [--project|--local] [OPTION...]
       guardrails hook uninstall CLIENT... [--project|--local]
       guardrails hook status [CLIENT...] [--json]

CLIENT is claude, codex or gemini.

  --project            use the settings of this folder, not your own
  --local              use those of this folder that git ignores (claude only)
  --policy NAME|PATH   the policy that guards; `default` if none is named
  --observe            decide and record, but refuse nothing
  --store PATH|URL     keep the states of sessions there, or in redis://..
  --records PATH       write a line of each decision there
  --user U             the user of these sessions, for a scope `user`
  --tenant T           their tenant, for a scope `tenant`
  --json               print JSON

Examples:
  guardrails hook install claude    # write it into the client's settings
  guardrails hook status            # is it there, and does it answer?
  guardrails hook uninstall claude  # take it out again

Exit code 0: done; 1: something was found; 2: it cannot be done.
"""

import json
import os
import shlex
import subprocess
import sys

from collections.abc import Mapping, Sequence
from itertools import filterfalse, takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

from guardrails.core.text.control import visible
from guardrails.core.values.errors import PolicyError, os_message
from guardrails.policy.policy import Policy
from guardrails.stores.places import write_whole

from . import FAILED
from .clients import CLIENTS
from .options import Options, Settings


TIMEOUT_S: Final = 30
"""Seconds until a client goes on without an answer. A store that others lock is waited for up to 5."""
_HINTS: Final = {
    "codex": ["Codex skips hooks that nobody has trusted, and says nothing: start it, type `/hooks` and trust ours."],
    "gemini": ["Gemini CLI runs hooks in folders that it trusts only: see `/permissions` in it."],
}
HOOKS: Final = "hooks"
START: Final = ["-I", "-m", "guardrails", "hook"]
"""The words behind the interpreter in a command of ours. With `-I` nothing is imported from the folder in which it is started."""
BACKUP: Final = ".before-guardrails"
"""The end of the name of the copy: the file as it was before our entries came."""


# The commands


def main(words: Sequence[str]) -> int:
    """
    Run the command of *words*; the exit code.
    """
    if not {"-h", "--help"}.isdisjoint(words):
        sys.stdout.write(f"{(__doc__ or '').strip()}\n")
        return 0
    flags = [word for word in words if word in ("--project", "--local", "--json")]
    rest = [word for word in words[1:] if word not in flags]
    clients = [*takewhile(HOMES.__contains__, rest)]
    options, lines, code = rest[len(clients) :], list[str](), 0
    try:
        if options and words[0] != "install":
            raise ValueError(f"unknown client or option `{options[0]}`")
        if words[0] == "status":
            rows = [_row(client, place) for client in clients or HOMES for place in places(client)]
            lines = [json.dumps(rows, indent=2)] if "--json" in flags else [_line_of(row) for row in rows]
            code = int(any(row["problems"] for row in rows))
        elif not clients or "--json" in flags or len(flags) > 1:
            raise ValueError("name a client: claude, codex, gemini; `guardrails hook --help` has all options")
        else:
            place = flags[0].removeprefix("--") if flags else "user"
            for client in clients:
                if place not in places(client):
                    raise ValueError(f"{HOMES[client].title} has no settings that are kept out of git: use --project")
                done = _install(client, place, options) if words[0] == "install" else _uninstall(client, place)
                lines.append(f"{HOMES[client].title}: {done}")
    except (OSError, ValueError, PolicyError) as error:
        why = os_message(error) if isinstance(error, OSError) else error
        sys.stderr.write(visible(f"guardrails hook {words[0]}: {why}\n"))
        code = 2
    # A fault of the output is no fault of the command. The settings of a folder that came from elsewhere steer no terminal.
    sys.stdout.write(visible("".join(f"{line}\n" for line in lines)))
    return code


def _install(client: str, place: str, words: list[str]) -> str:
    options, path = Options.of([f"--client={client}", *words]), path_of(client, place)
    if options.wrong:
        raise ValueError(options.wrong)
    Policy.load(options.policy)
    command = [sys.executable, *START, *options.words()]
    answers, notes = _asked(command)
    if not answers:
        raise ValueError(f"{path}: nothing was changed, for the hook does not answer: {notes[0]}")
    wanted = _wanted(client, command)
    try:
        install(path, wanted)
    except ValueError as error:
        text = json.dumps(with_ours({}, wanted), indent=2)
        raise ValueError(f"{error}; nothing was changed. Put this in by hand:\n{text}") from None
    if place == "project":
        notes.append("The command has a path of this machine in it: not for a repository that others use.")
    lines = [f"installed, {path}", _shown(command), f"records: {_records(options)}", *notes, *_HINTS.get(client, ())]
    return "\n  ".join(lines)


def _uninstall(client: str, place: str) -> str:
    path = path_of(client, place)
    if not entries(read(path)):
        return f"not installed, {path}"
    uninstall(path)
    return f"taken out, {path}"


def _wanted(client: str, command: Sequence[str]) -> dict[str, Any]:
    """
    The handler of each event of *client* that starts *command*.
    """
    handler = {"type": "command", "command": _shown(command), "timeout": TIMEOUT_S}
    if client == "gemini":
        # By this name `/hooks disable` knows it; its times are in milliseconds.
        handler |= {"name": "guardrails", "timeout": TIMEOUT_S * 1_000}
    return dict.fromkeys(CLIENTS[client].kinds, handler)


def _shown(command: Sequence[str]) -> str:
    # The words of paths with forward slashes mean the same to each shell of Windows.
    return shlex.join(command) if os.name != "nt" else subprocess.list2cmdline(command).replace("\\", "/")


def _records(options: Options) -> str:
    return options.records_path or "none, `--records PATH` writes them"


def _asked(command: Sequence[str]) -> tuple[bool, list[str]]:
    """
    Whether *command* answers an event of a session that nobody has, and what it complains of.
    """
    event = {"session_id": "guardrails-status", "hook_event_name": "SessionStart", "cwd": str(Path.cwd())}
    try:
        data = json.dumps(event).encode()
        ran = subprocess.run(command, input=data, capture_output=True, check=False, timeout=TIMEOUT_S)
        message = json.loads(ran.stdout).get("systemMessage")
    except (OSError, ValueError, AttributeError, subprocess.TimeoutExpired) as error:
        return False, [f"no answer: {error}"]
    errors = ran.stderr.decode(errors="replace").splitlines()[-1:]
    broken = ran.returncode != 0 or ran.stderr.startswith(FAILED.encode())
    return not broken, [message] if message else errors


def _line_of(row: Mapping[str, Any]) -> str:
    facts = [f"{name}: {row[name]}" for name in ("policy", "observe", "records", "answers") if name in row]
    state = ", ".join(["installed", *facts] if row["installed"] else ["not installed"])
    return "\n    ".join([f"{row['client']} {row['place']}: {state}; {row['path']}", *row["problems"]])


def _row(client: str, place: str) -> dict[str, Any]:
    """
    The entries of ours in one settings file of *client*.
    """
    row: dict[str, Any] = {"client": client, "place": place, "path": "", "installed": False, "problems": []}
    try:
        path = path_of(client, place)
        row["path"], settings = str(path), read(path)
    except (OSError, ValueError) as error:
        return {**row, "problems": [str(error)]}
    ours = entries(settings)
    if not ours:
        return row
    command = words_of(next(iter(ours.values()))) or []
    options = Options.of(command[5:])
    answers, problems = None, [f"not tried: `{command[0]}` is not the interpreter of this command"]
    # The file of a folder that came from elsewhere may start anything.
    if place == "user" or command[0] == sys.executable:
        answers, problems = _asked(command)
    if with_ours(settings, _wanted(client, command)) != settings:
        problems.append("it is not as this release writes it: install it again")
    choices = {"policy": options.policy, "observe": options.observe, "records": _records(options), "answers": answers}
    return {**row, "installed": True, **choices, "problems": problems}


# The settings file of a client: our entries put in or taken out, in one step. All else in it stays.


class Home(NamedTuple):
    """
    The place of a client's settings.
    """

    title: str
    variable: str
    """The environment variable that moves the folder; of Gemini CLI, what the folder is in."""
    folder: str
    file: str


HOMES: Final = {
    "claude": Home("Claude Code", "CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
    "codex": Home("Codex", "CODEX_HOME", ".codex", "hooks.json"),
    "gemini": Home("Gemini CLI", "GEMINI_CLI_HOME", ".gemini", "settings.json"),
}


def places(client: str) -> tuple[str, ...]:
    """
    The names of the places of a *client*'s settings.
    """
    return ("user", "project", "local") if client == "claude" else ("user", "project")


def path_of(client: str, place: str) -> Path:
    """
    The settings file of *place*. Raises ValueError for a file of this folder that a link leads out of: a repository may hold such a link.
    """
    home = HOMES[client]
    moved = os.environ.get(home.variable)
    if place == "user":
        folder = Path(moved) if moved and client != "gemini" else Path(moved or Path.home(), home.folder)
        return folder / home.file
    path = Path.cwd() / home.folder / ("settings.local.json" if place == "local" else home.file)
    if path.resolve() != path:
        raise ValueError(f"{path}: a link in a project is not followed")
    return path


def read(path: Path) -> Settings:
    """
    The settings in *path*; none if there is no such file. Raises ValueError, with line and column, for what is no JSON object with hooks
    as a client has them.
    """
    try:
        settings = json.loads(path.read_text("utf-8") or "{}")
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(settings, dict):
        raise ValueError(f"{path}: not an object")
    hooks = settings.get(HOOKS, {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise ValueError(f"{path}: `{HOOKS}` is not an object of arrays")
    return settings


def words_of(handler: object) -> list[str] | None:
    """
    The words of the command of *handler*; None if it is not ours. A script of somebody's own that calls ours is theirs.
    """
    command = handler.get("command") if isinstance(handler, dict) else None
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return None
    # An option of another release does not make it theirs; `install`, or a sign of a shell, does.
    return words if words[1:5] == START and "`--" in (Options.of(words[5:]).wrong or "`--") else None


def entries(settings: Settings) -> dict[str, Any]:
    """
    Our handlers by their events.
    """
    hooks = settings.get(HOOKS, {}).items()
    return {event: group[HOOKS][0] for event, groups in hooks for group in groups if _is_ours(group)}


def without(settings: Settings) -> Settings:
    """
    *settings* without our entries, and without the containers that hold nothing else.
    """
    left = {event: [*filterfalse(_is_ours, groups)] for event, groups in settings.get(HOOKS, {}).items()}
    hooks = {event: groups for event, groups in left.items() if groups}
    return {key: one for key, one in {**settings, HOOKS: hooks}.items() if key != HOOKS or hooks}


def with_ours(settings: Settings, wanted: Mapping[str, Any]) -> Settings:
    """
    *settings* with the *wanted* handler at the end of the list of each event, and none of ours beside it.
    """
    settings = without(settings)
    hooks = settings.get(HOOKS, {})
    added = {event: [*hooks.get(event, []), {HOOKS: [handler]}] for event, handler in wanted.items()}
    return {**settings, HOOKS: {**hooks, **added}}


def install(path: Path, wanted: Mapping[str, Any]) -> None:
    """
    Put the *wanted* handlers into the file *path*. The file as it was is kept beside it, unless ours are in it already. Raises ValueError
    as `read` does, OSError if it cannot be written.
    """
    settings = read(path)
    text = _text(with_ours(settings, wanted))
    if path.exists() and not entries(settings):
        # An older copy may be readable by all.
        _backup(path).unlink(missing_ok=True)
        write_whole(_backup(path), path.read_bytes(), 0o600)
    _write(path, text)


def uninstall(path: Path) -> None:
    """
    Take our entries out of the file *path*. If it is as we wrote it, it is again what it was before, byte for byte, or gone. Raises as
    `install` does.
    """
    settings, backup = read(path), _backup(path)
    # As text, since 1 and true are equal here.
    if _text(with_ours(read(backup), entries(settings))) != _text(settings):
        _write(path, _text(without(settings)))
    elif backup.exists():
        write_whole(path.resolve(), backup.read_bytes())
        backup.unlink()
    else:
        path.unlink()


def _is_ours(group: object) -> bool:
    handlers = group.get(HOOKS) if isinstance(group, dict) else None
    return isinstance(handlers, list) and len(handlers) == 1 and words_of(handlers[0]) is not None


def _backup(path: Path) -> Path:
    return Path(f"{path.resolve()}{BACKUP}")


def _text(settings: Settings) -> bytes:
    return f"{json.dumps(settings, indent=2, ensure_ascii=False, allow_nan=False)}\n".encode()


def _write(path: Path, text: bytes) -> None:
    # One's own settings may be a link, whose file changes.
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text, 0o600)
