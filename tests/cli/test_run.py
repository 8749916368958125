"""
`guardrails run`: an agent from the command line, kept, limited, resumed (B4, D10), against the scripted server.
"""

import json
import os
import re
import signal
import subprocess
import sys

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from typer.testing import Result

from guardrails.sinks import read
from guardrails.testing.scripted_openai import Calls, Raw, Reply, ScriptedOpenAI, Text, Usage, call, obeying
from tests.children import child
from tests.cli.command import guardrails
from tests.openai_api import problems
from tests.tables import table


pytestmark = pytest.mark.system


TOOLS = (Path(__file__).with_name("files") / "tools.py.txt").read_text()
run = partial(guardrails, "run")
POLICY = "version: 1\nextends: default\nbudget: {max_calls: 2}\n"


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "tools.py").write_text(TOOLS.format(log=str(tmp_path / "looked_up")))
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def options(server: ScriptedOpenAI, files: Path, *more: object) -> list[object]:
    here = ("--base-url", server.base_url, "--tools", files / "tools.py")
    return ["--model", "gpt-5-mini", "--no-builtins", *here, *more]


def cities(*names: str) -> list[Reply]:
    return [Calls(call("look_up", {"city": name})) for name in names]


def looked_up(files: Path) -> list[str]:
    log = files / "looked_up"
    return log.read_text().split() if log.exists() else []


def kept_id(shown: Result) -> str:
    return next(line.split()[1].rstrip(":") for line in shown.stderr.splitlines() if line.startswith("conversation "))


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_the_answer_goes_to_stdout_and_what_happened_to_stderr(files: Path, wire: str) -> None:
    with ScriptedOpenAI([*cities("Kyoto"), Text("It rains.", Usage(1_000, 100))]) as server:
        shown = run("weather?", *options(server, files, "--wire", wire))
        assert (shown.exit_code, shown.stdout) == (0, "It rains.\n"), shown.output
    assert problems(server.requests) == []
    said = shown.stderr.splitlines()
    assert said[0].endswith(": gpt-5-mini, policy agent, 1 tool")
    assert {'-> look_up {"city": "Kyoto"}', "   ok"} < {*said}
    assert re.fullmatch(r"1 call \(199 left\), \$0\.0005, .*, 0 denied", said[-2])
    end = "end ended=answered code=- exit_code=0 requests=2 iterations=1 cost_usd=0.0005"
    assert said[-1] == f"{end} session={kept_id(shown)}"
    assert "\x1b" not in shown.stderr
    sent = server.requests[0].get("messages") or server.requests[0]["input"]
    assert [message["role"] for message in sent] == ["system", "user"]
    assert str(Path.cwd()) in sent[0]["content"]


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_b4_a_limit_ends_it_with_an_answer_and_an_extended_one_goes_on(files: Path, wire: str) -> None:
    # The third request is the one without tools.
    replies = [*cities("Kyoto", "Nara", "-", "Osaka"), Text("All three.")]
    script = obeying(replies, "Two of three: the limit is reached.")
    with ScriptedOpenAI(script) as server:
        first = run("weather?", *options(server, files, "--policy", files / "policy.yaml", "--wire", wire, "--json"))
        assert first.exit_code == 1, first.output
        told = json.loads(first.stdout)
        assert (told["ended"], told["code"]) == ("forced", "budget.max_calls")
        assert told["answer"] == "Two of three: the limit is reached."
        assert told["resume"] == f"guardrails run --resume {told['id']}"

        same = run("--resume", told["id"])
        assert (same.exit_code, same.stdout) == (1, "Two of three: the limit is reached.\n")
        for more, why in {
            "and Osaka?": "exhausted (budget.max_calls): go on with `--extend max_calls=AMOUNT`",
            "--extend=max_cost_usd=1": "the policy sets no limit `max_cost_usd`",
        }.items():
            refused = run("--resume", told["id"], more)
            assert (refused.exit_code, why in refused.stderr) == (2, True)

        # Model, endpoint, policy and tools are those that were kept.
        second = run("--resume", told["id"], "--extend", "max_tool_calls=20,max_elapsed=10m")
        assert (second.exit_code, second.stdout) == (0, "All three.\n"), second.output
        assert "limits raised: " in second.stderr
    assert problems(server.requests) == []
    assert looked_up(files) == ["Kyoto", "Nara", "Osaka"]
    sent = server.requests[-1].get("messages") or server.requests[-1]["input"]
    users = [message["content"] for message in sent if message.get("role") == "user"]
    assert users == ["weather?", "Go on with the task: its limits were raised."]
    records = list(read(files / "state" / "guardrails" / "conversations.jsonl"))
    raised = [r["amounts"] for r in records if r["event"] == "extend" and not r.get("asked")]
    assert raised == [{"max_calls": 20, "max_elapsed": 600_000}]
    assert [record["n"] for record in records] == list(range(1, len(records) + 1))


PAGE = "<!DOCTYPE html>\n<html>\n<body>\x1b[31mSign in, key-of-mine</body>\n</html>\n" * 99


@table("reply, why", [
    (Raw(PAGE, "text/html"), "the reply is no event stream (HTTP 200 from `{url}`: `<!DOCTYPE html> <html>"),
    (Raw(PAGE, "text/html", 400), "the endpoint refused (HTTP 400): <!DOCTYPE html> <html>"),
    (Raw('{"error": "no model `m`"}', status=404), "the endpoint refused (HTTP 404): no model `m`"),
    (Raw(""), "(HTTP 200 from `{url}`: an empty body)"),
])  # fmt: skip
def test_a_reply_that_is_none_is_one_line(files: Path, reply: Reply, why: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-mine")
    mended: list[bool] = []
    with ScriptedOpenAI(lambda body, n: cities("Kyoto")[0] if n == 0 else Text("now") if mended else reply) as server:
        shown = run("task", *options(server, files))
        assert shown.exit_code == 2
        *_, kept, resume, said, end = shown.stderr.splitlines()
        assert end.startswith("end ended=failed code=endpoint.")
        assert why.format(url=f"{server.base_url}/chat/completions") in said
        assert said.startswith("the endpoint ")
        assert (kept, resume.split()[:3]) == ("failed; nothing is lost. Go on with:", ["guardrails", "run", "--resume"])
        assert not re.search("key-of-mine|\x1b", shown.output)
        mended.append(True)
        again = run("--resume", kept_id(shown))
        assert (again.exit_code, again.stdout) == (0, "now\n")
    assert problems(server.requests) == []
    assert looked_up(files)[-1:] == ["Kyoto"]
    # Whoever was killed before it could print the answer is told it then.
    done = run("--resume", kept_id(shown))
    assert (done.exit_code, done.stdout) == (0, "now\n")
    assert "it has its answer: to go on, give it another task, or raise a limit" in done.stderr


def test_the_loops_own_limit_is_told_and_a_new_task_goes_on(files: Path) -> None:
    script = obeying([*cities("a", "b", "c"), Text("done")], "so far")
    with ScriptedOpenAI(script) as server:
        shown = run("task", *options(server, files, "--max-iterations", "2"))
        assert (shown.exit_code, shown.stdout) == (1, "so far\n")
        assert f'--resume {kept_id(shown)} "go on"' in shown.stderr
        again = run("go on", "--resume", kept_id(shown))
        assert (again.exit_code, again.stdout) == (0, "done\n"), again.output


def test_a_denied_call_is_a_line_with_its_reason_and_refused_turns_can_be_forgiven(files: Path) -> None:
    script = obeying([*cities("a", "a", "a", "a", "a", "a"), Text("done")], "so far")
    policy = files / "strict.yaml"
    policy.write_text("version: 1\nextends: default\nduplicates: {rule: always, window: 5}\n")
    with ScriptedOpenAI(script) as server:
        shown = run("task", *options(server, files, "--policy", policy))
        assert (shown.exit_code, shown.stdout) == (1, "so far\n")
        said = " ".join(shown.stderr.split())
        for part in ("denied, duplicates.window: This exact look_up call was already made", "3 denied", "--forgive"):
            assert part in said
        assert "ended by denials.max_turns_in_a_row" in said
        assert looked_up(files) == ["a"]
        again = run("--resume", kept_id(shown), "--forgive")
        assert again.exit_code == 0, again.output
        assert "refused turns forgiven" in again.stderr


def test_kept_conversations_are_listed_and_are_their_owners_alone(files: Path) -> None:
    # A task may come from stdin, and a quiet run says only the answer.
    with ScriptedOpenAI(lambda body, n: Text(body["messages"][-1]["content"])) as server:
        shown = run("-", *options(server, files, "-q"), input="find out\nwhy \x1b[2J")
    assert (shown.stdout, shown.stderr) == ("find out\nwhy [2J\n", "")
    [told] = json.loads(run("--list", "--json").stdout)["conversations"]
    assert (told["messages"], told["wire"]) == (3, "chat")
    row = run("--list").stdout.splitlines()[1]
    assert [part for part in (told["id"], "gpt-5-mini", "find out why") if part not in row] == []
    folder = files / "state" / "guardrails"
    assert {file.name for file in folder.iterdir()} >= {"conversations.db", "conversations.jsonl"}
    assert all(os.stat(file).st_mode & 0o077 == 0 for file in [folder, *folder.iterdir()])  # noqa: PTH116


# Killed and interrupted


@contextmanager
def agent(server: ScriptedOpenAI, files: Path) -> Iterator["subprocess.Popen[str]"]:
    words = [sys.executable, "-m", "guardrails", "run", "task", *map(str, options(server, files))]
    with child(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n", process.communicate()
        yield process


def slow_turn() -> Callable[..., Reply]:
    first = Calls(*(call("look_up", {"city": name}, id=f"call_{name}") for name in ("fast", "slow", "last")))
    return lambda body, n: first if n == 0 else Text("All told.")


def test_b4_a_run_that_is_killed_in_mid_turn_is_resumed_and_no_call_runs_twice(files: Path) -> None:
    with ScriptedOpenAI(slow_turn()) as server:
        with agent(server, files) as process:
            process.send_signal(signal.SIGKILL)
        [told] = json.loads(run("--list", "--json").stdout)["conversations"]
        shown = run("--resume", told["id"], "--json")
        assert shown.exit_code == 0, shown.output
    assert problems(server.requests) == []
    done = json.loads(shown.stdout)
    assert done["interrupted"] == [
        {"id": "call_slow", "tool": "look_up", "admitted": True},
        {"id": "call_last", "tool": "look_up", "admitted": False},
    ]
    assert "look_up (call_slow) was interrupted; it is not run again" in shown.stderr
    assert looked_up(files) == ["fast", "slow"]
    first, *results = [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "tool"]
    assert "status" not in first
    results = [json.loads(text) for text in results]
    assert [said["status"] for said in results] == ["error", "error"]
    assert "interrupted: nobody knows whether it happened" in results[0]["error_message"]
    assert done["progress"]["calls_used"] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_b4_an_interrupted_run_says_how_to_go_on(files: Path, number: signal.Signals) -> None:
    with ScriptedOpenAI(slow_turn()) as server:
        with agent(server, files) as process:
            process.send_signal(number)
            _, said = process.communicate(timeout=150)
        assert process.returncode == 130, said
        assert "Traceback" not in said
        *_, hint, command, end = said.splitlines()
        assert end.startswith("end ended=interrupted code=interrupted exit_code=130 ")
        assert "nothing is lost" in hint
        shown = run(*command.split()[2:])
        assert (shown.exit_code, shown.stdout) == (0, "All told.\n"), shown.output
    assert problems(server.requests) == []
    assert looked_up(files) == ["fast", "slow"]
