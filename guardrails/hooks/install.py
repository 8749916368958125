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

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from guardrails.core.values.errors import PolicyError, os_message
from guardrails.policy.policy import Policy

from .clients import CLIENTS
from .door import FAILED
from .options import Options
from .settings import HOMES, START, entries, install, path_of, places, read, uninstall, with_ours, words_of


TIMEOUT_S: Final = 30
"""Seconds until a client goes on without an answer. A store that others lock is waited for up to 5."""
_HINTS: Final = {
    "codex": ["Codex skips hooks that nobody has trusted, and says nothing: start it, type `/hooks` and trust ours."],
    "gemini": ["Gemini CLI runs hooks in folders that it trusts only: see `/permissions` in it."],
}


def main(words: Sequence[str]) -> int:
    """
    Run the command of *words*; the exit code.
    """
    if not {"-h", "--help"}.isdisjoint(words):
        _say((__doc__ or "").strip())
        return 0
    flags = [word for word in words if word in ("--project", "--local", "--json")]
    rest = [word for word in words[1:] if word not in flags]
    clients = [*takewhile(HOMES.__contains__, rest)]
    options = rest[len(clients) :]
    try:
        if options and words[0] != "install":
            raise ValueError(f"unknown client or option `{options[0]}`")
        if words[0] == "status":
            return _status(clients, as_json="--json" in flags)
        if not clients or "--json" in flags or len(flags) > 1:
            raise ValueError("name a client: claude, codex, gemini; `guardrails hook --help` has all options")
        place = flags[0].removeprefix("--") if flags else "user"
        for client in clients:
            if place not in places(client):
                raise ValueError(f"{HOMES[client].title} has no settings that are kept out of git: use --project")
            done = _install(client, place, options) if words[0] == "install" else _uninstall(client, place)
            _say(f"{HOMES[client].title}: {done}")
    except (OSError, ValueError, PolicyError) as error:
        why = os_message(error) if isinstance(error, OSError) else error
        _say(f"guardrails hook {words[0]}: {why}", error=True)
        return 2
    return 0


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


def _status(clients: list[str], *, as_json: bool) -> int:
    rows = [_row(client, place) for client in clients or HOMES for place in places(client)]
    if as_json:
        _say(json.dumps(rows, indent=2))
    for row in () if as_json else rows:
        facts = [f"{name}: {row[name]}" for name in ("policy", "observe", "records", "answers") if name in row]
        state = ", ".join(["installed", *facts] if row["installed"] else ["not installed"])
        _say("\n    ".join([f"{row['client']} {row['place']}: {state}; {row['path']}", *row["problems"]]))
    return int(any(row["problems"] for row in rows))


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
    said = {"policy": options.policy, "observe": options.observe, "records": _records(options), "answers": answers}
    return {**row, "installed": True, **said, "problems": problems}


def _say(text: str, *, error: bool = False) -> None:
    """
    Print *text*; what the encoding cannot say is escaped.
    """
    stream = sys.stderr if error else sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
