"""
The file tools: what they read and write, what they refuse, and that nobody is led out of the workspace.
"""

import os
import socket
import tracemalloc

from pathlib import Path
from typing import Any

import pytest

from guardrails import Envelope
from guardrails.agent.builtin import Files, Root, builtin_tools
from guardrails.agent.builtin import files as module
from tests.tables import table


EDIT = {"old_text": "a", "new_text": "b"}
WRITES = {"read_file": {}, "list_directory": {}, "write_file": {"content": "x"}, "edit_file": EDIT}
"""The arguments of each tool, but for its path."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path in ("work/a/b/f", "f", "b/f", "secret.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("inside" if path.startswith("work") else "outside")
    return tmp_path / "work"


def use(root: Path, tool: str, **arguments: Any) -> Any:
    return Files(Root(root)).tools[tool](**arguments)


def failed(root: Path, tool: str, path: str) -> str | None:
    said = use(root, tool, path=path, **WRITES[tool])
    assert isinstance(said, Envelope)
    assert (said.status, str(root.parent) in str(said.error_message)) == ("error", False)
    assert str(said.error_message).isprintable()
    return said.error_type


# Reading


def test_d10_read_file_reads_page_by_page_and_the_pages_are_the_file(root: Path) -> None:
    text = "".join(f"{n} {'x' * (n % 700)}\n" for n in range(1_000))
    (root / "a.txt").write_text(text)
    page = use(root, "read_file", path="a.txt", limit=4)
    assert (page.value["text"].count("\n"), page.is_complete, page.value["next_offset"]) == (4, False, 5)
    offset, read = 1, ""
    while not (page := use(root, "read_file", path="a.txt", offset=offset)).is_complete:
        read, offset = read + page.value["text"], page.value["next_offset"]
    assert read + page.value["text"] == text
    assert use(root, "read_file", path="a.txt", offset=5_000).error_type == "validation"


@table("size", [12, 10 << 30])
def test_binary_files_are_told_from_text_without_reading_them_whole(root: Path, size: int) -> None:
    (root / "b.bin").write_bytes(b"\x7fELF\0")
    os.truncate(root / "b.bin", size)
    said = use(root, "read_file", path="b.bin")
    assert (said.error_type, f"{size:,} bytes" in said.error_message) == ("validation", True)


def test_d10_list_directory_lists_by_name_and_page(root: Path) -> None:
    folder = root / "list"
    (folder / "d").mkdir(parents=True)
    for name in ("b", "a", "c"):
        (folder / name).write_text(name * 3)
    (folder / "e").symlink_to("d")
    (folder / "f").symlink_to("/etc")
    listed = use(root, "list_directory", path="list/")
    assert listed.value[0] == {"name": "a", "type": "file", "bytes": 3}
    assert [entry["type"] for entry in listed.value] == ["file", "file", "file", "directory", "link", "link"]
    assert (listed.total_matches, listed.is_complete) == (6, True)
    page = use(root, "list_directory", path="list", offset=2, limit=2)
    assert ([entry["name"] for entry in page.value], page.total_matches, page.is_complete) == (["c", "d"], 6, False)
    assert use(root, "list_directory", path="list/e").value == []
    assert failed(root, "list_directory", "list/a") == "invalid_path"


# Writing


def test_d10_write_file_writes_all_of_a_file_with_its_folders(root: Path) -> None:
    made = use(root, "write_file", path="n/b/c.txt", content="one")
    assert made == {"path": "n/b/c.txt", "bytes": 3, "created": True}
    for flags in (0o754, 0o4755, 0o6711):
        # One that runs as its owner does not once it is written.
        (root / "n/b/c.txt").chmod(flags)
        assert use(root, "write_file", path="n/b/c.txt", content="")["created"] is False
        assert (root / "n/b/c.txt").stat().st_mode & 0o7777 == flags & 0o777
    assert [(p.name, p.read_text()) for p in (root / "n/b").iterdir()] == [("c.txt", "")]
    name = "ö" * 127
    assert use(root, "write_file", path=name, content="x")["created"]
    assert failed(root, "write_file", name + "ö") == "invalid_path"


def test_a_write_that_fails_leaves_the_old_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert failed(root, "write_file", "a/b/f") == "precondition"
    assert [(p.name, p.read_text()) for p in (root / "a/b").iterdir()] == [("f", "inside")]


def test_d10_edit_file_needs_its_text_exactly_once(root: Path) -> None:
    (root / "f").write_bytes(b"a\nb\na\r\n")
    for old, new in (("a", "A"), ("zzz", "A"), ("b", "b")):
        assert use(root, "edit_file", path="f", old_text=old, new_text=new).error_type == "precondition"
    assert use(root, "edit_file", path="f", old_text="b\n", new_text="") == {"path": "f", "replaced": 1, "line": 2}
    both = use(root, "edit_file", path="f", old_text="a", new_text="A", replace_all=True)
    assert (both, (root / "f").read_bytes()) == ({"path": "f", "replaced": 2, "line": 1}, b"A\nA\r\n")


def test_what_is_or_would_be_too_large_is_refused_before_it_is_made(root: Path) -> None:
    (root / "a.txt").write_text("a" * module.MAX_WRITE)
    tracemalloc.start()
    said = use(root, "edit_file", path="a.txt", old_text="a", new_text="b" * 100_000, replace_all=True)
    assert (said.error_type, tracemalloc.get_traced_memory()[1] < 64 << 20) == ("too_large", True)
    tracemalloc.stop()
    tools = builtin_tools(root, shell=False, web=False)
    said = tools.execute("write_file", {"path": "b", "content": "x" * (module.MAX_WRITE + 1)})
    assert (said.status, (root / "b").exists()) == ("validation_error", False)


# What is refused


@pytest.mark.system
def test_d4_what_is_missing_is_not_found_and_what_is_no_regular_file_is_no_file(root: Path) -> None:
    for tool in ("read_file", "list_directory", "edit_file"):
        for path in ("no", "no/where/at/all"):
            assert failed(root, tool, path) == "not_found"
    os.mkfifo(root / "pipe")
    (root / "device").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(root / "socket"))
        for tool in ("read_file", "write_file", "edit_file"):
            for name in ("a", "pipe", "device", "socket"):
                assert failed(root, tool, name) in ("invalid_path", "not_found")


def test_a_second_name_of_a_file_outside_is_never_written_through(root: Path) -> None:
    os.link(root.parent / "secret.txt", root / "linked")
    use(root, "write_file", path="linked", content="new")
    assert ((root.parent / "secret.txt").read_text(), (root / "linked").read_text()) == ("outside", "new")


def test_what_is_gits_own_is_not_written(root: Path) -> None:
    for path in (".git/config", ".GIT/hooks/pre-commit", "sub/.git/x"):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text("a")
        assert failed(root, "write_file", path) == failed(root, "edit_file", path) == "invalid_path"
        assert use(root, "read_file", path=path).value["text"] == "a"


def test_d6_nothing_outside_is_read_or_written(root: Path) -> None:
    (root / "out").symlink_to(root.parent)
    outside = ("../secret.txt", "/etc/passwd", "out/secret.txt", "~/x", "", "..\\secret.txt")
    for path in (*outside, "a\0b", "a\nb", "a\x1b[2Jb"):
        for tool in WRITES:
            assert failed(root, tool, path) == "invalid_path"
    assert (root.parent / "secret.txt").read_text() == "outside"


# Links, whoever swaps them


LINKS = [line.split() for line in Path(__file__).with_name("links.txt").read_text().splitlines()]


@table("link, target, path, expected", LINKS)
def test_d6_links_inside_are_followed(root: Path, link: str, target: str, path: str, expected: str) -> None:
    (root / link).symlink_to(target.format(root=root))
    said = use(root, "read_file", path=path)
    assert (said.value["text"] if said.ok else failed(root, "read_file", path)) == expected
    (root / link).unlink()


def test_a_workspace_is_a_folder_and_on_a_link_takes_paths_by_either_name(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    for path in ("a/b/f", f"{link}/a/b/f", f"{root}/a/b/f"):
        assert use(link, "read_file", path=path).value["text"] == "inside"
    for name, error in (("a/b/f", NotADirectoryError), ("none", FileNotFoundError)):
        with pytest.raises(error):
            Root(root / name)


def test_a_folder_that_is_swapped_before_it_is_opened_never_leads_out(root: Path, monkeypatch: Any) -> None:
    read, real = Files(Root(root)).tools["read_file"], os.open
    before = len(list(Path("/proc/self/fd").iterdir()))

    def swapping(path: Any, *args: Any, **kwargs: Any) -> int:
        if not (root / "kept").exists():
            # What was looked at a moment ago is now a link to another place, with the same names in it.
            (root / "a").rename(root / "kept")
            (root / "a").symlink_to(root.parent)
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", swapping)
    assert read("a/b/f").error_type == "invalid_path"
    assert (root / "a/b/f").read_text() == "outside"
    # No handle stays open.
    assert len(list(Path("/proc/self/fd").iterdir())) == before
