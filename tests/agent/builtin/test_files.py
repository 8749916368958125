"""
The file tools: what they read and write, and what they refuse.
"""

import os
import socket
import tracemalloc

from pathlib import Path
from typing import Any

import pytest

from guardrails import Envelope
from guardrails.agent.builtin import Files, Root
from guardrails.agent.builtin import files as module


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    return root


def use(root: Path, tool: str, **arguments: Any) -> Any:
    return Files(Root(root)).tools[tool](**arguments)


def failed(root: Path, tool: str, **arguments: Any) -> str | None:
    said = use(root, tool, **arguments)
    assert isinstance(said, Envelope)
    assert said.status == "error"
    return said.error_type


def test_d10_read_file_reads_page_by_page(root: Path) -> None:
    (root / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    first = use(root, "read_file", path="a.txt", limit=4)
    assert first.value["text"] == "line 1\nline 2\nline 3\nline 4\n"
    assert (first.is_complete, first.value["next_offset"]) == (False, 5)
    last = use(root, "read_file", path="a.txt", offset=9)
    assert last.value["text"] == "line 9\nline 10\n"
    assert last.is_complete
    assert "next_offset" not in last.value
    assert failed(root, "read_file", path="a.txt", offset=50) == "validation"


def test_pages_put_together_are_the_file(root: Path) -> None:
    text = "".join(f"{n} {'x' * (n % 700)}\n" for n in range(1_000))
    (root / "a.txt").write_text(text)
    offset, read = 1, ""
    while True:
        page = use(root, "read_file", path="a.txt", offset=offset)
        read += page.value["text"]
        if page.is_complete:
            break
        offset = page.value["next_offset"]
    assert read == text


@pytest.mark.parametrize("size", [12, 10 << 30])
def test_binary_files_are_told_from_text_without_reading_them_whole(root: Path, size: int) -> None:
    with (root / "b.bin").open("wb") as file:
        file.write(b"\x7fELF\0")
        file.truncate(size)
    said = use(root, "read_file", path="b.bin")
    assert said.error_type == "validation"
    assert f"{size:,} bytes" in said.error_message


@pytest.mark.system
@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file"])
def test_what_is_no_regular_file_is_no_file(root: Path, tool: str) -> None:
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / "device").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(root / "socket"))
        more = {"write_file": {"content": "x"}, "edit_file": {"old_text": "a", "new_text": "b"}}.get(tool, {})
        for name in ("folder", "pipe", "device", "socket"):
            assert failed(root, tool, path=name, **more) == "invalid_path"


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/passwd", "out/secret.txt", "a\0b", "~/x", "", "..\\secret.txt"]
)
def test_d6_nothing_outside_is_read_or_written(root: Path, path: str) -> None:
    (root / "out").symlink_to(root.parent)
    assert failed(root, "read_file", path=path) == "invalid_path"
    assert failed(root, "write_file", path=path, content="x") == "invalid_path"
    assert failed(root, "list_directory", path=path.removesuffix("secret.txt") or "..") == "invalid_path"
    assert (root.parent / "secret.txt").read_text() == "secret"


def test_d4_what_is_missing_is_not_found(root: Path) -> None:
    assert failed(root, "read_file", path="no") == "not_found"
    assert failed(root, "read_file", path="no/where/at/all") == "not_found"
    assert failed(root, "edit_file", path="no", old_text="a", new_text="b") == "not_found"
    assert failed(root, "list_directory", path="no") == "not_found"


def test_d10_write_file_writes_all_of_a_file_with_its_folders(root: Path) -> None:
    assert use(root, "write_file", path="a/b/c.txt", content="one") == {
        "path": "a/b/c.txt",
        "bytes": 3,
        "created": True,
    }
    (root / "a/b/c.txt").chmod(0o754)
    assert use(root, "write_file", path="a/b/c.txt", content="")["created"] is False
    assert (root / "a/b/c.txt").read_text() == ""
    assert (root / "a/b/c.txt").stat().st_mode & 0o777 == 0o754
    assert sorted(p.name for p in (root / "a/b").iterdir()) == ["c.txt"]


def test_a_name_as_long_as_the_system_takes_is_written(root: Path) -> None:
    name = "ö" * 127
    assert use(root, "write_file", path=name, content="x")["created"]
    assert failed(root, "write_file", path=name + "ö", content="x") == "invalid_path"


def test_a_write_that_fails_leaves_the_old_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a").write_text("old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert failed(root, "write_file", path="a", content="new") == "unavailable"
    assert (root / "a").read_text() == "old"
    assert [p.name for p in root.iterdir()] == ["a"]


def test_a_second_name_of_a_file_outside_is_never_written_through(root: Path) -> None:
    os.link(root.parent / "secret.txt", root / "linked")
    use(root, "write_file", path="linked", content="new")
    assert (root.parent / "secret.txt").read_text() == "secret"
    assert (root / "linked").read_text() == "new"


@pytest.mark.parametrize("path", [".git/config", ".GIT/hooks/pre-commit", "sub/.git/x"])
def test_what_is_gits_own_is_not_written(root: Path, path: str) -> None:
    (root / path).parent.mkdir(parents=True)
    (root / path).write_text("old")
    assert failed(root, "write_file", path=path, content="x") == "invalid_path"
    assert failed(root, "edit_file", path=path, old_text="old", new_text="x") == "invalid_path"
    assert use(root, "read_file", path=path).value["text"] == "old"


@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file", "list_directory"])
@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\x1b[2Jb", "a\x7f"])
def test_names_with_control_characters_are_refused(root: Path, tool: str, name: str) -> None:
    (root / name).write_text("x")
    more = {"write_file": {"content": "x"}, "edit_file": {"old_text": "a", "new_text": "b"}}.get(tool, {})
    said = use(root, tool, path=name, **more)
    assert said.error_type == "invalid_path"
    assert said.error_message.isprintable()


@pytest.mark.parametrize("flags", [0o4755, 0o2755, 0o6711])
def test_a_file_that_runs_as_its_owner_does_not_once_it_is_written(root: Path, flags: int) -> None:
    (root / "tool").write_text("old")
    (root / "tool").chmod(flags)
    use(root, "write_file", path="tool", content="new")
    assert (root / "tool").stat().st_mode & 0o7777 == flags & 0o777


def test_an_edit_that_would_make_gigabytes_is_refused_before_it_is_made(root: Path) -> None:
    (root / "a").write_text("a" * (8 << 20))
    tracemalloc.start()
    assert failed(root, "edit_file", path="a", old_text="a", new_text="b" * 100_000, replace_all=True) == "too_large"
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("old", "new", "more", "expected"),
    [
        ("b\n", "B\n", {}, {"replaced": 1, "line": 2}),
        ("a", "A", {"replace_all": True}, {"replaced": 2, "line": 1}),
        ("a", "A", {}, "precondition"),
        ("zzz", "A", {}, "precondition"),
        ("", "A", {}, "precondition"),
        ("a", "a", {}, "precondition"),
    ],
)
def test_d10_edit_file_needs_its_text_exactly_once(root: Path, old: str, new: str, more: Any, expected: Any) -> None:
    (root / "f").write_bytes(b"a\nb\na\r\n")
    said = use(root, "edit_file", path="f", old_text=old, new_text=new, **more)
    if isinstance(expected, str):
        assert said.error_type == expected
        assert (root / "f").read_bytes() == b"a\nb\na\r\n"
    else:
        assert said == {"path": "f", **expected}
        assert (root / "f").read_bytes() == b"a\nb\na\r\n".replace(old.encode(), new.encode())


def test_what_is_too_large_is_said_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WRITE_BYTES", 100)
    assert failed(root, "write_file", path="a", content="x" * 101) == "too_large"
    (root / "big").write_text("x" * 101)
    assert failed(root, "edit_file", path="big", old_text="x", new_text="y") == "too_large"


def test_d10_list_directory_lists_by_name_and_page(root: Path) -> None:
    for name in ("b", "a", "c"):
        (root / name).write_text(name * 3)
    (root / "d").mkdir()
    (root / "e").symlink_to("d")
    (root / "f").symlink_to("/etc")
    listed = use(root, "list_directory")
    assert listed.value[0] == {"name": "a", "type": "file", "bytes": 3}
    assert [entry["type"] for entry in listed.value] == ["file", "file", "file", "directory", "link", "link"]
    assert (listed.total_matches, listed.is_complete) == (6, True)
    page = use(root, "list_directory", offset=2, limit=2)
    assert [entry["name"] for entry in page.value] == ["c", "d"]
    assert use(root, "list_directory", path="d/").is_complete
    assert (page.total_matches, page.is_complete) == (6, False)
    assert use(root, "list_directory", path="e").value == []
    assert failed(root, "list_directory", path="a") == "invalid_path"
