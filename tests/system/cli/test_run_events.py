"""
`guardrails run` as it goes and as it ends: text as it comes, what is cut, one last event (B4, D10).
"""

import json
import os
import pty
import subprocess
import sys

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from guardrails.testing.scripted_openai import Calls, Fail, Raw, Reply, ScriptedOpenAI, Text, call, obeying
from tests.children import child


TOOLS = '''
def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: " + "x" * 6_000
'''


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "tools.py").write_text(TOOLS)


def given(server: ScriptedOpenAI, folder: Path, *more: object) -> list[str]:
    tools = ["--tools", folder / "tools.py", "--no-builtins"]
    return [*map(str, ["run", "--base-url", server.base_url, "--model", "gpt-5-mini", *tools, *more])]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def pages(count: int) -> Any:
    """
    A model that reads *count* pages, one a turn.
    """

    def model(body: dict[str, Any], n: int) -> Reply:
        return Calls(call("read", {"page": n}, id=f"c{n}")) if n < count else Text("All read.")

    return model


# What is sent


def test_an_endpoint_that_does_not_stream_is_told_with_the_option_for_it(tmp_path: Path) -> None:
    with ScriptedOpenAI(lambda body, n: Raw('{"choices": []}')) as server:
        shown = run(*given(server, tmp_path, "say"))
    assert shown.exit_code == 2
    assert "`--no-stream`" in shown.stderr


def test_it_streams_unless_told_otherwise(tmp_path: Path) -> None:
    with ScriptedOpenAI([Text("one"), Text("two")]) as server:
        run(*given(server, tmp_path, "say"))
        run(*given(server, tmp_path, "--no-stream", "say"))
        assert [body.get("stream") for body in server.requests] == [True, None]


# What is seen


def at_a_terminal(*arguments: str) -> str:
    """
    What a person sees whose terminal is both stdout and stderr.
    """
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "guardrails", *arguments]
    with child(*command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        seen = b""
        with suppress(OSError):
            while piece := os.read(ours, 65_536):
                seen += piece
        process.wait(30)
        os.close(ours)
    return seen.decode()


def test_at_a_terminal_text_is_shown_as_it_comes_and_once(tmp_path: Path) -> None:
    script: list[Reply] = [Calls(call("read", {"page": 1}), text="I look first."), Text("It says x.\nThat is all.")]
    with ScriptedOpenAI(script) as server:
        seen = at_a_terminal(*given(server, tmp_path, "read"))
    assert seen.count("I look first.") == 1
    assert seen.count("That is all.") == 1
    assert (
        seen.index("I look first.")
        < seen.index("-> read")
        < seen.index("It says x.")
        < seen.index("end ended=answered")
    )


# How it ends


def test_a_limit_an_error_and_a_missing_model_end_with_one_object_and_its_code(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nextends: default\nbudget: {max_calls: 1}\n")
    with ScriptedOpenAI(obeying(pages(3), "So far.")) as server:
        limited = run(*given(server, tmp_path, "--json", "--policy", policy, "read"))
    with ScriptedOpenAI([Fail(400, message="no such model")]) as server:
        failed = run(*given(server, tmp_path, "--json", "read"))
    unused = run("run", "--json", "read")
    ends = []
    for shown in (limited, failed, unused):
        end = json.loads(shown.stdout)
        assert end["event"] == "end"
        assert end["exit_code"] == shown.exit_code
        ends.append((end["ended"], end["code"], end["exit_code"], end["requests"], end["iterations"]))
        assert (end["session"] is None) == (shown is unused)
        assert (end["error"] is None) == (shown is limited)
    assert ends == [
        ("forced", "budget.max_calls", 1, 2, 1),
        ("failed", "endpoint.refused", 2, 1, 0),
        ("failed", "agent_error", 2, 0, 0),
    ]


# What is needed


@pytest.mark.parametrize(
    ("missing", "more"), [("openai", []), ("mcp_types", ["--mcp", "servers.toml"]), ("mcp", ["--mcp", "servers.toml"])]
)
def test_without_its_extra_it_says_so_and_touches_no_file(tmp_path: Path, missing: str, more: list[str]) -> None:
    (tmp_path / "servers.toml").write_text('[servers.a]\ncommand = "true"\n')
    (tmp_path / "tools.py").write_text(
        "from pathlib import Path\nPath('touched').touch()\ndef f() -> int:\n    return 1\n"
    )
    code = (
        f"import sys\nsys.modules[{missing!r}] = None\nfrom guardrails.cli import app\n"
        f"app(['run', 'task', '--model', 'm', '--base-url', 'http://127.0.0.1:9', '--tools', 'tools.py', *{more!r}])"
    )
    before = sorted(tmp_path.rglob("*"))
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 2, done.stderr
    extra = "openai" if missing == "openai" else "mcp"
    said, end = done.stderr.splitlines()
    assert f" needs `{missing}" in said
    assert said.endswith(f': pip install "toolcall-guardrails[{extra}]"')
    assert end.startswith("end ended=failed code=missing_extra exit_code=2 requests=0 ")
    assert sorted(tmp_path.rglob("*")) == before
