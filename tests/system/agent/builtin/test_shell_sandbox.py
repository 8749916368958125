"""
The shell tool in a sandbox: honest work goes on, `.git` is git's, and what cannot be confined is refused.
"""

import os
import shutil
import sys

from pathlib import Path
from typing import Any

import pytest

from guardrails import Envelope, Policy
from guardrails import Shell as Guard
from guardrails.agent.builtin import Root, Shell, builtin_tools
from tests.tables import table


pytestmark = pytest.mark.system
WORK = {
    "git": (
        "git init -q . && git config user.name a && git config user.email b && echo x > f && git add f && git commit -qm one"
        " && git branch other && git status --short && git log --oneline | wc -l && git diff HEAD --stat && git stash list"
    ),
    "gcc": "printf 'int main(void){return 0;}' > m.c && gcc -o m m.c && ./m && echo built",
    "make": "printf 'all:\\n\\techo made > made\\n' > Makefile && make -s -j2 && cat made",
    "node": 'node -e \'require("fs").writeFileSync("n", "1"); console.log(require("os").tmpdir())\'',
    "npm": "npm init -y > /dev/null && test -f package.json && npm --version",
    "python3": "python3 -c 'import tempfile, sqlite3, ssl; tempfile.TemporaryFile(); sqlite3.connect(\"d\")' && echo done",
    "jq": "echo '{\"a\": 1}' | jq .a",
    "sh": 'mktemp > /dev/null && touch "$HOME/x" && sort < /etc/passwd | head -1 > first && cat <(echo sub) first',
}


def run(folder: Path, command: str, **settings: Any) -> Envelope:
    said = Shell(Root(folder), **settings).tools["exec_shell"](command)
    assert isinstance(said, Envelope)
    return said


@table("program", sorted(WORK))
def test_honest_work_goes_on(works: None, tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not here")
    (tmp_path / program).mkdir()
    said = run(tmp_path / program, WORK[program])
    assert said.ok, said.value
    assert said.sandbox == "bwrap"
    assert said.value["output"].strip()


def test_a_virtual_environment_on_the_path_works_wherever_it_lies(
    works: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "test_it.py").write_text("def test_it(tmp_path):\n    assert tmp_path.exists()\n")
    said = run(tmp_path, "python -m pytest -q test_it.py && python -c 'import sys; print(sys.prefix)'")
    assert said.ok, said.value
    assert said.value["output"].strip().endswith(str(Path(sys.prefix).resolve()))


def test_limits_hold(works: None, tmp_path: Path) -> None:
    said = run(tmp_path, "ulimit -c; ulimit -d; ulimit -f; ulimit -t")
    assert said.value["output"].split() in (["0", "4194304", "4194304", "3600"], ["0", "4194304", "8388608", "3600"])


def test_a_read_only_sandbox_runs_any_program_and_changes_nothing(works: None, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    said = run(tmp_path, "cat f; touch $TMPDIR/x && echo made; echo new > f", sandbox="read-only")
    assert said.error_type == "exec_nonzero"
    assert said.value["output"].startswith("oldmade\n")
    assert (tmp_path / "f").read_text() == "old"


def test_git_itself_writes_its_folder_and_no_other_command_does(works: None, tmp_path: Path) -> None:
    begin = "git init -q . && git config user.name a && git config user.email b"
    for command in (begin, "echo x > f && git add f && git commit -qm one && git log --oneline"):
        assert run(tmp_path, command).ok
    for command in ("echo x > .git/HEAD", "rm -r .git", "mv .git away", "git status; echo x > .git/hooks/pre-commit"):
        assert run(tmp_path, command).error_type == "exec_nonzero", command
    tools = builtin_tools(tmp_path)
    with Policy([Guard(allow=("git *", "ls *", "touch *"))], tools=tools.tools).session("s") as session:
        for allowed, kind in (("ls -A | git hash-object -w --stdin", None), ("touch .git/x", "exec_nonzero")):
            assert session.call("exec_shell", {"command": allowed}, tools.execute).error_type == kind
