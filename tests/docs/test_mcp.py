"""
The page about MCP: its server is started and its agent run, as a reader would.
"""

import os
import re
import subprocess
import sys

from pathlib import Path

import pytest


pytestmark = pytest.mark.system


pytest.importorskip("mcp")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mcp.md").read_text()


@pytest.mark.system
def test_what_the_page_shows_is_what_it_prints(tmp_path: Path) -> None:
    blocks = dict(
        zip(("toml", "agent", "printed", "server"), re.findall(r"```\w+\n(.*?)```", PAGE, re.DOTALL), strict=False)
    )
    (tmp_path / "hotels.py").write_text(blocks["server"])
    configured = (
        blocks["toml"].replace('"python"', repr(sys.executable)).replace("https://example.com", "http://127.0.0.1:9")
    )
    (tmp_path / "agent.toml").write_text(configured)
    done = subprocess.run(
        [sys.executable, "-c", blocks["agent"]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == blocks["printed"]
