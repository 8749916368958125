"""
Which files are read.
"""

import os

from pathlib import Path

import pytest

from guardrails.offline.transcripts.files import MANY, inputs


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def test_files_of_a_folder_come_in_the_order_of_their_names_without_hidden_ones(tmp_path: Path) -> None:
    put(tmp_path, "b.jsonl", "a.jsonl", ".hidden", "sub/c.jsonl", ".git/d.jsonl")
    found = inputs([str(tmp_path)])
    assert [Path(each.path).relative_to(tmp_path).as_posix() for each in found] == ["a.jsonl", "b.jsonl", "sub/c.jsonl"]
    assert all(each.found and each.folder is None for each in found)


def test_files_given_by_name_keep_their_order_and_are_read_once(tmp_path: Path) -> None:
    put(tmp_path, "b.jsonl", "a.jsonl")
    b, a = str(tmp_path / "b.jsonl"), str(tmp_path / "a.jsonl")
    assert [each.path for each in inputs([b, a, str(tmp_path), b])] == [b, a]


def test_a_file_is_read_however_the_way_to_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "a.jsonl")
    monkeypatch.chdir(tmp_path)
    for path in ("a.jsonl", "./a.jsonl", f"{tmp_path}//a.jsonl", f"{tmp_path}/./a.jsonl"):
        assert [each.path for each in inputs([path])] == [path]


def test_many_files_of_one_folder_are_one_source(tmp_path: Path) -> None:
    put(tmp_path, *(f"project/{n}.jsonl" for n in range(MANY + 1)), "few/1.jsonl")
    assert {each.folder for each in inputs([tmp_path])} == {"project", None}


def test_standard_input_and_a_pipe_are_inputs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    stdin, pipe = inputs(["-", tmp_path / "pipe"])
    assert (stdin.path, pipe.found) == ("-", False)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file or folder `.*nowhere`"):
        inputs([tmp_path / "nowhere"])
