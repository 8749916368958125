"""
What cannot be done as it was asked for is said on stderr with exit code 2, and nothing is written.
"""

import shlex

from pathlib import Path
from typing import Any

from tests.cli.command import guardrails
from tests.tables import table


FILES = {path.name: path.read_text() for path in Path(__file__).with_name("wrong").iterdir()}
USES = [line.split(" => ") for line in Path(__file__).with_name("wrong_uses.txt").read_text().splitlines()]
"""Words of a command line, and what is said of them."""


@table("words, said", [*USES, ("explain '\x1b[31m'", "\\x1b[31m")])
def test_a_use_that_cannot_work_changes_nothing(words: str, said: str, tmp_path: Path, monkeypatch: Any) -> None:
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
