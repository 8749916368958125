"""
Many servers of one file behind one budget.
"""

import json
import subprocess

from pathlib import Path
from typing import Any

import pytest

from guardrails.mcp.proxy.options import Options
from guardrails.mcp.proxy.servers import chosen, printed

from .test_stdio import PROXY, SERVER, Process


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "servers.json"
    servers = {
        "one": {"command": SERVER[0], "args": [*SERVER[1:], "x"], "env": {"SERVER_CODE": "4"}},
        "two": {"command": SERVER[0], "args": [SERVER[1]], "cwd": str(tmp_path)},
        "far": {"url": "https://example.com/mcp", "headers": {"A": "b"}},
    }
    path.write_text(json.dumps({"mcpServers": servers, "theme": "dark"}))
    return path


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run((*PROXY, *argv), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


@pytest.mark.system
def test_the_servers_of_a_file_share_one_budget(config: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nbudget: {max_calls: 2}\n")
    done = run("--config", str(config), "--policy", str(policy), "--store", str(tmp_path / "s.db"))
    made: dict[str, Any] = json.loads(done.stdout)["mcpServers"]
    assert made["far"]["args"][:4] == ["-I", "-m", "guardrails", "mcp"]
    assert "--server=far" in made["far"]["args"]
    started = []
    for name in ("one", "two"):
        # Not isolated: what is tried is this tree, wherever it is.
        command = made[name]["command"], *made[name]["args"][1:]
        assert "SERVER_CODE" not in json.dumps(made)
        started.append(Process((), (), whole=command))
    one, two = started
    try:
        assert not one.call("echo", {"n": 1}).get("isError")
        assert not two.call("echo", {"n": 2}).get("isError")
        assert "budget.max_calls" in one.call("echo", {"n": 3})["content"][0]["text"]
        assert "budget.max_calls" in two.call("echo", {"n": 4})["content"][0]["text"]
        assert (one.end(), two.end()) == (4, 0)
    finally:
        for each in started:
            each.stop()


def test_variables_of_the_environment_are_filled_in_when_a_server_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "servers.json"
    said = {"command": "${X_BIN:-serve}", "args": ["${X_KEY}", "${X_NONE}"], "env": {"K": "${env:X_KEY}"}}
    far = {"url": "https://example.com/${X_KEY}", "headers": {"Authorization": "Bearer ${X_KEY}"}}
    path.write_text(json.dumps({"mcpServers": {"near": said, "far": far}}))
    monkeypatch.setenv("X_KEY", "secret")
    assert "secret" not in printed(Options(config=str(path)))
    near = chosen(Options(config=str(path), server="near", store="s"))
    assert (near.command, near.environment) == (("serve", "secret", "${X_NONE}"), (("K", "secret"),))
    away = chosen(Options(config=str(path), server="far", store="s"))
    assert (away.url, away.headers) == ("https://example.com/secret", (("Authorization", "Bearer secret"),))
