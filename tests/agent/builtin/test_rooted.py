"""
Files below one folder, whoever swaps links in it.
"""

import os
import threading

from pathlib import Path
from typing import Any

import pytest

from guardrails.agent.builtin import Files, Root
from guardrails.agent.builtin.failure import ToolFailure


def text(root: Root, path: str) -> str:
    said = Files(root).tools["read_file"](path)
    if not said.ok:
        raise ToolFailure(said.error_type, said.error_message)
    return str(said.value["text"])


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
    assert caught.value.envelope.error_type == "invalid_path"
    assert str(folder.parent) not in str(caught.value)


def test_a_workspace_on_a_link_takes_paths_by_either_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    root = Root(tmp_path / "link")
    assert (
        text(root, "a/b/f") == text(root, str(tmp_path / "link/a/b/f")) == text(root, str(folder / "a/b/f")) == "inside"
    )


def test_swapping_a_folder_for_a_link_never_leads_out(folder: Path, tmp_path: Path) -> None:
    root, seen, stop = Root(folder), set[str](), threading.Event()

    def swap() -> None:
        # As it should be now and then, however the threads take turns.
        while not stop.wait(0.0002):
            (folder / "a").rename(folder / "kept")
            (folder / "a").symlink_to(tmp_path)
            (folder / "a").unlink()
            (folder / "kept").rename(folder / "a")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        reads = 0
        while reads < 1_000 or ("inside" not in seen and reads < 100_000):
            reads += 1
            try:
                seen.add(text(root, "a/b/f"))
            except ToolFailure as failure:
                seen.add(str(failure.envelope.error_type))
    finally:
        stop.set()
        thread.join()
    assert "outside" not in seen
    assert "inside" in seen


def test_a_folder_that_is_swapped_before_it_is_opened_never_leads_out(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, real = Root(folder), os.open

    def swapping(path: Any, *args: Any, **kwargs: Any) -> int:
        if not (folder / "kept").exists():
            # What was looked at a moment ago is now a link to another place, with the same names in it.
            (folder / "a").rename(folder / "kept")
            (folder / "a").symlink_to(tmp_path)
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", swapping)
    with pytest.raises(ToolFailure) as caught:
        text(root, "a/b/f")
    assert caught.value.envelope.error_type == "invalid_path"
    assert (folder / "a/b/f").read_text() == "outside"


def test_no_handle_stays_open(folder: Path) -> None:
    root = Root(folder)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("a/b/f", "a/b/none", "..", "a/b/../../..", "x/y/z"):
        with pytest.raises(ToolFailure) if path != "a/b/f" else root.find(path):
            text(root, path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_workspace_must_be_a_folder(folder: Path) -> None:
    with pytest.raises(NotADirectoryError):
        Root(folder / "a/b/f")
    with pytest.raises(FileNotFoundError):
        Root(folder / "none")
