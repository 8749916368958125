"""
What `guardrails mcp snippet CLIENT` prints is what the client's configuration file takes.
"""

import json
import sys
import tomllib

from pathlib import Path
from typing import Any, Final

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.mcp.proxy.options import options_of
from guardrails.mcp.proxy.snippets import CLIENTS, main, snippet

from .pages import pages


COMMAND: Final = ("npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "/a b")


def entry(client: str, text: str) -> tuple[str, dict[str, Any]]:
    """
    The name of the one server that *text* holds, and what is said of it.
    """
    kind = CLIENTS[client]
    (found,) = (tomllib.loads(text) if kind.toml else json.loads(text)).items()
    assert found[0] == kind.key
    ((name, said),) = found[1].items()
    return name, said


@pytest.mark.parametrize("client", list(CLIENTS))
def test_each_client_starts_the_server_guarded(client: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([client, "--policy", "strict", "--user=me", "--", *COMMAND]) == 0
    printed = capsys.readouterr()
    name, said = entry(client, printed.out)
    assert name == "filesystem"
    assert said["command"] == sys.executable
    assert said["args"] == ["-I", "-m", "guardrails", "mcp", "--policy=strict", "--user=me", "--", *COMMAND]
    assert said.get("type") == ("stdio" if client in ("claude-code", "vscode") else None)
    told = options_of(said["args"][4:])
    assert (told.command, told.policy, told.user) == (COMMAND, "strict", "me")
    assert CLIENTS[client].where in printed.err


@given(
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), min_size=1, max_size=4),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
)
@settings(max_examples=100, deadline=None)
def test_any_word_gets_there_as_it_is(command: list[str], name: str) -> None:
    for client in ("cursor", "codex"):
        called, said = entry(client, snippet(client, command, name=name))
        assert called == name
        assert said["args"][5:] == command


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["uvx", "mcp-server-git", "--repository", "x"], "git"),
        (["python3", "-m", "mcp_server_time"], "mcp_server_time"),
        (["node", "/srv/my tools/index.js"], "index"),
        (["/usr/bin/python3.12", "server.py"], "server"),
        (["C:\\tools\\weather-mcp.exe"], "weather"),
        (["npx", "-y"], "guarded"),
    ],
)
def test_a_server_has_the_name_of_its_program(command: list[str], name: str) -> None:
    assert entry("cursor", snippet("cursor", command))[0] == name


def test_paths_are_whole_since_a_client_starts_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text("version: 1\n")
    assert main(["zed", "--policy", "./p.yaml", "--store", "s.db", "--records", "r", "--name", "x", "--", "y"]) == 0
    name, said = entry("zed", capsys.readouterr().out)
    here = Path.cwd()
    assert name == "x"
    assert said["args"][4:7] == [f"--policy={here / 'p.yaml'}", f"--store={here / 's.db'}", f"--records={here / 'r'}"]


def test_without_a_command_there_is_room_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claude-desktop"]) == 0
    assert entry("claude-desktop", capsys.readouterr().out)[1]["args"][4:] == ["--", "YOUR-SERVER", "ITS-ARGUMENTS"]


def test_a_remote_server_is_named_by_its_host_and_keeps_its_key_in_a_variable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = ["--url", "https://example.com/mcp", "--header", "Authorization: Bearer ${NO_SUCH_TOKEN}"]
    assert main(["cursor", *said]) == 0
    name, found = entry("cursor", capsys.readouterr().out)
    assert name == "example-com"
    assert found["args"][4:] == ["--url=https://example.com/mcp", "--header=Authorization: Bearer ${NO_SUCH_TOKEN}"]


def test_a_variable_that_a_header_needs_is_handed_on_or_told(capsys: pytest.CaptureFixture[str]) -> None:
    far = ["--header", "Authorization: Bearer ${FAR_KEY}", "--url", "https://example.com/mcp"]
    assert main(["codex", *far]) == 0
    assert entry("codex", capsys.readouterr().out)[1]["env_vars"] == ["FAR_KEY"]
    assert main(["cursor", *far]) == 0
    printed = capsys.readouterr()
    assert "env_vars" not in printed.out
    assert "needs `FAR_KEY` in its environment" in printed.err
    assert main(["codex", "--", "server", "--header=${X}"]) == 0
    assert "env_vars" not in capsys.readouterr().out


def test_each_server_of_a_file_is_one_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"a": {"command": "x"}, "b-c": {"command": "y"}}}))
    assert main(["codex", "--config", str(servers)]) == 0
    found = tomllib.loads(capsys.readouterr().out)["mcp_servers"]
    assert {name: said["args"][4:] for name, said in found.items()} == {
        name: [f"--config={servers}", f"--server={name}"] for name in ("a", "b-c")
    }
    assert main(["zed", "--config", str(servers), "--server", "a"]) == 0
    assert entry("zed", capsys.readouterr().out)[0] == "a"


def test_the_pages_show_what_is_printed() -> None:
    for path, text in pages().items():
        assert path.read_text(encoding="utf-8") == text, "run: python -m tests.mcp.proxy.pages --write"


def test_help_is_given_behind_a_client_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zed", "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage")
    assert main(["zed", "--", "server", "--help"]) == 0
    assert entry("zed", capsys.readouterr().out)[1]["args"][-2:] == ["server", "--help"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["zed", "--config", "nothing.json"], "nothing.json"),
        ([], "Usage"),
        (["emacs"], "unknown client `emacs`: use claude-desktop, "),
        (["zed", "--nonsense", "1", "--", "x"], "unknown option `--nonsense`"),
        (["zed", "--policy"], "`--policy` needs a value"),
        (["zed", "--policy", "nonsense", "--", "x"], "no policy named `nonsense`"),
        (["zed", "--policy", "./nothing.yaml", "--", "x"], "nothing.yaml"),
        (["zed", "npx", "x"], "the server's command goes after `--`"),
        (["zed", "--", "\udcff"], "not UTF-8"),
    ],
)
def test_a_wrong_use_is_2_and_prints_nothing(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""
