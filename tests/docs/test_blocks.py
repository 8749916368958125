"""
The blocks of pages that have no test of their own, and what every page owes its reader.
"""

import re

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from docs.site.nav import DOCS, written
from guardrails import Conversations, Policy
from guardrails.testing.scripted_openai import ScriptedOpenAI, Text


BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = {page: path for page, path in written().items() if page.endswith(".md") and not page.startswith("project/")}
RUN = ("index.md", "internals.md", "records.md")
"""Pages whose Python runs here, each as one program."""
GUARD_PAGES = {f"guards/{path.name}" for path in (DOCS / "guards").glob("*.md") if path.stem != "write"}
POLICIES = ("hooks/answers.md", "mcp/README.md")
"""Pages whose policies are loaded here."""


def blocks(page: str, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGES[page].read_text()) if found == language]


def whole(policy: str) -> str:
    """
    A policy file of which a page may show a part.
    """
    return policy if "version:" in policy else f"version: 1\n{policy}"


@pytest.mark.parametrize("page", RUN)
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
            exec(compile(text, page, "exec"), names)  # noqa: S102
            said = capsys.readouterr().out


@pytest.mark.parametrize("page", ["prices.md", "run.md"])
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
    monkeypatch.chdir(tmp_path)
    with Conversations("agent.db") as kept, kept.start("trip-42", messages=[{"role": "user", "content": "a hotel"}]):
        pass
    with ScriptedOpenAI(lambda request, n: Text("In Kyoto.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        names: dict[str, Any] = {}
        [text] = blocks(page, "python")
        exec(compile(text, page, "exec"), names)  # noqa: S102
        assert names["policy"].name == "default"
        for client in clients:
            client.close()


@pytest.mark.parametrize("page", POLICIES)
def test_the_policies_of_a_page_load(page: str, tmp_path: Path) -> None:
    found = blocks(page, "yaml")
    assert found
    for text in found:
        (tmp_path / "policy.yaml").write_text(whole(text))
        Policy.load(tmp_path / "policy.yaml")


def test_every_block_of_json_and_yaml_of_every_page_can_be_read() -> None:
    for page in PAGES:
        for text in blocks(page, "yaml"):
            assert list(yaml.safe_load_all(text)), page


def test_the_python_of_every_page_is_run_by_a_test_that_names_the_page() -> None:
    runs = re.compile(r"\bexec\(|follow\(|subprocess|shown_and_printed|followed")
    tests = [path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("*.py")]
    running = "\n".join(text for text in tests if runs.search(text))
    named = {page: PurePosixPath(page).name for page in PAGES if blocks(page, "python") and page not in GUARD_PAGES}
    assert {page for page, name in named.items() if name not in running} == set()


def test_the_readme_and_the_pages_of_guards_have_their_own_tests() -> None:
    assert '"README.md"' in (Path(__file__).parents[1] / "test_readme.py").read_text(encoding="utf-8")
    assert 'glob("*.md")' in Path(__file__).with_name("test_guards.py").read_text(encoding="utf-8")
