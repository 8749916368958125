"""
The pages of the clients: their commands are ones that there are, and their tables are those of the code.
"""

import re
import shlex

from pathlib import Path
from typing import Final

import pytest

from guardrails.hooks.install import main


FOLDER: Final = Path(__file__).parents[3] / "docs/hooks"
PAGES: Final = {"claude": "claude-code.md", "codex": "codex.md", "gemini": "gemini.md"}
every = pytest.mark.parametrize("client", list(PAGES))


def shown(client: str, home: Path) -> list[list[str]]:
    """
    The commands at the top of a client's page, each as its words; *home* stands for `~`.
    """
    text = (FOLDER / PAGES[client]).read_text(encoding="utf-8")
    block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert block is not None
    return [shlex.split(line.replace("~/", f"{home}/")) for line in block[1].splitlines()]


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
