"""
`guardrails replay`, `report` and `train` over transcripts of other programs, as a person calls them.
"""

import json

from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from guardrails.cli import app
from tests.pages import document


FILES = Path(__file__).parents[1] / "offline" / "transcripts" / "files"
CALLS = {"langsmith.jsonl": 5, "openinference.jsonl": 3, "openinference_otlp.jsonl": 3, "opencode.json": 4}


def run(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, [*map(str, arguments)])


def test_it_is_said_what_each_file_was_read_as_and_why_one_was_not(tmp_path: Path) -> None:
    for name in ("langsmith.jsonl", "openai_chat.json", "cline.json"):
        (tmp_path / name).write_bytes((FILES / name).read_bytes())
    (tmp_path / "notes.txt").write_text("what I have seen")
    read = {
        "langsmith.jsonl": "langsmith runs",
        "openai_chat.json": "chat",
        "cline.json": "chat",
    }
    page = tmp_path.with_name("page.html")
    for command in (["report"], ["replay", "default"], ["replay", "default", "--compare", "strict"]):
        found = json.loads(run(*command, tmp_path, "--json", "--html", page).stdout)
        for each in found.get("judgements", [found]):
            assert each["read_as"] == {str(tmp_path / name): kind for name, kind in read.items()}
            assert each["without_calls"] == {
                str(
                    tmp_path / "notes.txt"
                ): "no calls that can be read in 1 line, the first is line 1: what I have seen"
            }
        assert document(page.read_text())["data"] == found


def conversation(number: int) -> str:
    """
    A conversation in which a call fails and works when it is made again, four times over.
    """
    messages: list[dict[str, Any]] = []
    for n in range(8):
        wire = {"id": f"c{n}", "function": {"name": "fetch", "arguments": json.dumps({"n": n // 2})}}
        messages.append({"role": "assistant", "tool_calls": [wire]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": _told(n)})
    return json.dumps({"task_id": number, "messages": messages})


def _told(n: int) -> str:
    return "503 Service Unavailable" if n % 2 == 0 else f"page {n}"


def test_train_counts_the_retries_of_transcripts(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.jsonl").write_text(conversation(number))
    result = run("train", tmp_path, "-o", tmp_path / "m.json", "--dry-run", "--json")
    made = json.loads(result.stdout)
    assert (made["failures"], made["retries"], made["files"], made["days"]) == (80, 80, 20, 0)
