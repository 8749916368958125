"""
The official conformance suite, direct and through the proxy: it needs all that `python -m tests.system.mcp` installs.
"""

import contextlib
import re
import subprocess

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp.proxy.lines import tap
from tests.system.mcp.proxy.chains import STDIO, bridged, http_server, http_tap
from tests.system.mcp.proxy.published import script


pytestmark = pytest.mark.system


PASSED = "44 passed, 0 failed"


@contextlib.contextmanager
def chain(name: str, folder: Path) -> Iterator[str]:
    """
    The URL by which the suite reaches the server.
    """
    given = {"policy": "default", "store": folder / "s.db", "records": folder / "records.jsonl"}
    with contextlib.ExitStack() as open_:
        if name == "direct":
            yield open_.enter_context(http_server(folder))
        elif name == "bridge":
            yield open_.enter_context(bridged(*STDIO, folder=folder))
        elif name == "stdio":
            yield open_.enter_context(bridged(*tap(*STDIO, **given), folder=folder))
        elif name == "url":
            front = tap(url=open_.enter_context(http_server(folder)), **given)[:-1]
            yield open_.enter_context(bridged(*front, folder=folder))
        else:
            yield open_.enter_context(http_tap(folder, **given))


@pytest.mark.parametrize("name", ["direct", "bridge", "stdio", "url", "listen"])
def test_all_of_the_official_suite_passes(name: str, tmp_path: Path) -> None:
    suite = script("conformance")
    with chain(name, tmp_path) as url:
        command = (*suite, "server", "--url", url, "--suite", "all", "-o", str(tmp_path / "out"))
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, cwd=tmp_path)
    failed = re.findall(r".*[1-9]\d* failed.*", done.stdout)
    assert PASSED in done.stdout, (failed, done.stdout[-2000:], done.stderr[-1000:])
    assert done.returncode == 0
