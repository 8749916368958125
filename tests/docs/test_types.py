"""
What mypy says of calls that are right, and of calls that are wrong.
"""

import re
import subprocess
import sys

from pathlib import Path

import pytest

from tests.docs.pages import ROOT


RIGHT = Path(__file__).with_name("calls_right.txt").read_text()
WRONG = Path(__file__).with_name("calls_wrong.txt").read_text().splitlines()
MYPY = f"""
[mypy]
strict = True
mypy_path = {ROOT}
explicit_package_bases = True
namespace_packages = True
ignore_missing_imports = True
implicit_reexport = True
[mypy-guardrails.*]
follow_imports = silent
"""


@pytest.mark.system
def test_calls_that_are_right_pass_and_each_that_is_wrong_fails_at_its_line(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "mypy.ini").write_text(MYPY)
    (tmp_path / "calls.py").write_text(RIGHT + "\n".join(WRONG) + "\n")
    options = [
        "--config-file=mypy.ini",
        f"--cache-dir={ROOT / '.mypy_cache' / 'pages'}",
        "--hide-error-context",
        "--no-pretty",
    ]
    command = [sys.executable, "-m", "mypy", *options, "calls.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    said = {int(line): what for line, what in re.findall(r"^calls\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE)}
    last = RIGHT.count("\n")
    assert {line: what for line, what in said.items() if line <= last} == {}
    assert [wrong for at, wrong in enumerate(WRONG, last + 1) if at not in said] == []
