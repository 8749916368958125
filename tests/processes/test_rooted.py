"""
Files below a handle: what is opened to be written, and what is not.
"""

import os
import subprocess
import sys
import threading

from collections.abc import Iterator
from pathlib import Path

import pytest

from guardrails.processes.rooted import BadPlaceError, Below, open_to_read, open_to_write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/f").write_text("inside")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/f").write_text("outside")
    return folder


@pytest.fixture
def below(folder: Path) -> Iterator[Below]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    yield Below(handle, (str(folder),))
    os.close(handle)


def handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0


def wrote(below: Below, path: str, text: str, *, append: bool = False) -> None:
    with below.find(path) as place, os.fdopen(open_to_write(place, append=append), "w") as file:
        file.write(text)


def test_a_file_is_made_emptied_or_written_on(below: Below, folder: Path) -> None:
    wrote(below, "new", "one")
    wrote(below, "new", "two", append=True)
    assert (folder / "new").read_text() == "onetwo"
    wrote(below, str(folder / "new"), "3")
    assert (folder / "new").read_text() == "3"


@pytest.mark.parametrize("append", [True, False])
def test_what_is_no_file_or_has_a_second_name_is_not_written(below: Below, folder: Path, append: bool) -> None:
    os.mkfifo(folder / "pipe")
    os.link(folder.parent / "b/f", folder / "hard")
    (folder / "dangling").symlink_to("../new")
    (folder / "device").symlink_to("/dev/null")
    for name in ("pipe", "hard", "dangling", "device", "a", ".", "..", "x\ny", "/etc/passwd"):
        with pytest.raises(BadPlaceError):
            wrote(below, name, "x", append=append)
    assert (folder.parent / "b/f").read_text() == "outside"
    assert not (folder.parent / "new").exists()


@pytest.mark.parametrize(
    "name", [".git", ".git/config", ".GIT/hooks/pre-commit", "l/config", "sub/.git", "a/.git/x", ".g\u200cit/x"]
)
def test_what_is_gits_own_is_not_written(below: Below, folder: Path, name: str) -> None:
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("kept")
    (folder / "l").symlink_to(".git")
    with pytest.raises(BadPlaceError, match="git's own"), below.find(name, make=True) as place:
        open_to_write(place)
    assert (folder / ".git/config").read_text() == "kept"
    assert not (folder / "a/.git").exists()


@pytest.mark.parametrize("path", ["f/", "f/.", "f//", "new/", "l"])
def test_a_slash_at_the_end_means_a_folder(below: Below, folder: Path, path: str) -> None:
    (folder / "f").write_text("kept")
    (folder / "l").symlink_to("f/")
    with pytest.raises(OSError, match="directory"):
        wrote(below, path, "x")
    with pytest.raises(OSError, match="directory"), below.find(path) as place:
        open_to_read(place)
    assert (folder / "f").read_text() == "kept"
    assert not (folder / "new").exists()


def test_a_link_that_appears_after_it_was_looked_for_is_not_written_through(
    below: Below, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "f").write_text("old")
    real = os.stat

    def swapping(*args: object, **kwargs: object) -> os.stat_result:
        found = real(*args, **kwargs)  # type: ignore[arg-type]
        (folder / "f").unlink()
        (folder / "f").symlink_to("../b/f")
        return found

    monkeypatch.setattr(os, "stat", swapping)
    with pytest.raises(OSError, match="symbolic links"):
        wrote(below, "f", "x")
    assert (folder.parent / "b/f").read_text() == "outside"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b/f", "a/b/f"),
        ("{}/a/b/f", "a/b/f"),
        ("{}", "."),
        ("{}/", "."),
        ("{}/a/../x", "a/../x"),
        ("{}/../work/x", "x"),
        ("{}x", None),
        ("/", None),
        ("{}/../b", None),
    ],
)
def test_an_absolute_path_is_seen_from_the_folder(below: Below, folder: Path, path: str, expected: str | None) -> None:
    assert below.relative(path.format(folder)) == expected


def test_dots_after_a_link_go_up_from_where_it_leads(below: Below, folder: Path) -> None:
    (folder / "l").symlink_to("a/b")
    (folder / "a/up").write_text("physical")
    for path in ("l/../up", f"{folder}/l/../up"):
        with below.find(path) as place:
            assert place.above == ("a",)
            os.close(open_to_read(place))


def test_a_place_too_deep_is_refused_before_it_takes_all_handles(below: Below, folder: Path) -> None:
    before = handles()
    with pytest.raises(BadPlaceError, match="folders deep"), below.find("d/" * 2_000 + "f", make=True):
        pass
    (folder / "loop").symlink_to(".")
    with below.find("loop/" * 40 + "a/b/f") as place:
        assert place.above == ("a", "b")
    with pytest.raises(OSError, match="symbolic links"), below.find("loop/" * 41 + "a/b/f"):
        pass
    assert handles() == before


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_files_of_the_kernel_are_none_of_a_disk() -> None:
    handle = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for path in ("proc/self/environ", "/proc/self/status", "/sys/kernel/notes"):
            with pytest.raises(BadPlaceError), Below(handle, ("/",)).find(path) as place:
                open_to_read(place)
    finally:
        os.close(handle)


@pytest.mark.parametrize("opens", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_no_swap_of_links_while_files_are_opened_leads_out(below: Below, folder: Path, opens: int) -> None:
    stop = threading.Event()
    out = folder.parent

    def swap() -> None:
        # As it should be now and then, however the threads take turns.
        while not stop.wait(0.0001):
            (folder / "a").rename(folder / "kept")
            (folder / "a").symlink_to(out)
            (folder / "a").unlink()
            (folder / "kept").rename(folder / "a")
            (folder / "a/b/f").rename(folder / "a/b/g")
            (folder / "a/b/f").symlink_to(out / "b/f")
            (folder / "a/b/f").unlink()
            (folder / "a/b/g").rename(folder / "a/b/f")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = dict.fromkeys(("inside", "refused"), 0)
    try:
        for number in range(50 * opens):
            if number >= opens and seen["inside"]:
                break
            try:
                with below.find(("a/b/f", "a/b/../b/f", "a/./b/new")[number % 3]) as place:
                    if place.name == "new":
                        os.close(open_to_write(place, append=True))
                        continue
                    handle = open_to_read(place)
                    with os.fdopen(handle) as file:
                        seen[file.read()] += 1
            except (BadPlaceError, OSError):
                seen["refused"] += 1
    finally:
        stop.set()
        thread.join()
    assert set(seen) == {"inside", "refused"}
    assert seen["inside"]
    assert sorted(path.name for path in (out / "b").iterdir()) == ["f"]


def test_it_needs_the_standard_library_alone() -> None:
    said = (
        "import sys; import guardrails.processes.rooted; print([n for n in ('pydantic', 'yaml') if n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", said], check=True, capture_output=True, text=True).stdout == "[]\n"  # noqa: S603
