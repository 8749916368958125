"""
Readers that other packages add, from a distribution that is installed.
"""

import importlib
import json
import re
import sys

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from guardrails.offline.transcripts import Report, open_calls
from guardrails.offline.transcripts.files import added_formats
from tests.tables import table


PAGE = Path(__file__).parents[3] / "docs" / "extend.md"
(CODE,) = [text for text in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "Format(" in text]
"""The example of the page."""
FILE = Path(__file__).parent / "copilot_cli.jsonl"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """
    Puts one module and its entry point where an installer would.
    """
    info = tmp_path / "their_copilot-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-copilot\nVersion: 1.0\n")

    def put(code: str, name: str = "COPILOT") -> None:
        (tmp_path / "their_copilot.py").write_text(code)
        (info / "entry_points.txt").write_text(f"[guardrails.readers]\ncopilot = their_copilot:{name}\n")
        forget()

    def forget() -> None:
        sys.modules.pop("their_copilot", None)
        importlib.invalidate_caches()
        added_formats.cache_clear()

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield put
    forget()


def run(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "1000"}).invoke(app, [*map(str, arguments)])


def test_the_example_reads_the_calls_of_a_session_and_of_its_agents(install: Install, tmp_path: Path) -> None:
    install(CODE)
    report = Report()
    calls = list(open_calls(FILE, report))
    assert [(c.session_id, c.call_index, c.tool, c.turn, c.is_error, c.duration_ms, c.tokens_out) for c in calls] == [
        ("cop-1", 0, "view", 1, True, 200, 401),
        ("cop-1", 1, "task", 1, False, 1900, None),
        ("cop-1/t2", 0, "grep", 1, False, 300, 7),
        ("cop-1", 2, "bash", 2, None, None, 8),
    ]
    assert (calls[0].error_type, calls[0].result) == ("not_found", "Path does not exist")
    assert report.notices == [f"`{FILE}`: 1 of 4 calls has no result"]
    assert json.loads(run("report", FILE, "--json").stdout)["calls"] == 4
    assert json.loads(run("replay", "default", FILE, "--json").stdout)["total"]["calls"] == 4
    assert "no failed call was ever repeated" in run("train", FILE, "-o", tmp_path / "m.json", "--dry-run").output


@table(
    "code, name, message",
    [
        ("import nothing_of_that_name", "COPILOT", "`their_copilot:COPILOT`) failed: ModuleNotFoundError"),
        ("COPILOT = None", "PILOT", "`their_copilot:PILOT`) failed: AttributeError"),
        (CODE.replace('data["toolName"]', 'data["why"]'), "COPILOT", "of copilot cli session failed: KeyError"),
        (CODE.replace("yield Made(call,", "yield (call,"), "COPILOT", "of copilot cli session failed: AttributeError"),
    ],
)
def test_a_broken_reader_is_told_with_its_package_and_what_to_do(
    install: Install, code: str, name: str, message: str
) -> None:
    install(code, name)
    done = run("report", FILE)
    assert done.exit_code == 2
    assert message in done.output
    assert done.output.rstrip().endswith("correct it or uninstall its package")


def test_no_reader_of_others_is_loaded_for_a_file_of_a_known_format(install: Install) -> None:
    install("raise RuntimeError")
    assert open_calls(FILE.with_name("files") / "calls.jsonl", Report())
    assert "their_copilot" not in sys.modules
