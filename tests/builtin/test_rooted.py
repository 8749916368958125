"""
Files below one folder, whoever swaps links in it.
"""

import os
import threading

from pathlib import Path

import pytest

from guardrails.builtin.failure import ToolFailure
from guardrails.builtin.rooted import Root


def text(root: Root, path: str) -> str:
    with root.find(path) as place:
        handle = root.open_file(place)
        with os.fdopen(handle) as file:
            return file.read()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/f").write_text("inside")
    (tmp_path / "f").write_text("outside")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/f").write_text("outside")
    return folder


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("l", "a", "l/b/f"),
        ("l", "a/b/f", "l"),
        ("a/l", "../a/b", "a/l/f"),
        ("a/l", "b/../../a/b/f", "a/l"),
        ("l", "{folder}/a", "l/b/f"),
        ("l", "a", "l/../a/b/f"),
    ],
)
def test_links_inside_are_followed(folder: Path, link: str, target: str, path: str) -> None:
    (folder / link).symlink_to(target.format(folder=folder))
    assert text(Root(folder), path) == "inside"


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [("l", "..", "l/f"), ("l", "../f", "l"), ("l", "/", "l/etc/passwd"), ("a/l", "../..", "a/l/f"), ("l", "l", "l")],
)
def test_links_that_lead_out_or_nowhere_are_not(folder: Path, link: str, target: str, path: str) -> None:
    (folder / link).symlink_to(target)
    with pytest.raises(ToolFailure) as caught:
        text(Root(folder), path)
    assert caught.value.error_type == "invalid_path"
    assert str(folder.parent) not in str(caught.value)


def test_a_workspace_on_a_link_takes_paths_by_either_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    root = Root(tmp_path / "link")
    assert (
        text(root, "a/b/f") == text(root, str(tmp_path / "link/a/b/f")) == text(root, str(folder / "a/b/f")) == "inside"
    )


def test_a_workspace_that_is_renamed_stays_the_same_folder(folder: Path, tmp_path: Path) -> None:
    root = Root(folder)
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path)
    assert text(root, "a/b/f") == "inside"


def test_swapping_a_folder_for_a_link_never_leads_out(folder: Path, tmp_path: Path) -> None:
    root, seen, stop = Root(folder), set[str](), threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (folder / "a").rename(folder / "kept")
            (folder / "a").symlink_to(tmp_path)
            (folder / "a").unlink()
            (folder / "kept").rename(folder / "a")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(1_500):
            try:
                seen.add(text(root, "a/b/f"))
            except ToolFailure as failure:
                seen.add(failure.error_type)
    finally:
        stop.set()
        thread.join()
    # By path the same loop reads the other file within a few rounds.
    assert "outside" not in seen
    assert "inside" in seen


def test_no_handle_stays_open(folder: Path) -> None:
    root = Root(folder)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("a/b/f", "a/b/none", "..", "a/b/../../..", "x/y/z"):
        with pytest.raises(ToolFailure) if path != "a/b/f" else root.find(path):
            text(root, path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    root.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before - 1


def test_a_workspace_must_be_a_folder(folder: Path) -> None:
    with pytest.raises(NotADirectoryError):
        Root(folder / "a/b/f")
    with pytest.raises(FileNotFoundError):
        Root(folder / "none")
