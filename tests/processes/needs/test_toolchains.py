"""
What of a home programs are shown, and that nothing else of it is.
"""

import os

from pathlib import Path

from guardrails.processes.needs.toolchains import homes_of, shown_of


def shown(home: Path, *path: Path | str) -> list[str]:
    found = shown_of(str(home), os.pathsep.join(map(str, path)))
    return [str(Path(one).relative_to(home.resolve())) for one in found]


def folders(home: Path, *names: str) -> None:
    for name in names:
        (home / name).mkdir(parents=True)


def test_a_path_outside_of_the_home_shows_nothing_of_it(tmp_path: Path) -> None:
    folders(tmp_path, ".ssh", ".config", "projects", "lib")
    assert shown(tmp_path, "/usr/bin", "/bin", "", "relative") == []


def test_a_prefix_is_shown_whole_and_a_folder_of_programs_alone_without_what_lies_beside_it(tmp_path: Path) -> None:
    folders(tmp_path, "miniconda3/bin", "miniconda3/lib", ".cargo/bin", "go/bin", "go/src")
    (tmp_path / ".cargo" / "credentials.toml").write_text("token")
    path = [tmp_path / "miniconda3/bin", tmp_path / ".cargo/bin", tmp_path / "go/bin", tmp_path / "gone/bin"]
    assert shown(tmp_path, *path) == [".cargo/bin", "go/bin", "miniconda3"]


def test_programs_elsewhere_are_shown_and_neither_the_system_nor_the_root(tmp_path: Path) -> None:
    folders(tmp_path, "home", "work/.venv/bin", "work/.venv/lib", "work/secret")
    found = shown_of(str(tmp_path / "home"), f"{tmp_path}/work/.venv/bin:/usr/local/bin:/bin:/:{tmp_path}")
    assert found == (str(tmp_path / "work/.venv"),)


def test_of_the_home_itself_and_of_its_shared_folders_only_programs_are_shown(tmp_path: Path) -> None:
    folders(tmp_path, "bin", "lib", ".local/bin", ".local/lib", ".local/share/keyrings", ".local/state")
    assert shown(tmp_path, tmp_path, tmp_path / "bin", tmp_path / ".local/bin") == [".local/bin", ".local/lib", "bin"]


def test_links_are_followed_to_the_prefix_of_what_they_start(tmp_path: Path) -> None:
    folders(tmp_path, ".local/bin", "apps/tool/bin", "apps/tool/lib", "secrets")
    (tmp_path / "apps/tool/bin/tool").write_text("")
    (tmp_path / ".local/bin/tool").symlink_to(tmp_path / "apps/tool/bin/tool")
    (tmp_path / ".local/bin/loop").symlink_to(tmp_path / ".local/bin/loop")
    (tmp_path / ".local/bin/out").symlink_to("/usr/bin/env")
    assert shown(tmp_path, tmp_path / ".local/bin") == [".local/bin", "apps/tool"]


def test_managers_are_shown_with_what_they_start(tmp_path: Path) -> None:
    folders(tmp_path, ".pyenv/shims", ".pyenv/versions/3.12/bin", ".rustup/toolchains", ".cargo/bin")
    assert shown(tmp_path, tmp_path / ".pyenv/shims", tmp_path / ".cargo/bin") == [".cargo/bin", ".pyenv", ".rustup"]
    assert homes_of(str(tmp_path)) == {
        "RUSTUP_HOME": str(tmp_path / ".rustup"),
        "PYENV_ROOT": str(tmp_path / ".pyenv"),
    }


def test_what_pip_installed_for_the_user_is_found_from_another_home(tmp_path: Path) -> None:
    folders(tmp_path, ".local/lib/python3.11/site-packages", ".local/lib/secret", ".local/share/keyrings")
    assert shown(tmp_path, "/usr/bin") == [".local/lib/python3.11"]
    assert homes_of(str(tmp_path)) == {"PYTHONUSERBASE": str(tmp_path / ".local")}
