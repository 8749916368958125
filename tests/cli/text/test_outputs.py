"""
What commands write is there whole or not at all.
"""

import os

from pathlib import Path

import pytest
import typer

from guardrails.cli.text.outputs import write_whole


def test_a_file_keeps_its_mode_and_what_leads_to_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept.html"
    kept.write_text("old")
    kept.chmod(0o640)
    (tmp_path / "link.html").symlink_to(kept)
    write_whole(tmp_path / "link.html", "new")
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("new", 0o640)
    assert (tmp_path / "link.html").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.html", "link.html"]


def test_text_that_cannot_be_written_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    kept = tmp_path / "kept.html"
    kept.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(kept, "half a pair: \ud800")
    assert kept.read_text() == "old"
    assert list(tmp_path.iterdir()) == [kept]


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_whole(Path(os.devnull), "text")
    assert not Path(os.devnull).is_file()


def test_a_folder_that_is_not_there_ends_the_command(tmp_path: Path) -> None:
    with pytest.raises(typer.Exit) as ended:
        write_whole(tmp_path / "nosuch" / "a.html", "text")
    assert ended.value.exit_code == 2
