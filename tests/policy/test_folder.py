"""
Policies found by name and by path.
"""

import os

from pathlib import Path

import pytest

from guardrails.core.values.errors import PolicyError
from guardrails.policy.file import find, shipped
from guardrails.policy.reload import is_name
from tests.tables import table


@table("text", ["", "./default", "default.yaml", "a/b", "..", "a\\b", "default\n", "a b"])
def test_anything_else_is_a_path(text: str) -> None:
    assert not is_name(text)


def test_an_installed_package_looks_inside_itself_only(tmp_path: Path) -> None:
    package = tmp_path / "guardrails"
    beside, inside = tmp_path / "policies", package / "_policies"
    beside.mkdir()
    package.mkdir()

    assert shipped(package) == beside

    inside.mkdir()

    assert shipped(package) == inside


def test_a_name_is_never_looked_for_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text("version: 1\n")
    (tmp_path / "strict.yaml").write_text("version: 1\nmode: off\n")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "mine.yaml").write_text("version: 1\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(PolicyError) as caught:
        find("mine")

    assert str(caught.value) == (
        "no policy named `mine`; there are `agent`, `default`, `observe`, `shell`, `strict`; "
        "a file is written as a path, `./mine.yaml`"
    )
    assert find("strict") == shipped() / "strict.yaml"
    assert find("./mine.yaml") == Path("mine.yaml")
    assert find(Path("mine.yaml")) == Path("mine.yaml")


@table("name", ["./nowhere.yaml", "", ".", "/", "a\0b.yaml", "x" * 5_000 + ".yaml"])
def test_a_path_that_is_no_file_is_refused(name: str) -> None:
    with pytest.raises(PolicyError, match="no policy file"):
        find(name)


def test_a_pipe_or_device_is_no_policy_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")

    for path in (tmp_path / "pipe.yaml", Path(os.devnull)):
        with pytest.raises(PolicyError, match="no policy file"):
            find(path)
