"""
The code of docs/sandbox.md, run as it stands, and its entries of servers.
"""

import re

from pathlib import Path

import pytest

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.mcp import read_servers
from guardrails.processes.sandbox import choose


PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text()


@pytest.mark.system
def test_the_example_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        choose("auto")
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    [block, said] = re.findall(r"```(?:python|text)\n([^$].*?)```", PAGE, re.DOTALL)
    exec(compile(block, "sandbox.md", "exec"), {})
    assert capsys.readouterr().out.replace("\n\n", "\n") == said


def test_the_entries_of_servers_are_read(tmp_path: Path) -> None:
    [entries] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "agent.toml").write_text(entries)
    found = {server.name: (server.network, server.sandbox) for server in read_servers(tmp_path / "agent.toml")}
    assert found == {"notes": (False, None), "files": (True, "auto")}
