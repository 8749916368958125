"""
The commands `guardrails hook install`, `uninstall` and `status`, in a home of their own.
"""

import json
import os
import subprocess
import sys

from pathlib import Path
from typing import Any, Final

import pytest

from guardrails.hooks.clients import CLIENTS as READERS
from guardrails.hooks.install.places import CLIENTS, TIMEOUT
from guardrails.hooks.install.run import main
from guardrails.hooks.install.settings import entries, read
from guardrails.hooks.install.switches import _snake, trust_hash


pytestmark = pytest.mark.system


ROOT: Final = Path(__file__).parents[3]
FILES: Final = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
VARIABLES: Final = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "XDG_STATE_HOME",
    "GEMINI_CLI_TRUST_WORKSPACE",
)
every = pytest.mark.parametrize("client", list(CLIENTS))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    program = tmp_path / "bin" / "python3"
    program.parent.mkdir()
    # As an interpreter that has this tree installed, whatever another one has.
    program.write_text(f'#!/bin/sh\n[ "$1" = -I ] && shift\nPYTHONPATH={ROOT} exec {sys.executable} -P "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def files(*folders: Path) -> dict[str, bytes | None]:
    """
    Every file and folder below *folders*.
    """
    found = [path for folder in folders for path in folder.rglob("*")]
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


def commands(path: Path) -> set[str]:
    hooks = json.loads(path.read_text())["hooks"]
    return {handler["command"] for groups in hooks.values() for group in groups for handler in group["hooks"]}


@every
@pytest.mark.parametrize("place", ["user", "project"])
def test_a_file_that_was_not_there_is_gone_again(client: str, place: str, home: Path) -> None:
    option = [] if place == "user" else ["--project"]
    before = files(home, Path.cwd())
    assert main(["install", client, *option]) == 0
    path = (home if place == "user" else Path.cwd()) / FILES[client]
    assert set(json.loads(path.read_text())["hooks"]) == set(CLIENTS[client].events)
    assert main(["install", client, *option]) == 0
    assert main(["uninstall", client, *option]) == 0
    assert files(home, Path.cwd()) == {**before, str(path.parent): None}


@every
def test_a_file_that_was_there_is_put_back_as_it_was(client: str, home: Path) -> None:
    path = home / FILES[client]
    path.parent.mkdir()
    before = files(home)
    main(["install", client])
    main(["uninstall", client])
    assert files(home) == before
    path.write_bytes(b'{\r\n\t"hooks": {"Mine": []}, "x": 1e3\r\n}')
    before = files(home)
    assert main(["install", client, "--observe", "--policy", "strict"]) == 0
    assert files(home) != before
    assert main(["uninstall", client]) == 0
    assert files(home) == before


@every
def test_every_event_that_is_asked_for_is_one_that_the_hook_reads(client: str) -> None:
    events = CLIENTS[client].events
    assert set(READERS[client].EVENTS) | {"SessionStart"} == set(events)


@every
def test_a_handler_has_the_clients_own_time(client: str, home: Path) -> None:
    main(["install", client])
    handler = json.loads((home / FILES[client]).read_text())["hooks"][CLIENTS[client].events[-1]][0]["hooks"][0]
    assert handler["timeout"] == (TIMEOUT * 1_000 if client == "gemini" else TIMEOUT)
    assert handler["type"] == "command"


def test_options_are_in_the_command_and_their_paths_are_whole(home: Path) -> None:
    (Path.cwd() / "own.yaml").write_text("version: 1\nextends: default\n")
    said = ["--policy", "./own.yaml", "--store", "s.db", "--records", "r.jsonl", "--user", "it's me", "--tenant", "t"]
    assert main(["install", "claude", "--observe", *said]) == 0
    (command,) = commands(home / FILES["claude"])
    here = Path.cwd()
    assert command == (
        f"{sys.executable} -I -m guardrails hook --client=claude --policy={here / 'own.yaml'} --store={here / 's.db'} "
        f"--records={here / 'r.jsonl'} '--user=it'\"'\"'s me' --tenant=t --observe"
    )
    assert main(["install", "claude"]) == 0
    assert commands(home / FILES["claude"]) == {
        f"{sys.executable} -I -m guardrails hook --client=claude --policy=default"
    }


@pytest.mark.parametrize("policy", ["nothing_like_it", "./nothing.yaml", "./wrong.yaml"])
def test_a_policy_that_cannot_be_used_is_not_installed(
    policy: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (Path.cwd() / "wrong.yaml").write_text("version: 1\nno_such_key: 1\n")
    assert main(["install", "claude", "--policy", policy]) == 2
    assert not files(home)
    assert capsys.readouterr().err.startswith("guardrails hook install: ")


def test_local_settings_are_claudes_alone(home: Path) -> None:
    assert main(["install", "claude", "--local"]) == 0
    assert list(commands(Path(".claude/settings.local.json")))
    assert main(["uninstall", "claude", "--local"]) == 0
    assert main(["install", "codex", "--local"]) == 2
    assert list(files(home, Path.cwd())) == [str(Path.cwd() / ".claude")]


@pytest.mark.parametrize(
    ("command", "text"),
    [(command, text) for command in ("install", "uninstall") for text in ('{"a": 1', "{'a': 1}", '// mine\n{"a": 1}')]
    + [("install", "[]")],
)
def test_a_file_that_cannot_be_edited_is_left_alone(
    command: str, text: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / FILES["claude"]
    path.parent.mkdir()
    path.write_text(text)
    assert main([command, "claude"]) == 2
    assert path.read_text() == text
    assert f"{path}: line 1, column " in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv", [["install"], ["install", "cursor"], ["uninstall"], ["status", "x"], ["install", "claude", "--x"]]
)
def test_a_wrong_use_is_2_and_changes_nothing(argv: list[str], home: Path) -> None:
    assert main(argv) == 2
    assert not files(home, Path.cwd())


def test_an_interpreter_that_does_not_find_the_library_by_itself_is_refused(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    python = str(next(path for path in (tmp_path / "bare").glob("*/python*") if path.is_file()))
    assert main(["install", "claude"], python=python) == 2
    assert "does not find guardrails" in capsys.readouterr().err
    assert not files(home)


# Status


def status(capsys: pytest.CaptureFixture[str], *argv: str, python: str | None = None) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["status", "--json", *argv], python=python)
    return code, {f"{one['client']} {one['place']}": one for one in json.loads(capsys.readouterr().out)}


def test_status_of_nothing_is_0(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = status(capsys)
    assert code == 0
    assert list(found) == [
        "claude user",
        "claude project",
        "claude local",
        "codex user",
        "codex project",
        "gemini user",
        "gemini project",
    ]
    assert not any(one["installed"] for one in found.values())
    assert main(["status"]) == 0


def test_status_runs_the_command_and_tells_its_policy(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["install", "claude", "--policy", "strict", "--observe"])
    code, found = status(capsys, "claude")
    one = found["claude user"]
    assert (code, one["problems"]) == (0, [])
    assert (one["installed"], one["answers"], one["policy"], one["observe"]) == (True, True, "strict", True)
    assert not (home / ".local").exists()
    assert main(["status", "claude"]) == 0
    assert "observes  strict" in capsys.readouterr().out


def test_status_tells_a_command_that_is_gone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["install", "gemini"])
    path = home / FILES["gemini"]
    path.write_text(path.read_text().replace(sys.executable, "/nowhere/python3"))
    code, found = status(capsys, "gemini")
    assert code == 1
    assert found["gemini user"]["answers"] is False
    assert found["gemini user"]["problems"] == ["/nowhere/python3 is gone: install it again"]


def test_status_tells_whether_codex_trusts_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["install", "codex"])
    path, config = home / FILES["codex"], home / ".codex/config.toml"
    _, found = status(capsys, "codex")
    assert found["codex user"]["problems"][0].startswith("not trusted, so that Codex skips it: SessionStart, ")
    ours = list(entries(read(path).settings))
    state = {f"{path}:{_snake(entry.event)}:0:0": trust_hash(entry) for entry in ours}
    config.write_text("".join(f'[hooks.state."{key}"]\ntrusted_hash = "{kept}"\n' for key, kept in state.items()))
    assert status(capsys, "codex")[1]["codex user"]["problems"] == []
    main(["install", "codex", "--observe"])
    assert status(capsys, "codex")[1]["codex user"]["problems"][0].startswith("changed since it was trusted")
    config.write_text(config.read_text() + "enabled = false\n")
    assert status(capsys, "codex")[1]["codex user"]["problems"][1].startswith(
        "switched off in `/hooks` of Codex: Stop;"
    )


def test_the_sum_by_which_codex_trusts_is_the_one_that_codex_computes() -> None:
    # Both were told by `hooks/list` of the app-server of Codex CLI 0.169.0.
    command = "-I -m guardrails hook --client=codex --policy=default"
    handlers = [
        {"type": "command", "command": f"/opt/{one}/python3 {command}", "timeout": 30} for one in ("p\u00fcthon", "py")
    ]
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [handlers[0]]}], "Stop": [{"hooks": [handlers[1]]}]}
    found = [trust_hash(entry) for entry in entries({"hooks": hooks})]
    assert found == [
        "sha256:24b46f03ef40c219d5cd0662fd0c493220064968d0a73260fe2a376cdd31f665",
        "sha256:8f5423998817dcf61415f726fa84f4d6ec9a6d92fbbf2279b58cc373a6212591",
    ]


# The program


def test_the_door_leads_to_the_commands(home: Path) -> None:
    def run(*argv: str) -> "subprocess.CompletedProcess[str]":
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-m", "guardrails", "hook", *argv], capture_output=True, text=True, check=False, env=env
        )

    assert "install|uninstall|status" in run("--help").stdout
    assert run("install", "nobody").returncode == 2
    assert run("status", "claude").returncode == 0
    assert run("install", "claude").returncode == 0
    assert (home / FILES["claude"]).is_file()
