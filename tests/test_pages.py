"""
How the tests of pages take a browser that is not as it should be.
"""

from pathlib import Path

import pytest

from tests import pages


def installed(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Make *script* the only chromium of this machine.
    """
    program = folder / "bin" / "chromium"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


@pytest.mark.parametrize(
    "script",
    ["exit 1", "exit 0", "echo '<html></html>'", "kill -9 $$", "exec sleep 600"],
    ids=["fails", "shows nothing", "shows another page", "crashes", "hangs"],
)
def test_a_browser_that_does_not_work_is_told_of_and_fails_no_test(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PATIENCE_S", 0.2)
    installed(tmp_path, script, monkeypatch)
    with pytest.raises(pytest.skip.Exception, match="does not show an empty page"):
        pages.in_browser("<p>ours</p>", tmp_path)


def test_without_a_browser_that_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match="not installed"):
        pages.in_browser("<p>ours</p>", tmp_path)


def test_a_browser_that_works_and_complains_of_the_page_fails_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, 'for last; do :; done; cat "${last#file://}"; echo CONSOLE >&2', monkeypatch)
    with pytest.raises(AssertionError):
        pages.in_browser("<p>ours</p>", tmp_path)
