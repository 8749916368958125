"""
The blocks of pages that have no test of their own, and what every page owes its reader.
"""

import re

from pathlib import Path
from typing import Any

import pytest

from docs.site.nav import written
from guardrails import Conversations, Policy
from guardrails.testing.scripted_openai import ScriptedOpenAI, Text
from tests.tables import table


BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = {page: path for page, path in written().items() if page.endswith(".md") and not page.startswith("project/")}
RUN = ("index.md", "architecture.md", "own-loop.md", "records.md")
"""Pages whose Python runs here, each as one program."""
POLICIES = ("coding-clis.md", "mcp/README.md")
"""Pages whose policies are loaded here."""


def blocks(page: str, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGES[page].read_text()) if found == language]


def whole(policy: str) -> str:
    """
    A policy file of which a page may show a part.
    """
    return policy if "version:" in policy else f"version: 1\n{policy}"


@table("page", RUN)
def test_the_code_of_a_page_runs_and_prints_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    said = None
    assert blocks(page, "python")
    for text in blocks(page, "yaml"):
        Path("policy.yaml").write_text(whole(text))
    for language, text in BLOCK.findall(PAGES[page].read_text()):
        if language == "text" and said is not None:
            assert said == text
        said = None
        if language == "python":
            exec(compile(text, page, "exec"), names)
            said = capsys.readouterr().out


@pytest.mark.system
@table("page", ["run.md"])
def test_the_code_of_a_page_runs_with_the_openai_client(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai = pytest.importorskip("openai")
    clients: list[Any] = []
    base: Any = openai.OpenAI

    class Client(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            clients.append(self)

    monkeypatch.setattr(openai, "OpenAI", Client)
    (tmp_path / page).mkdir()
    monkeypatch.chdir(tmp_path / page)
    with Conversations("agent.db") as kept:
        kept.start("trip-42", messages=[{"role": "user", "content": "a hotel"}])
    with ScriptedOpenAI(lambda request, n: Text("In Kyoto.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        names: dict[str, Any] = {}
        [text] = blocks(page, "python")
        exec(compile(text, page, "exec"), names)
        assert names["policy"].name == "default"
        for client in clients:
            client.close()


@table("page", POLICIES)
def test_the_policies_of_a_page_load(page: str, tmp_path: Path) -> None:
    found = blocks(page, "yaml")
    assert found
    for text in found:
        (tmp_path / "policy.yaml").write_text(whole(text))
        Policy.load(tmp_path / "policy.yaml")
