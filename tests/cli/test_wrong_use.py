"""
What cannot be done as it was asked for is said on stderr with exit code 2, and nothing is written.
"""

import json
import shlex

from pathlib import Path

import pytest

from tests.cli.command import guardrails
from tests.tables import table


CALL = {"session_id": "s", "tool": "a", "arguments": {}, "result": "Error: timeout", "is_error": True, "ts": 1.8e9}
FILES = {
    "calls.jsonl": json.dumps(CALL) + "\n",
    "bad.yaml": "version: 1\nbudget: {max_cals: 2}\n",
    "bad.json": "{}",
    "lone.yaml": "version: 1\n",
    "team.yaml": "version: 1\nbudget: {max_calls: 2}\n",
    "team.cases.yaml": "version: 1\ncases:\n  - name: it runs\n    steps: [{call: a}]\n",
    "text.db": "no database at all " * 100,
    "none.py": "x = 1\n",
}
USES = [line.split(" => ") for line in Path(__file__).with_name("wrong_uses.txt").read_text().splitlines()]
"""Words of a command line, and what is said of them."""


@table("words, said", [*USES, ("explain '\x1b[31m'", "\\x1b[31m")])
def test_a_use_that_cannot_work_is_said_and_changes_nothing(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    done = guardrails(*shlex.split(words))
    told = " ".join(done.stderr.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in told
    assert "Traceback" not in told
    assert "\x1b" not in told
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == FILES
