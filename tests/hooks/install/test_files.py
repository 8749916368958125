"""
A settings file is replaced in one step, or not at all.
"""

import os
import stat
import subprocess
import sys

from pathlib import Path
from typing import Final

import pytest

from guardrails.hooks.install.files import Unusable, read, remove, write


ROOT: Final = Path(__file__).parents[3]
posix = pytest.mark.skipif(os.name == "nt", reason="of POSIX")


@posix
def test_mode_and_links_are_kept(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text("{}")
    target.chmod(0o640)
    link = tmp_path / "settings.json"
    link.symlink_to(target)
    write(link, "{ }", was="{}")
    assert link.is_symlink()
    assert target.read_text() == "{ }"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    remove(link, was="{ }", folder=False)
    assert link.is_symlink()
    assert not target.exists()


@posix
def test_a_link_that_leads_to_nothing_gets_its_target(tmp_path: Path) -> None:
    link = tmp_path / "settings.json"
    link.symlink_to(tmp_path / "later.json")
    assert read(link) is None
    write(link, "{}", was=None)
    assert (tmp_path / "later.json").read_text() == "{}"


def test_a_file_that_another_program_has_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("theirs")
    for was in (None, "ours"):
        with pytest.raises(Unusable, match="just changed"):
            write(path, "{}", was=was)
        with pytest.raises(Unusable, match="just changed"):
            remove(path, was=was or "", folder=True)
    assert [one.name for one in tmp_path.iterdir()] == ["settings.json"]
    assert path.read_text() == "theirs"


@pytest.mark.system
@posix
def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from pathlib import Path; from guardrails.hooks.install.files import write\n"
        f"write(Path({str(path)!r}), 'x' * 100_000, was='{{}}')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert "OSError" in ran.stderr
    assert path.read_text() == "{}"
    assert [one.name for one in tmp_path.iterdir()] == ["settings.json"]


@posix
def test_private_settings_stay_private(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    path.chmod(0o600)
    write(path, "{ }", was="{}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
