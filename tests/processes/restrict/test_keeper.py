"""
What a program left in its folder for temporary files goes with it.
"""

import os

from pathlib import Path

import pytest

from guardrails.processes.restrict.keeper import empty


def test_a_folder_is_emptied_whatever_is_in_it(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    folder.mkdir()
    (folder / "file").write_text("x")
    (folder / "line\nfeed").write_text("x")
    (folder / ".1").write_text("a name that is used meanwhile")
    (folder / "link").symlink_to(outside)
    os.mkfifo(folder / "fifo")
    closed = folder / "closed"
    closed.mkdir()
    (closed / "inner").mkdir()
    (closed / "inner" / "file").write_text("x")
    closed.chmod(0)
    empty(str(folder))
    assert list(folder.iterdir()) == []
    assert (outside / "kept").read_text() == "kept"


def test_no_depth_is_too_deep(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    empty(str(folder))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["none", "file", "link"])
def test_what_is_no_folder_is_left(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    empty(str(tmp_path / name))
    assert (tmp_path / "file").read_text() == "kept"
    assert (tmp_path / "target" / "file").read_text() == "kept"
