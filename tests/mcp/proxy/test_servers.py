"""
Many servers of one file behind one budget.
"""

import json
import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest

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
    return subprocess.run(  # noqa: S603
        (*PROXY, *argv), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_the_servers_of_a_file_share_one_budget(config: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nbudget: {max_calls: 2}\n")
    done = run("--config", str(config), "--policy", str(policy), "--store", str(tmp_path / "s.db"))
    made: dict[str, Any] = json.loads(done.stdout)["mcpServers"]
    assert made["far"]["args"][-6:-4] == ["--server", "far"]
    started = []
    for name in ("one", "two"):
        command = made[name]["command"], *made[name]["args"]
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


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--config", "no-such.json"), "no-such.json"),
        (("--config", "CONFIG", "--server", "three"), "has no server `three`; it has `one`, `two`, `far`"),
        (("--server", "one", "--", "true"), "`--config FILE`"),
        (("--config", "CONFIG", "--", "true"), "give one of them"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(config: Path, argv: tuple[str, ...], said: str) -> None:
    done = run(*(str(config) if word == "CONFIG" else word for word in argv))
    assert done.returncode == 2
    assert said in done.stderr
    assert sys.executable not in done.stdout
