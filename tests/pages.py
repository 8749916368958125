"""
Pages of HTML: the data that they draw, and how a browser shows them.
"""

import functools
import json
import re
import shutil
import subprocess
import tempfile

from pathlib import Path
from typing import Any

import pytest


PATIENCE_S = 120.0
EVIL = "</script><img src=x onerror=alert(1)>\"'&\u202egpj\x00\x1b[31m\u200b\ud800"


def document(text: str) -> dict[str, Any]:
    """
    What a page that `--html` wrote draws: its command, and the data.
    """
    (said,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    found: dict[str, Any] = json.loads(said)
    return found


def in_browser(text: str, folder: Path, width: int = 1280) -> str:
    """
    The page as a browser without a network has it once its scripts ran; raises where it complains of anything.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    if not _works(chromium):
        pytest.skip("chromium is installed, but does not show an empty page")
    shown, complaints = _shown(chromium, text, folder, width)
    assert "CONSOLE" not in complaints
    return shown


@functools.cache
def _works(chromium: str) -> bool:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            return "<p>here</p>" in _shown(chromium, "<p>here</p>", Path(folder), 1280)[0]
        except (OSError, subprocess.SubprocessError):
            return False


def _shown(chromium: str, text: str, folder: Path, width: int) -> tuple[str, str]:
    """
    The page once its scripts ran, and what the browser logged; raises where it ends badly or takes longer than PATIENCE_S.
    """
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    quiet = ["quic", "background-networking", "component-update", "sync", "gpu"]
    command = [chromium, "--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}"]
    command += [f"--window-size={width},900", "--enable-logging=stderr", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout, done.stderr
