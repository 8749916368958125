"""
A settings file gets our entries and loses them again, in one step, or stays as it is.
"""

import json
import os
import stat

from pathlib import Path
from typing import Any, Final

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.hooks import install as home
from guardrails.hooks.options import Options
from tests.tables import table


OURS: Final = {"type": "command", "command": "python3 -I -m guardrails hook --client=claude --policy=default"}
THEIRS: Final = {"type": "command", "command": "./mine.sh guardrails hook"}
WANTED: Final = {"PreToolUse": OURS, "Stop": OURS}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)
HANDLERS = st.lists(st.sampled_from([THEIRS, {"type": "http"}, 7]), min_size=1, max_size=3)
GROUPS = st.lists(
    st.fixed_dictionaries({home.HOOKS: HANDLERS}, optional={"matcher": st.just("Bash")}) | JSON, min_size=1
)
HOOKED = st.dictionaries(st.sampled_from(["PreToolUse", "Stop", "Other"]), GROUPS, max_size=3)
SETTINGS = st.dictionaries(st.text(max_size=6).filter(lambda key: key != home.HOOKS), JSON, max_size=4)


@given(SETTINGS, HOOKED)
def test_our_entries_are_taken_out_again_and_all_else_stays(settings: Any, hooks: Any) -> None:
    settings = {**settings, home.HOOKS: hooks} if hooks else settings
    there = home.with_ours(settings, WANTED)
    assert home.entries(there) == WANTED
    assert home.with_ours(there, WANTED) == there
    assert home.entries(home.with_ours(there, {"Stop": OURS})) == {"Stop": OURS}
    assert home.without(there) == settings


COMMANDS: Final = [line.split(": ", 1) for line in Path(__file__).with_name("commands.txt").read_text().splitlines()]


@table("whose, command", [*COMMANDS, ("theirs", ""), ("theirs", None)])
def test_a_plain_command_of_the_hook_is_ours_and_all_else_is_theirs(whose: str, command: Any) -> None:
    assert bool(home.words_of({"command": command})) is (whose == "ours")


def test_options_are_read_again_from_the_words_that_say_them() -> None:
    options = Options(client="codex", policy="/p/a b.yaml", user="it's me", observe=True)
    assert Options.of(options.words()) == options
    assert home.words_of({"command": " ".join(["python3", *home.START])}) == ["python3", *home.START]


@table(
    "text", ['{"a": 1,}', "// mine\n{}", "[]", "{'a': 1}", "\ufeff{}", "\ud800", '{"hooks": []}', '{"hooks": {"a": 1}}']
)
def test_a_file_that_a_client_would_not_read_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    content = text.encode(errors="surrogatepass")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=str(path)):
        home.install(path, WANTED)
    with pytest.raises(ValueError, match=str(path)):
        home.uninstall(path)
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [content]


@table("text", ['{"a": 1e400}', '{"a": "\\ud800"}'])
def test_what_could_not_be_written_again_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"JSON|surrogates"):
        home.install(path, WANTED)
    assert [one.read_text() for one in tmp_path.iterdir()] == [text]


@table("content", [b'{"b": 1e3,\r\n\t"a": "\xc3\xbc", "hooks": {"Stop": [ ]}}', b"{}", b"", None])
def test_a_file_is_put_back_byte_for_byte_or_is_gone_again(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "settings.json"
    if content is not None:
        path.write_bytes(content)
    for wanted in (WANTED, {"Stop": {**OURS, "timeout": 1}}):
        home.install(path, wanted)
        assert home.entries(home.read(path)) == wanted
    home.uninstall(path)
    assert [one.read_bytes() for one in tmp_path.iterdir()] == ([] if content is None else [content])
    path.unlink(missing_ok=True)


def test_settings_that_a_person_changed_in_between_stay(tmp_path: Path) -> None:
    path, backup = tmp_path / "settings.json", tmp_path / f"settings.json{home.BACKUP}"
    for changed in ({"a": True}, {"a": 1, "mine": 2}):
        path.write_text('{"a": 1}')
        home.install(path, WANTED)
        path.write_text(json.dumps({**home.read(path), **changed}))
        home.uninstall(path)
        assert (path.read_text(), backup.read_text()) == (f"{json.dumps(changed, indent=2)}\n", '{"a": 1}')
    backup.chmod(0o644)
    home.install(path, WANTED)
    assert (home.read(backup), stat.S_IMODE(backup.stat().st_mode)) == ({"a": 1, "mine": 2}, 0o600)


@pytest.mark.skipif(os.name == "nt", reason="of POSIX")
def test_mode_and_links_of_ones_own_settings_are_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "dotfiles" / "claude.json", tmp_path / "settings.json"
    target.parent.mkdir()
    target.write_text("{}")
    target.chmod(0o664)
    link.symlink_to(target)
    home.install(link, WANTED)
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in target.parent.iterdir()}
    assert modes == {target.name: 0o664, f"{target.name}{home.BACKUP}": 0o600}
    home.uninstall(link)
    assert [one.read_text() for one in target.parent.iterdir()] == ["{}"]
    assert (link.is_symlink(), stat.S_IMODE(target.stat().st_mode)) == (True, 0o664)


@table("linked", [".claude", ".claude/settings.json"])
def test_a_link_of_a_project_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: str) -> None:
    elsewhere, work = tmp_path / "elsewhere", tmp_path / linked.replace("/", "-")
    elsewhere.mkdir(exist_ok=True)
    (work / linked).parent.mkdir(parents=True)
    (work / linked).symlink_to(elsewhere)
    monkeypatch.chdir(work)
    with pytest.raises(ValueError, match="is not followed"):
        home.path_of("claude", "project")
    assert home.path_of("codex", "project") == work / ".codex/hooks.json"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "settings.json"
    path.write_text("{}")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        home.install(path, WANTED)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["{}"]
