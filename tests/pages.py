"""
Pages of HTML, taken apart and opened.
"""

import functools
import json
import shutil
import subprocess
import tempfile

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest


PATIENCE_S = 30.0
VOID = {"meta", "link", "br", "input"}
EVIL = "</script><img src=x onerror=alert(1)>\"'&\u202egpj\x00\x1b[31m\u200b\ud800"


class Page(HTMLParser):
    """
    A page, taken apart; raises where its elements are not balanced.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, str] = {}
        self.words: list[str] = []
        self.data: list[Any] = []
        """What the page's script draws tables of."""
        self.feed(text.replace("<!DOCTYPE html>", ""))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script" and self.elements[-1][1].get("type") == "application/json":
            self.data.append(json.loads(data))
        elif self.open and self.open[-1] in {"script", "style"}:
            self.raw[self.open[-1]] = self.raw.get(self.open[-1], "") + data
        else:
            self.words.append(data)

    def drawn(self) -> list[list[str]]:
        """
        The cells of all rows that the page's script draws.
        """
        return [
            [cell if isinstance(cell, str) else cell[0] if isinstance(cell, list) else f"{cell:,}" for cell in row]
            for each in self.data
            for row in each["rows"]
        ]

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


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
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)  # noqa: S603
    return done.stdout, done.stderr
