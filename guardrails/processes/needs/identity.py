"""
Who commits: the one part of a person's git settings that a sandbox shows, since there may be keys in the others.
"""

import os
import subprocess

from pathlib import Path
from typing import Final

from guardrails.stores.folders import cache_folder


NAMES: Final = ("user.name", "user.email")
WITHIN_S: Final = 5.0


def identity_file() -> str | None:
    """
    A file with name and email of the user's own git settings, for `GIT_CONFIG_GLOBAL`.

    Returns None if nothing of that is set, or git is not here.
    """
    known = {name: said for name in NAMES if (said := _setting(name))}
    if not known:
        return None
    lines = ["[user]", *(f"\t{name.partition('.')[2]} = {_quoted(said)}" for name, said in known.items())]
    text = "\n".join([*lines, ""])
    file = Path(cache_folder(), "gitconfig")
    try:
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = file.with_name(f"gitconfig.{os.getpid()}")
            new.write_text(text, encoding="utf-8")
            new.replace(file)
    except (OSError, UnicodeError):
        return None
    return str(file)


def _setting(name: str) -> str:
    # Of no repository: what its settings say, git finds in there.
    asked = ["git", "config", "--global", "--get", name]
    try:
        said = subprocess.run(asked, capture_output=True, check=False, timeout=WITHIN_S, stdin=subprocess.DEVNULL)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.decode(errors="replace").rstrip("\n") if said.returncode == 0 else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
