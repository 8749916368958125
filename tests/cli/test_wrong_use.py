"""
What cannot be done as it was asked for is said on stderr with exit code 2, and nothing is written.
"""

import json
import shlex

from pathlib import Path

import pytest

from typer.testing import CliRunner

from guardrails.cli import app
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
USES = {
    "nosuch": "No such command",
    "polic": "Did you mean 'policy'?",
    "demo --base-url http://127.0.0.1:9/v1": "No such option",
    "demo chat.json": "unexpected extra argument",
    "demo --max-requests 0": "Invalid value",
    "init nosuch.jsonl": "nosuch.jsonl",
    "init -": "name a file",
    "init -o team.yaml": "add --force to replace it",
    "init calls.jsonl -o calls.jsonl --force": "would overwrite",
    "init calls.jsonl -o nosuch/policy.yaml": "no folder `nosuch`",
    "init -o nosuch/policy.yaml": "no folder `nosuch`",
    "policy nosuch": "No such command",
    "policy check": "Missing argument",
    "policy check bad.yaml ./nowhere.yaml strickt": "no policy file `nowhere.yaml`",
    "policy check --guards none.py default": "`none.py` defines no guard",
    "policy check --guards nosuch.py default": "nosuch.py",
    "policy show bad.yaml": "did you mean `max_calls`?",
    "policy show ./nowhere.yaml": "nowhere.yaml",
    "policy test nope": "no policy named `nope`",
    "policy test ./nope.yaml": "no policy file `nope.yaml`",
    "policy test lone.yaml": "no cases for `lone.yaml`: looked for `lone.cases.yaml` and `cases/lone.yaml` beside it",
    "policy test team.yaml none.yaml": "cannot use `none.yaml`: No such file or directory",
    "policy test team.yaml .": "cannot use `.`: Is a directory",
    "policy test team.yaml -k zzz": "no case has `zzz` in its name",
    "policy test team.yaml team.yaml team.cases.yaml": "team.yaml:2:1: unknown key `budget`",
    "policy test team.cases.yaml": "team.cases.yaml:2:1: unknown key `cases`",
    "replay nowhere calls.jsonl": "no policy named `nowhere`",
    "replay bad.yaml calls.jsonl": "did you mean `max_calls`?",
    "replay default nowhere.jsonl": "no file or folder `nowhere.jsonl`",
    "replay default calls.jsonl --compare nowhere": "no policy named `nowhere`",
    "replay default calls.jsonl --exact": "holds no records of this library",
    "replay default calls.jsonl --exact --html x": "`--exact` goes without",
    "replay default calls.jsonl --decisions no/such/folder": "cannot write `no/such/folder`: no folder `no/such`",
    "replay default calls.jsonl --html no/such/folder": "cannot write `no/such/folder`",
    "replay default calls.jsonl --html .": "cannot write `.`: it is a folder",
    "replay default calls.jsonl --decisions calls.jsonl": "`--decisions` would overwrite",
    "replay default calls.jsonl --html calls.jsonl": "`--html` would overwrite",
    "replay default": "Missing argument",
    "report missing.jsonl": "no file or folder `missing.jsonl`",
    "report calls.jsonl -o x.yaml": "`--output` goes with `--suggest`",
    "report calls.jsonl --policy missing.yaml": "missing.yaml",
    "report calls.jsonl --html missing/out.html": "cannot write `missing/out.html`",
    "report calls.jsonl --html calls.jsonl": "would overwrite",
    "report calls.jsonl --suggest -o missing/o.yaml": "cannot write `missing/o.yaml`",
    "train nowhere -o m.json": "no file or folder `nowhere`",
    "train . -o m.json --master local[2]": "goes with `--engine spark`",
    "train . -o m.json --loops --engine spark": "leave `--engine spark` out",
    "train . -o m.json --half-life 0": "more than 0 days",
    "train . -o .": "cannot write the model file `.`",
    "train . -o no/such/m.json": "cannot write the model file `no/such/m.json`",
    "profile nowhere.json": "cannot use `nowhere.json`",
    "profile bad.json": "`bad.json`: no retry model",
    "profile bad.json --html bad.json": "would overwrite `bad.json`",
    **{
        f"store {command}": "is no file: name the file of a SqliteStore"
        for command in ("ls missing.db", "show missing.db s", "forget missing.db s --yes", "prune . --idle 1d --yes")
    },
    "store ls text.db": "is damaged, or no database",
    "explain budget.max_cals": "`budget.max_calls`",
    "explain max_calls": "`budget.max_calls`",
    "explain Rate-Limit": "`rate_limit`",
    "explain qqqq": "lists all",
    "explain '\x1b[31m'": "\\x1b[31m",
    "run": "say what the agent is to do",
    "run '  '": "say what the agent is to do",
    "run task": "name a model",
    "run task --model m": "set OPENAI_API_KEY",
    "run task --model m --extend max_calls=1": "go with `--resume ID`",
    "run --resume x --extend max_call=1": "`max_call` is no limit",
    "run --resume x --extend max_calls": "takes a whole number of at least 0",
    "run --resume x --extend max_calls=-1": "at least 0",
    "run --resume x --extend max_calls=1.5": "takes a whole number of at least 0, not `1.5`",
    "run --resume x --wire chat": "`--wire` goes with a new conversation",
    "run --resume x": "no conversations are kept in",
    "run --list": "no conversations are kept in",
    "run task --model m --wire grpc": "'chat', 'responses'",
    "run task --model m --workspace /no/such": "cannot work in `/no/such`",
    "run task --model m --policy no-such": "no-such",
    "run task --model m --tools no-such.py": "no-such.py` is no Python file with tools",
}


@table("words, said", USES.items())
def test_a_use_that_cannot_work_is_said_and_changes_nothing(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    done = CliRunner().invoke(app, shlex.split(words))
    told = " ".join(done.stderr.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in told
    assert "Traceback" not in told
    assert "\x1b" not in told
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == FILES
