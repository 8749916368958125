"""
The process of a hook: what it imports, what it costs, and that it works where Unix's modules are not.
"""

import json
import subprocess
import sys

import pytest

from tests.hooks.processes import Home, denied, event, policy


pytestmark = pytest.mark.system


FOREIGN = """
import sys
GONE = {"fcntl", "termios", "pwd", "grp", "resource", "syslog", "pty", "tty", "posix_spawn", "_posixsubprocess"}
class Blocked:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in GONE:
            raise ModuleNotFoundError(f"no module named {name}", name=name)
for name in GONE:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocked)
import os, _socket, select
for module, names in (
    (_socket, ("AF_UNIX", "SO_PEERCRED")),
    (select, ("poll", "epoll")),
    (os, ("fork", "posix_spawn", "register_at_fork", "geteuid", "getuid", "setsid", "fchdir", "pread", "pwrite", "uname",
          "O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_PATH", "getppid", "sysconf", "fchmod")),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""
DOOR = "from guardrails.hooks.door import main\nmain(sys.argv[1:])\n"
TOLD = "print(*sorted(sys.modules), file=sys.stderr)\n"


def run(home: Home, code: str, data: bytes, *options: object) -> "subprocess.CompletedProcess[bytes]":
    words = [sys.executable, "-c", code, *map(str, options)]
    return subprocess.run(words, input=data, capture_output=True, env=home.environment, check=True)


def test_where_the_modules_of_unix_are_not_it_answers_by_itself(home: Home) -> None:
    records = home.folder / "records.jsonl"
    options = ("--policy", policy(home.folder / "p.yaml", 1), "--records", records)
    said = [run(home, FOREIGN + DOOR, event(f"{n}", f"make {n}"), *options) for n in range(2)]
    assert [denied(json.loads(each.stdout)) for each in said] == [False, True]
    assert [each.stderr for each in said] == [b"", b""]
    assert len(records.read_text().splitlines()) >= 2


def test_it_imports_neither_pydantic_nor_a_schema_checker_nor_the_command_line(home: Home) -> None:
    run(home, f"import sys\n{DOOR}", event("a"))
    done = run(home, f"import sys\n{DOOR}{TOLD}", event("b", "make b"))
    assert done.stdout == b"{}\n"
    modules = set(done.stderr.decode().split())
    assert "guardrails.core.engine.engine" in modules
    assert not modules & {"pydantic", "pydantic_core", "jsonschema_rs", "typer", "click", "rich", "asyncio"}


def test_what_is_wrong_is_told_to_people(home: Home) -> None:
    done = run(home, f"import sys\n{DOOR}", event("a"), "--policy", "mistyped")
    assert "no policy named `mistyped`" in json.loads(done.stdout)["systemMessage"]
    assert b"no policy named `mistyped`" in done.stderr


def test_a_changed_policy_holds_from_the_next_event_on(home: Home) -> None:
    rules = policy(home.folder / "p.yaml", 10)
    assert home.hook(event("a"), "--policy", rules) == {}
    policy(rules, 1)
    assert denied(home.hook(event("b", "make b"), "--policy", rules))


def test_words_that_are_no_options_block_nothing(home: Home) -> None:
    for words in (["--polcy", "x"], ["--policy"], ["--client", "vim"], ["x"]):
        done = run(home, f"import sys\n{DOOR}", event("a"), *words)
        assert done.stdout == b"{}\n"
        assert done.stderr.startswith(b"guardrails hook: ")


def test_an_installation_that_is_broken_blocks_nothing(home: Home) -> None:
    (home.folder / "orjson.py").write_text("raise ImportError('no orjson')\n")
    done = run(home, f"import sys; sys.path.insert(0, {str(home.folder)!r})\n{DOOR}", event("a"))
    assert done.stdout == b"{}\n"
    assert done.stderr == b"guardrails hook: ImportError: no orjson\n"


def test_a_folder_that_was_taken_away_blocks_nothing(home: Home) -> None:
    gone = str(home.folder / "gone")
    left = f"import os, sys; os.mkdir({gone!r}); os.chdir({gone!r}); os.rmdir({gone!r})\n"
    assert run(home, left + DOOR, event("a")).stdout == b"{}\n"
    assert run(home, left + DOOR, event("a"), "--policy", "./p.yaml").stdout == b"{}\n"


def test_a_reader_that_has_gone_is_no_error(home: Home) -> None:
    code = "import os, sys; os.close(1)\n" + DOOR
    assert run(home, code, event("a")).returncode == 0
