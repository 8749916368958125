"""
The page of the clients: its commands are ones that there are.
"""

import re
import shlex

from pathlib import Path
from typing import Final

import pytest

from guardrails.hooks.install import main


PAGE: Final = (Path(__file__).parents[3] / "docs/coding-clis.md").read_text(encoding="utf-8")
every = pytest.mark.parametrize("client", ["claude", "codex", "gemini"])


def shown(client: str, home: Path) -> list[list[str]]:
    """
    The commands that begin with a client, each as its words; *home* stands for `~`.
    """
    [block] = [each for each in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if f"\n{client} " in each]
    return [shlex.split(line.replace("~/", f"{home}/")) for line in block.splitlines()]


@every
def test_the_three_commands_install_watch_and_report(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    install, watch, report = shown(client, tmp_path)
    assert install[:4] == ["guardrails", "hook", "install", client]
    assert main(install[2:]) == 0
    assert main(["uninstall", client]) == 0
    assert watch[0] == client
    assert report == ["guardrails", "report", install[-1]]
