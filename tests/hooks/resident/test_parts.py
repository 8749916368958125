"""
The parts of the process that stays, each by itself: when it leaves, what it watches, whom it trusts, what it reads.
"""

import importlib.util
import os
import socket
import sys

from pathlib import Path
from types import SimpleNamespace

import pytest

from guardrails.hooks.options import Options
from guardrails.hooks.resident.folder import inside, is_own, opened
from guardrails.hooks.resident.process import Resident
from guardrails.hooks.resident.watch import Watch
from guardrails.hooks.resident.wire import MAX_REQUEST, WireError, answered, awaited, received, sent


def resident(path: Path, idle_s: float) -> Resident:
    folder = opened(str(path))
    listener = socket.socket(socket.AF_UNIX)
    inside(folder, lambda: listener.bind("name.sock"))
    listener.listen()
    lock = os.open("name.lock", os.O_CREAT | os.O_RDWR, dir_fd=folder)
    return Resident(lock, listener, folder, "name", "identity", idle_s=idle_s)


def test_it_leaves_when_nobody_asks_and_takes_its_name_along(tmp_path: Path) -> None:
    resident(tmp_path / "run", 0.0).run()
    assert not (tmp_path / "run" / "name.sock").exists()


def test_it_leaves_when_its_socket_was_taken_away_and_leaves_the_next_one_alone(tmp_path: Path) -> None:
    made = resident(tmp_path / "run", 0.01)
    name = tmp_path / "run" / "name.sock"
    name.unlink()
    name.write_text("of another")
    made.run()
    assert name.read_text() == "of another"


def test_to_look_at_a_folder_leaves_the_working_directory_as_it_was(tmp_path: Path) -> None:
    before = Path.cwd()
    with pytest.raises(ZeroDivisionError):
        inside(opened(str(tmp_path / "run")), lambda: 1 // 0)
    assert Path.cwd() == before


def test_code_that_was_loaded_and_changed_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used, unused = tmp_path / "used_by_a_test.py", tmp_path / "unused.py"
    used.write_text("a = 1\n")
    unused.write_text("a = 1\n")
    watch = Watch(str(tmp_path), check_s=0.0)
    spec = importlib.util.spec_from_file_location("used_by_a_test", used)
    assert spec is not None
    monkeypatch.setitem(sys.modules, "used_by_a_test", importlib.util.module_from_spec(spec))
    unused.write_text("a = 100\n")
    assert not watch.changed(Options())
    used.write_text("a = 100\n")
    assert watch.changed(Options())


def test_a_store_that_was_used_and_is_another_file_is_seen(tmp_path: Path) -> None:
    watch = Watch()
    options = Options(store=str(tmp_path / "s.db"))
    watch.used(options)
    (tmp_path / "s.db").touch()
    assert not watch.changed(options)
    watch.used(options)
    (tmp_path / "s.db").rename(tmp_path / "kept.db")
    (tmp_path / "s.db").touch()
    assert watch.changed(options)


def test_only_a_process_of_the_same_user_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert is_own(ours)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert not is_own(ours)


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.close(opened(str(tmp_path / "run")))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PermissionError):
        opened(str(tmp_path / "run"))


def said(text: bytes) -> SimpleNamespace:
    """
    A connection by which *text* comes in, in pieces, and nothing else.
    """
    rest = bytearray(text)

    def recv(size: int) -> bytes:
        piece = bytes(rest[: min(size, 3)])
        del rest[: len(piece)]
        return piece

    return SimpleNamespace(recv=recv)


def test_what_is_sent_is_received() -> None:
    words = ["a", "", "\udcff\n", "é"]
    assert received(said(sent(words, b"\0data"))) == (words, b"\0data")
    assert awaited(said(b"..." + answered(b"{}", b"told\n"))) == (b"{}", b"told\n")
    assert awaited(said(b".!")) is None


@pytest.mark.parametrize(
    "text", [b"", b"0000", b"zzzzzzzz00000000", b"%08x00000000" % (MAX_REQUEST + 1), b"0000000900000000a"]
)
def test_a_request_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(WireError):
        received(said(text))


@pytest.mark.parametrize("text", [b"", b"?", b"=", b"=00000009000000000", b"=ffffffff00000000"])
def test_an_answer_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(WireError):
        awaited(said(text))
