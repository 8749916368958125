"""
The settings file of a client: read as JSON, our entries put in or taken out, and replaced in one step.
"""

import contextlib
import json
import os
import re
import secrets
import stat

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from .command import is_ours


HOOKS: Final = "hooks"
MAX_BYTES: Final = 10_000_000
BACKUP: Final = ".before-guardrails"
"""What is put behind the name of a file that is changed for the first time: as it was then."""
Settings = dict[str, Any]


class Unusable(OSError):
    """
    A settings file that cannot be read or changed.
    """


class Entry(NamedTuple):
    """
    A handler of ours.
    """

    event: str
    group: int
    place: int
    """In the group."""
    handler: Mapping[str, Any]
    matcher: Any
    """Of its group."""


class File(NamedTuple):
    """
    A settings file as it was read; *content* is None if there was none.
    """

    path: Path
    content: bytes | None
    settings: Settings


def read(path: Path) -> File:
    """
    Returns the settings in *path*; none if there is no such file.

    Raises Unusable for what is no JSON object, with line and column, and OSError if it cannot be read.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return File(path, None, {})
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
        raise Unusable(f"{path}: not a regular file of at most {MAX_BYTES // 1_000_000} MB")
    content = path.read_bytes()
    try:
        settings = json.loads(content.decode()) if content.strip() else {}
    except json.JSONDecodeError as error:
        raise Unusable(f"{path}: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise Unusable(f"{path}: {error}") from None
    if not isinstance(settings, dict):
        raise Unusable(f"{path}: line 1, column 1: expected an object")
    return File(path, content, settings)


def entries(settings: Settings) -> Iterator[Entry]:
    """
    Yields our handlers in their order; what is not as the client writes it holds none.
    """
    for event, groups in _mapping(settings.get(HOOKS)).items():
        for g, group in enumerate(_listed(groups)):
            for n, handler in enumerate(_listed(_mapping(group).get(HOOKS))):
                if _is_handler(handler):
                    yield Entry(event, g, n, handler, group.get("matcher"))


def without(settings: Settings) -> Settings:
    """
    Returns *settings* without our entries, and without the containers that held nothing else.
    """
    ours = {(entry.event, entry.group) for entry in entries(settings)}
    hooks: dict[str, Any] = {}
    for event, groups in _mapping(settings.get(HOOKS)).items():
        left = []
        for g, group in enumerate(_listed(groups)):
            if (event, g) not in ours:
                left.append(group)
            elif kept := [handler for handler in group[HOOKS] if not _is_handler(handler)]:
                left.append({**group, HOOKS: kept})
        if left or not any(event == one for one, _ in ours):
            hooks[event] = left if isinstance(groups, list) else groups
    if not ours:
        return settings
    return {**settings, HOOKS: hooks} if hooks else {key: one for key, one in settings.items() if key != HOOKS}


def with_ours(settings: Settings, wanted: Mapping[str, Mapping[str, Any]]) -> Settings:
    """
    Returns *settings* with the *wanted* handler of each event at the end of its list, in place of those of ours that were there.

    Raises Unusable if something else stands where the client has its hooks.
    """
    if {entry.event: entry.handler for entry in entries(settings)} == wanted and len([*entries(settings)]) == len(
        wanted
    ):
        return settings
    settings = without(settings)
    hooks = settings.get(HOOKS, {})
    if not isinstance(hooks, dict):
        raise Unusable(f"`{HOOKS}` is not an object")
    for event in wanted:
        if not isinstance(hooks.get(event, []), list):
            raise Unusable(f"`{HOOKS}.{event}` is not an array")
    added = {event: [*hooks.get(event, []), {HOOKS: [handler]}] for event, handler in wanted.items()}
    return {**settings, HOOKS: {**hooks, **added}}


def write(file: File, settings: Settings) -> None:
    """
    Replace *file* by *settings*, with its mode and its owner, behind a symbolic link too; the folder is made if need be.

    The first change keeps the file as it was beside it, and the last one puts it back if nothing else has changed. A crash leaves
    the old or the new one. A file that was made here is deleted once it is empty. Raises Unusable if another program has changed it since it was read, OSError for the rest.
    """
    target = file.path.resolve()
    if target.exists() and not os.access(target, os.W_OK):
        raise Unusable(f"{target}: not writable")
    target.parent.mkdir(parents=True, exist_ok=True)
    backup = target.with_name(f"{target.name}{BACKUP}")
    if file.content is not None and not backup.exists() and not any(entries(file.settings)):
        _replace(backup, file.content, target)
    if read(file.path).content != file.content:
        raise Unusable(f"{file.path}: another program has just changed it; try again")
    if not settings and not backup.exists():
        target.unlink()
    elif not any(entries(settings)) and backup.exists() and read(backup).settings == settings:
        backup.replace(target)
    else:
        _replace(target, _text(file.content, settings), target if file.content is not None else None)


def _text(content: bytes | None, settings: Settings) -> bytes:
    was = (content or b"{\n  ").decode()
    indent = re.search(r"\n([ \t]+)\S?", was)
    text = json.dumps(settings, ensure_ascii=False, indent=indent[1] if indent else None)
    try:
        return f"{text}\n".replace("\n", "\r\n" if "\r\n" in was else "\n").encode()
    except UnicodeEncodeError:  # half a pair of surrogates, which JSON may hold as an escape
        return f"{json.dumps(settings, indent=2)}\n".encode()


def _replace(path: Path, content: bytes, like: Path | None) -> None:
    copy = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    # A copy of private settings is private from its first byte.
    opened = os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if like is None else 0o600)
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if like is not None:
            found = like.stat()
            with contextlib.suppress(OSError, AttributeError):
                os.chown(copy, found.st_uid, found.st_gid)
            copy.chmod(stat.S_IMODE(found.st_mode))
        copy.replace(path)
    finally:
        copy.unlink(missing_ok=True)


def _is_handler(handler: object) -> bool:
    said = _mapping(handler)
    command = said.get("command")
    return said.get("type", "command") == "command" and isinstance(command, str) and is_ours(command)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
