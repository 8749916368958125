"""
The commands `guardrails hook install`, `uninstall` and `status`, in a home of their own.
"""

import json
import sys

from pathlib import Path
from typing import Any, Final

import pytest

from guardrails.hooks.clients import CLIENTS
from guardrails.hooks.install import HOMES, TIMEOUT_S, main
from tests.hooks.driven import ROOT
from tests.tables import table


pytestmark = pytest.mark.system


FILES: Final = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
every = table("client", list(HOMES))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    for name in (*(home.variable for home in HOMES.values()), "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "executable", str(interpreter(tmp_path / "bin" / "python3", "")))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def interpreter(path: Path, options: str) -> Path:
    """
    An interpreter in *path* that has this tree installed, whatever another one has; with `-S` it has nothing.
    """
    path.parent.mkdir()
    place = "" if options == "-S" else f"PYTHONPATH={ROOT}"
    path.write_text(f'#!/bin/sh\n[ "$1" = -I ] && shift\n{place} exec {sys.executable} -P {options} "$@"\n')
    path.chmod(0o755)
    return path


def files(*folders: Path) -> dict[str, bytes | None]:
    """
    Every file and folder below *folders*, but for the states of sessions.
    """
    found = [path for folder in folders for path in folder.rglob("*") if ".local" not in path.parts]
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


def commands(path: Path) -> set[str]:
    hooks = json.loads(path.read_text())["hooks"]
    return {handler["command"] for groups in hooks.values() for group in groups for handler in group["hooks"]}


@every
def test_the_hook_is_installed_for_each_event_and_taken_out_again(client: str, home: Path) -> None:
    local = [(Path.cwd(), FILES[client].replace(".json", ".local.json"), ["--local"])] if client == "claude" else []
    for folder, file, option in ((home, FILES[client], []), (Path.cwd(), FILES[client], ["--project"]), *local):
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        before = files(home, Path.cwd())
        assert main(["install", client, *option]) == 0
        hooks = json.loads(path.read_text())["hooks"]
        assert set(hooks) == set(CLIENTS[client].kinds)
        handler = hooks["SessionStart"][0]["hooks"][0]
        assert handler["timeout"] == (TIMEOUT_S * 1_000 if client == "gemini" else TIMEOUT_S)
        assert main(["install", client, *option, "--observe", "--policy", "strict"]) == 0
        assert main(["uninstall", client, *option]) == 0
        assert files(home, Path.cwd()) == before


def test_options_are_in_the_command_and_their_paths_are_whole(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (Path.cwd() / "own.yaml").write_text("version: 1\nextends: default\n")
    said = ["--policy", "./own.yaml", "--store", "s.db", "--records", "r.jsonl", "--user", "it's me", "--tenant", "t"]
    assert main(["install", "claude", "--observe", *said]) == 0
    [command] = commands(home / FILES["claude"])
    there = {"policy": "own.yaml", "store": "s.db", "records": "r.jsonl"}
    paths = " ".join(f"--{name}={Path.cwd() / file}" for name, file in there.items())
    start = f"{sys.executable} -I -m guardrails hook --client=claude"
    assert command == f"""{start} {paths} '--user=it'"'"'s me' --tenant=t --observe"""
    assert f"records: {Path.cwd() / 'r.jsonl'}" in capsys.readouterr().out
    assert main(["install", "claude"]) == 0
    assert commands(home / FILES["claude"]) == {f"{start} --policy=default"}
    assert "records: none" in capsys.readouterr().out


def test_the_text_to_put_in_by_hand_is_shown_for_a_file_with_comments(home: Path, capsys: Any) -> None:
    path = home / FILES["claude"]
    path.parent.mkdir()
    path.write_text('// mine\n{"a": 1}')
    assert main(["install", "claude"]) == 2
    said = capsys.readouterr().err
    assert f"{path}: " in said
    assert "line 1 column 1" in said
    path.write_text(said.partition("by hand:\n")[2])
    assert set(json.loads(path.read_text())["hooks"]) == set(CLIENTS["claude"].kinds)
    assert status(capsys, "claude")[1]["claude user"]["problems"] == []


USES = [line.split(" => ") for line in Path(__file__).with_name("wrong_uses.txt").read_text().splitlines()]


@table("words, said", USES)
def test_a_wrong_use_is_2_and_changes_nothing(words: str, said: str, home: Path, capsys: Any) -> None:
    (home.parent / "wrong.yaml").write_text("version: 1\nno_such_key: 1\n")
    assert main(words.split()) == 2
    assert not files(home, Path.cwd())
    told = capsys.readouterr().err
    assert told.startswith(f"guardrails hook {words.split(maxsplit=1)[0]}: ")
    assert said in told


def test_an_interpreter_without_it_is_refused(home: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys, "executable", str(interpreter(tmp_path / "bare" / "python3", "-S")))
    assert main(["install", "claude"]) == 2
    assert "the hook does not answer" in capsys.readouterr().err
    assert not files(home)


def status(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["status", "--json", *argv])
    return code, {f"{one['client']} {one['place']}": one for one in json.loads(capsys.readouterr().out)}


def test_status_runs_the_command_and_tells_its_policy_and_records(home: Path, capsys: Any) -> None:
    main(["install", "claude", "--policy", "strict", "--records", "r.jsonl", "--observe"])
    code, found = status(capsys)
    assert [name for name, one in found.items() if one["installed"]] == ["claude user"]
    one = found["claude user"]
    assert (code, len(found), one["problems"]) == (0, 7, [])
    assert (one["installed"], one["answers"], one["policy"], one["observe"]) == (True, True, "strict", True)
    assert one["records"] == str(Path.cwd() / "r.jsonl")
    assert main(["status", "claude"]) == 0
    assert "installed, policy: strict, observe: True" in capsys.readouterr().out


def test_status_tells_a_command_that_is_gone_and_entries_that_are_missing(home: Path, capsys: Any) -> None:
    main(["install", "gemini"])
    path = home / FILES["gemini"]
    settings = json.loads(path.read_text().replace(sys.executable, "/nowhere/python3"))
    del settings["hooks"]["BeforeTool"]
    path.write_text(json.dumps(settings))
    code, found = status(capsys, "gemini")
    assert code == 1
    assert found["gemini user"]["answers"] is False
    assert "/nowhere/python3" in found["gemini user"]["problems"][0]
    assert "install it again" in found["gemini user"]["problems"][1]


def test_status_does_not_start_a_program_that_a_folder_names(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["install", "claude", "--project"])
    path, trap = Path(FILES["claude"]), Path("python3").absolute()
    path.write_text(path.read_text().replace(sys.executable, str(trap)))
    trap.write_text("#!/bin/sh\ntouch sprung\n")
    trap.chmod(0o755)
    code, found = status(capsys, "claude")
    assert (code, found["claude project"]["answers"]) == (1, None)
    assert not Path("sprung").exists()
    path.write_text(path.read_text().replace("--policy=", r"--policy=\u001b[2J\u009b"))
    assert main(["status", "claude"]) == 1
    assert {"\x1b", "\x9b"}.isdisjoint(capsys.readouterr().out)
