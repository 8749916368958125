"""
`guardrails run` against a scripted server, in a folder of its own.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from guardrails.testing.scripted_openai import ScriptedOpenAI


Run = Callable[..., Result]


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name, text in {"NO_PROXY": "127.0.0.1", "COLUMNS": "200", "OPENAI_API_KEY": "sk-planted"}.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def run(workspace: Path) -> Run:
    """
    Runs a task in the workspace by the model of a server; without a server as the arguments say.
    """

    def made(server: ScriptedOpenAI | None, *arguments: object) -> Result:
        own = ["--workspace", workspace, "--model", "gpt-5-mini"]
        given = [] if server is None else ["--base-url", server.base_url, *own]
        return CliRunner().invoke(app, [*map(str, ["run", *given, *arguments])])

    return made
