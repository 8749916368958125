"""
The programs in `examples/`, run as their readers run them.
"""

import os
import re
import subprocess
import sys

from pathlib import Path


ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("test_"))
PRINTED = dict(
    re.findall(r"^`(\w+)\.py`:\n\n```text\n(.*?)```$", (FOLDER / "README.md").read_text(), re.DOTALL | re.MULTILINE)
)
"""What the page says that each prints."""


def printed(name: str, folder: Path) -> str:
    """
    What the program *name* prints in *folder*, without spaces at the ends of lines.
    """
    keys = {key: value for key, value in os.environ.items() if "API_KEY" not in key}
    environment = {**keys, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "HOME": str(folder)}
    program = [sys.executable, str(FOLDER / f"{name}.py")]
    done = subprocess.run(
        program, capture_output=True, text=True, cwd=folder, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == [], "it cleans up after itself"
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
