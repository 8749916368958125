"""
The programs in `examples/`, run as their readers run them.
"""

import os
import re
import subprocess
import sys

from pathlib import Path

from tests import children
from tests.children import ROOT


FOLDER = ROOT / "examples"
PRINTED = dict(
    re.findall(r"^`(\w+)\.py`:\n\n```text\n(.*?)```$", (FOLDER / "README.md").read_text(), re.DOTALL | re.MULTILINE)
)
"""What the page says that each prints."""


def ran(name: str, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """
    The program *name*, run with *arguments* in *folder* without any key.
    """
    keys = {key: value for key, value in os.environ.items() if "API_KEY" not in key}
    own = {**keys, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "HOME": str(folder)}
    return children.ran(sys.executable, FOLDER / f"{name}.py", *arguments, cwd=folder, env=own)


def printed(name: str, folder: Path) -> str:
    """
    What the program *name* prints in *folder*, without spaces at the ends of lines.
    """
    done = ran(name, folder)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == [], "it cleans up after itself"
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
