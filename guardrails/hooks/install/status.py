"""
The command `guardrails hook status`: is the hook there, does it answer, and does anything keep the client from asking it?
"""

import json
import os
import subprocess
import tempfile

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ..options import Options
from .command import options_of, split
from .places import CLIENTS, Client
from .printing import say
from .settings import Entry, entries, read
from .switches import switched_off, untrusted


WAIT: Final = 30.0
"""Seconds that the hook has to answer."""


@dataclass(slots=True, kw_only=True)
class Found:
    """
    The entries of ours in one settings file of a client.
    """

    client: str
    place: str
    path: str
    installed: bool = False
    events: list[str] = field(default_factory=list)
    policy: str | None = None
    observe: bool = False
    command: str | None = None
    answers: bool | None = None
    """The command was run with an event of no session, and answered; None: it was not run."""
    problems: list[str] = field(default_factory=list)


def status(names: Iterable[str], *, as_json: bool, python: str) -> int:
    """
    Print what is installed for the clients *names*. The exit code: 1 if something of it does not work.
    """
    found = [
        look(CLIENTS[name], place, project=Path.cwd(), python=python)
        for name in dict.fromkeys(names)
        for place in CLIENTS[name].places()
    ]
    _doubled(found)
    if as_json:
        say(json.dumps([asdict(one) for one in found], indent=2))
    else:
        say("\n".join(_table(found)))
    return int(any(one.problems for one in found))


def look(client: Client, place: str, *, project: Path, python: str) -> Found:
    """
    Returns the entries in the settings of *place*; *python* is the interpreter that may be started for them.
    """
    path = client.path(place, project)
    found = Found(client=client.name, place=place, path=str(path))
    try:
        ours = list(entries(read(path).settings))
    except OSError as error:
        found.problems.append(f"cannot be read: {error}")
        return found
    if not ours:
        return found
    found.installed = True
    found.events = sorted({entry.event for entry in ours})
    found.command = str(ours[0].handler["command"])
    words = split(found.command) or []
    options = options_of(words)
    found.policy, found.observe = options.policy, options.observe
    found.problems += _differences(client, ours)
    found.problems += switched_off(client, project, found.command)
    if client.name == "codex":
        found.problems += untrusted(client, place, path, ours, project)
    _asked(found, words, options, own=place == "user", python=python)
    return found


def _differences(client: Client, ours: list[Entry]) -> list[str]:
    said = []
    missing = [event for event in client.events if event not in {entry.event for entry in ours}]
    if missing:
        said.append(f"not asked at {', '.join(missing)}: install it again")
    if len({str(entry.handler.get("command")) for entry in ours}) > 1:
        said.append("the events have different commands: install it again")
    if len({entry.event for entry in ours}) < len(ours):
        said.append("it is there twice for one event: install it again")
    return said


def _doubled(found: Iterable[Found]) -> None:
    first: dict[str, Found] = {}
    for one in found:
        same = first.setdefault(one.client, one) if one.installed else one
        # pathlib raises for a link that leads to itself.
        if os.path.realpath(one.path) != os.path.realpath(same.path):
            one.problems.append(f"also in {same.path}: each event is answered twice")


def _asked(found: Found, words: list[str], options: Options, *, own: bool, python: str) -> None:
    """
    Run the command with an event of no session. A command of a file that comes with a folder may be anybody's: only
    *python* is started.
    """
    if not Path(words[0]).exists():
        found.answers = False
        found.problems.append(f"{words[0]} is gone: install it again")
        return
    if not own and words[0] != python:
        found.problems.append(
            f"not tried: `{words[0]}` is not the interpreter of this command, and the file is the folder's"
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        trial = Options(client=options.client, policy=options.policy, store=str(Path(folder) / "store.db"))
        start = words[: words.index("hook") + 1]
        try:
            ran = subprocess.run(
                [*start, *trial.words()],
                input=_event(),
                capture_output=True,
                check=False,
                cwd=folder,
                timeout=WAIT,
            )
            answer: object = json.loads(ran.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            found.answers = False
            found.problems.append(f"no answer: {error}")
            return
    found.answers = ran.returncode == 0 and isinstance(answer, Mapping)
    if not found.answers or ran.stderr:
        found.problems.append(
            ran.stderr.decode(errors="replace").strip().splitlines()[-1:][0] if ran.stderr else "no answer"
        )


def _event() -> bytes:
    # The start of a session nobody has: it makes the hook read its policy, and there is nothing to say of it.
    event = {"session_id": "status", "hook_event_name": "SessionStart", "source": "startup", "cwd": str(Path.cwd())}
    event["transcript_path"] = os.devnull
    return json.dumps(event).encode()


def _table(found: Iterable[Found]) -> Iterable[str]:
    rows: list[tuple[Any, ...]] = [("client", "place", "hook", "policy", "answers", "file")]
    for one in found:
        hook = "no" if not one.installed else "observes" if one.observe else "yes"
        answers = {True: "yes", False: "no", None: "-"}[one.answers]
        rows.append((one.client, one.place, hook, one.policy or "-", answers, one.path))
    widths = [max(len(row[n]) for row in rows) for n in range(5)]
    yield "  ".join([*(cell.ljust(width) for cell, width in zip(rows[0], widths, strict=False)), rows[0][5]])
    for one, row in zip(found, rows[1:], strict=True):
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]])
        yield from (f"    {problem}" for problem in one.problems)
