"""
The settings file of a client: our entries put in or taken out, in one step. All else in it stays.
"""

import json
import os
import secrets
import shlex
import stat

from collections.abc import Mapping
from itertools import filterfalse
from pathlib import Path
from typing import Any, Final, NamedTuple

from .options import Options


HOOKS: Final = "hooks"
START: Final = ["-I", "-m", "guardrails", "hook"]
"""The words behind the interpreter in a command of ours. With `-I` nothing is imported from the folder in which it is started."""
BACKUP: Final = ".before-guardrails"
"""The end of the name of the copy: the file as it was before our entries came."""
Settings = dict[str, Any]


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
    return words if words[1:5] == START and Options.of(words[5:]).wrong is None else None


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
    if path.exists() and not entries(settings):
        _replace(_backup(path), path.read_bytes(), like=path)
    _write(path, with_ours(settings, wanted))


def uninstall(path: Path) -> None:
    """
    Take our entries out of the file *path*. If it is as we wrote it, it is again what it was before, byte for byte, or gone. Raises as
    `install` does.
    """
    settings, backup = read(path), _backup(path)
    before = read(backup)
    if with_ours(before, entries(settings)) != settings:
        _write(path, without(settings))
    elif backup.exists():
        backup.replace(path.resolve())
    else:
        path.unlink()


def _is_ours(group: object) -> bool:
    handlers = group.get(HOOKS) if isinstance(group, dict) else None
    return isinstance(handlers, list) and len(handlers) == 1 and words_of(handlers[0]) is not None


def _backup(path: Path) -> Path:
    real = path.resolve()
    return real.with_name(f"{real.name}{BACKUP}")


def _write(path: Path, settings: Settings) -> None:
    _replace(path, f"{json.dumps(settings, indent=2, ensure_ascii=False)}\n".encode(), like=path)


def _replace(path: Path, content: bytes, *, like: Path) -> None:
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        # A copy of private settings is private from its first byte.
        new.touch(0o600, exist_ok=False)
        new.write_bytes(content)
        if like.exists():
            new.chmod(stat.S_IMODE(like.stat().st_mode))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
