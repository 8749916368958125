"""
A settings file gets our entries and loses them again, in one step, or stays as it is.
"""

import json
import os
import stat
import subprocess
import sys

from pathlib import Path
from typing import Any, Final

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.hooks.install.settings import BACKUP, HOOKS, Unusable, entries, read, with_ours, without, write
from tests.tables import table


ROOT: Final = Path(__file__).parents[3]
posix = pytest.mark.skipif(os.name == "nt", reason="of POSIX")
OURS: Final = {"type": "command", "command": "guardrails hook --client=claude --policy=default", "timeout": 30}
OTHER: Final = {**OURS, "command": "guardrails hook --client=claude --policy=strict"}
THEIRS: Final = {"type": "command", "command": "./mine.sh guardrails hook"}
WANTED: Final = {"PreToolUse": OURS, "Stop": OURS}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)
HANDLERS = st.lists(st.sampled_from([THEIRS, {"type": "http"}, 7]), min_size=1, max_size=3)
GROUPS = st.lists(st.fixed_dictionaries({HOOKS: HANDLERS}, optional={"matcher": st.just("Bash")}) | JSON, max_size=3)
HOOKED = st.dictionaries(st.sampled_from(["PreToolUse", "Stop", "Other"]), GROUPS, max_size=3)
SETTINGS = st.dictionaries(st.text(max_size=6).filter(lambda key: key != HOOKS), JSON, max_size=4)


@given(SETTINGS, HOOKED)
def test_what_is_put_in_is_taken_out_again_and_all_else_stays(settings: Any, hooks: Any) -> None:
    settings = {**settings, HOOKS: hooks} if hooks else settings
    there = with_ours(settings, WANTED)
    assert {entry.event: entry.handler for entry in entries(there)} == WANTED
    assert with_ours(there, WANTED) == there
    other = with_ours(there, {"Stop": OTHER})
    assert [(entry.event, entry.handler) for entry in entries(other)] == [("Stop", OTHER)]
    for found in (without(there), without(other)):
        # An event without a group of anybody says nothing.
        assert {**found, HOOKS: full(found)} == {**settings, HOOKS: full(settings)}


def full(settings: Any) -> dict[str, Any]:
    return {event: groups for event, groups in settings.get(HOOKS, {}).items() if groups}


@table("hooks", [[], "none", {"Stop": {}}, {"PreToolUse": "x"}])
def test_what_is_in_the_way_is_told_and_not_replaced(hooks: Any) -> None:
    with pytest.raises(Unusable, match=r"is not an (object|array)"):
        with_ours({HOOKS: hooks}, WANTED)


@table("text", ['{"a": 1,}', "// mine\n{}", "[]", "{'a': 1}", "\ufeff{}", "\ud800"])
def test_what_is_no_plain_json_object_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(Unusable, match=str(path)):
        read(path)


def test_a_file_that_was_there_is_put_back_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    content = '{"b": 1e3,\r\n\t"a": "\u00fc", "hooks": {"Stop": [ ]}}'.encode()
    path.write_bytes(content)
    for wanted in (WANTED, {"Stop": OTHER}):
        file = read(path)
        write(file, with_ours(file.settings, wanted))
    file = read(path)
    assert b"\r\n\t" in path.read_bytes(), "its layout is kept as far as it shows one"
    write(file, without({**file.settings, HOOKS: {"Stop": []}}))
    assert [one.name for one in tmp_path.iterdir()] == ["settings.json"]
    assert path.read_bytes() == content


def test_settings_that_a_person_changed_in_between_stay_and_the_copy_too(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"a": 1}')
    file = read(path)
    write(file, with_ours(file.settings, WANTED))
    path.write_text(json.dumps({**read(path).settings, "mine": 2}))
    file = read(path)
    write(file, without(file.settings))
    assert read(path).settings == {"a": 1, "mine": 2}
    assert (tmp_path / f"settings.json{BACKUP}").read_text() == '{"a": 1}'


@posix
def test_mode_and_links_are_kept(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text("{}")
    target.chmod(0o640)
    link = tmp_path / "settings.json"
    link.symlink_to(target)
    write(read(link), {"a": 1})
    assert link.is_symlink()
    assert json.loads(target.read_text()) == {"a": 1}
    assert [stat.S_IMODE(one.stat().st_mode) for one in target.parent.iterdir()] == [0o640, 0o640]


@posix
def test_a_link_that_leads_to_nothing_gets_its_target(tmp_path: Path) -> None:
    link = tmp_path / "settings.json"
    link.symlink_to(tmp_path / "later.json")
    write(read(link), {"a": 1})
    assert read(tmp_path / "later.json").settings == {"a": 1}


def test_a_file_that_another_program_has_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    nothing = read(path)
    path.write_text('{"theirs": 1}')
    with pytest.raises(Unusable, match="just changed"):
        write(nothing, {"a": 1})
    assert [one.name for one in tmp_path.iterdir()] == ["settings.json"]
    assert path.read_text() == '{"theirs": 1}'


@pytest.mark.system
@posix
def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from pathlib import Path; from guardrails.hooks.install.settings import read, write\n"
        f"write(read(Path({str(path)!r})), {{'a': 'x' * 100_000}})"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert "OSError" in ran.stderr
    assert path.read_text() == "{}"
    assert not [one.name for one in tmp_path.iterdir() if one.name.startswith(".")]
