"""
The official conformance suite, direct and through the proxy: it needs all that `python -m tests.system.mcp` installs.
"""

import contextlib
import re

from pathlib import Path

import pytest

from tests.children import ran
from tests.system.mcp.chains import bridged, reached, script


pytestmark = pytest.mark.system
PASSED = "44 passed, 0 failed"


@pytest.mark.parametrize("name", ["http", "direct", "stdio", "url", "listen"])
def test_all_of_the_official_suite_passes(name: str, tmp_path: Path) -> None:
    suite = script("conformance")
    with contextlib.ExitStack() as stack:
        found = stack.enter_context(reached(name, tmp_path))
        url = found if isinstance(found, str) else stack.enter_context(bridged(*found, folder=tmp_path))
        command = (*suite, "server", "--url", url, "--suite", "all", "-o", str(tmp_path / "out"))
        done = ran(*command, timeout=1_800, cwd=tmp_path)
    failed = re.findall(r".*[1-9]\d* failed.*", done.stdout)
    assert PASSED in done.stdout, (failed, done.stdout[-2000:], done.stderr[-1000:])
    assert done.returncode == 0
