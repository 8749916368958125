"""
The author of commits, and the folders of other owners that git may use. A sandbox shows only this part of a person's
git settings, since there may be keys in the others.
"""

import os
import subprocess

from pathlib import Path
from typing import Final

from guardrails.stores.folders import cache_folder


SETTINGS: Final = (("user", "name"), ("user", "email"), ("safe", "directory"))
"""Section and key."""
WITHIN_S: Final = 5.0


def identity_file() -> str | None:
    """
    A file with name, email and safe folders of the user's own git settings, for `GIT_CONFIG_GLOBAL`.

    Returns None if nothing of that is set, or git is not here.
    """
    lines = [
        f"[{section}]\n\t{key} = {_quoted(said)}\n" for section, key in SETTINGS for said in _settings(section, key)
    ]
    if not lines:
        return None
    text = "".join(lines)
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


def _settings(section: str, key: str) -> list[str]:
    # Of no repository: what its settings say, git finds in there.
    asked = ["git", "config", "--global", "--null", "--get-all", f"{section}.{key}"]
    if section == "safe":
        asked.insert(3, "--path")  # with `~` replaced, since inside the home is another
    try:
        said = subprocess.run(asked, capture_output=True, check=False, timeout=WITHIN_S, stdin=subprocess.DEVNULL)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return []
    return said.stdout.decode(errors="replace").split("\0")[:-1] if said.returncode == 0 else []


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
