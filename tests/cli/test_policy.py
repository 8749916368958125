"""
`guardrails policy check|schema|show`.
"""

import json
import re

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from tests.tables import table


POLICIES = Path(__file__).parents[2] / "policies"
MISTAKEN = """\
version: 1
budget:
  max_cals: 20
  max_elapsed: soon
duplicates: {rule: never}
"""
OWN = """\
version: 1
extends: default
mode: observe
prices: {small: {input_mtok: 0.5, output_mtok: 2}}
tools:
  - {match: [search_*, find_*], cost_usd: 0.01, budget: {max_calls: 3}}
"""


def guardrails(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def put(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return put


@table("name", ["default", "strict", "observe"])
def test_a_shipped_policy_has_no_mistakes_by_file_and_by_name(name: str) -> None:
    file = str(POLICIES / f"{name}.yaml")
    checked = guardrails("policy", "check", file, name)
    guards = {"default": 10, "strict": 11, "observe": 12}[name]
    assert checked.exit_code == 0
    assert checked.stdout.splitlines() == [f"{file}: ok, {guards} guards", f"{name}: ok, {guards} guards"]


def test_every_mistake_is_told_with_line_column_and_caret(write: Any) -> None:
    file = write("bad.yaml", MISTAKEN)
    checked = guardrails("policy", "check", file)
    assert checked.exit_code == 1
    lines = checked.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines if line.startswith(file)] == [
        f"{file}:3:3",
        f"{file}:4:16",
        f"{file}:5:20",
    ]
    assert "did you mean `max_calls`?" in lines[0]
    assert lines[1].endswith("max_cals: 20")
    assert lines[2].strip() == "^"


def test_one_bad_file_does_not_hide_the_others(write: Any) -> None:
    good, bad = write("good.yaml", "version: 1\nbudget: {max_calls: 2}\n"), write("bad.yaml", MISTAKEN)
    checked = guardrails("policy", "check", bad, good)
    assert checked.exit_code == 1
    assert f"{good}: ok, 1 guard\n" in checked.stdout


def test_a_file_that_is_not_there_is_a_wrong_use_and_no_mistake(write: Any) -> None:
    checked = guardrails("policy", "check", write("bad.yaml", MISTAKEN), "./nowhere.yaml", "strickt")
    assert checked.exit_code == 2
    assert "no policy file `nowhere.yaml`" in checked.stderr


def test_mistakes_are_data_for_another_program(write: Any) -> None:
    file = write("bad.yaml", MISTAKEN)
    checked = guardrails("policy", "check", "--json", file, "default")
    said = json.loads(checked.stdout)
    assert checked.exit_code == 1
    assert said["ok"] is False
    assert [(f["file"], f["ok"], f["guards"]) for f in said["files"]] == [(file, False, None), ("default", True, 10)]
    assert [(m["file"], m["line"], m["column"]) for m in said["files"][0]["mistakes"]] == [
        (file, 3, 3),
        (file, 4, 16),
        (file, 5, 20),
    ]


def test_an_older_word_still_works_and_the_new_one_is_named(write: Any) -> None:
    path = write("older.yaml", "version: 1\ntools:\n  - {match: poll_*, polling: true}\n")
    shown = guardrails("policy", "check", path)
    assert shown.exit_code == 0
    assert f"{path}:3:21: tools.0.polling: polling is now `repeats: allow`" in shown.stdout
    assert json.loads(guardrails("policy", "check", path, "--json").stdout)["files"][0]["hints"][0]["line"] == 3


BASE = """\
version: 1
mode: enforce
shell: {deny: [sudo, reboot]}
budget: {max_calls: 9, max_turns: 5}
tools:
  - {match: refund, idempotent: false, budget: {max_calls: 3}}
  - match: "get_*"
    read_only: true
"""


def test_what_a_file_overrides_is_named(write: Any) -> None:
    write("base.yaml", BASE)
    for text, told in {
        "tools: [{match: lookup, timeout: 5s}]": [],
        "budget: {max_calls: 9, max_tokens: 7}": [],
        "mode: observe\nbudget:\n  max_calls: 40": [
            "3:1: mode: `observe` overrides `enforce` of base.yaml:2",
            "5:3: budget.max_calls: `40` overrides `9` of base.yaml:4",
        ],
        "shell: {deny: [halt]}": ["3:9: shell.deny: a list overrides a list of base.yaml:3"],
        "tools: [{match: get_mail, read_only: false}]": [],
        "tools: !replace [{match: lookup, budget: {max_calls: 40}}]": [
            "3:1: tools: a list overrides a list of base.yaml:5"
        ],
    }.items():
        file = write("own.yaml", f"version: 1\nextends: ./base.yaml\n{text}")
        head, *shown = guardrails("policy", "check", file).stdout.splitlines()
        assert head.startswith(f"{file}: ok, "), text
        assert shown == [f"{file}:{one}" for one in told], text
        hints = json.loads(guardrails("policy", "check", "--json", file).stdout)["files"][0]["hints"]
        assert [f"{one['file']}:{one['line']}:{one['column']}: {one['message']}" for one in hints] == shown


def test_the_schema_beside_the_policies_is_current() -> None:
    current = guardrails("policy", "schema").stdout == (POLICIES / "policy.schema.json").read_text()
    assert current, "run: guardrails policy schema -o policies/policy.schema.json"


@table("file", sorted(POLICIES.glob("*.yaml")))
def test_a_shipped_policy_names_the_schema_for_editors(file: Path) -> None:
    assert file.read_text().startswith("# yaml-language-server: $schema=./policy.schema.json\n")


def test_the_schema_can_be_written_to_a_file(tmp_path: Path) -> None:
    written = guardrails("policy", "schema", "-o", str(tmp_path / "s.json"))
    assert (written.exit_code, written.stdout) == (0, "")
    assert (tmp_path / "s.json").read_text() == guardrails("policy", "schema").stdout


def test_a_chain_is_shown_in_order_with_what_is_said_of_single_tools(write: Any) -> None:
    shown = guardrails("policy", "show", write("own.yaml", OWN)).stdout
    guards = [line.split("guard: ")[1] for line in shown.splitlines() if "guard: " in line]
    assert guards[:3] == ["tool_filter", "validation", "budget, max_calls: 1000, max_elapsed: 604800.0"]
    assert 'match: ["search_*", "find_*"], cost_usd: 0.01, budget: max_calls: 3' in " ".join(shown.split())


def test_a_chain_is_data_for_another_program(write: Any) -> None:
    said = json.loads(guardrails("policy", "show", "--json", write("own.yaml", OWN)).stdout)
    assert said["mode"] == "observe"
    assert [guard["guard"] for guard in said["guards"]][:3] == ["tool_filter", "validation", "budget"]
    assert said["tools"][0] == {"match": ["search_*", "find_*"], "cost_usd": 0.01, "budget": {"max_calls": 3}}
    assert said["prices"] == {"small": {"input_mtok": 0.5, "output_mtok": 2.0}}


@table("text", [MISTAKEN, None])
def test_a_policy_that_cannot_be_used_is_not_shown(write: Any, tmp_path: Path, text: str | None) -> None:
    file = str(tmp_path / "none.yaml") if text is None else write("bad.yaml", text)
    shown = guardrails("policy", "show", file)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert file in shown.stderr


def test_a_policy_that_stops_every_call_is_shown_so(write: Any) -> None:
    file = write("own.yaml", "version: 1\nstop: the key leaked\n")
    assert "stop      the key leaked" in guardrails("policy", "show", file).stdout
    assert json.loads(guardrails("policy", "show", "--json", file).stdout)["stop"] == "the key leaked"


@table(
    ("text", "lines"),
    [
        ("budget: {max_calls: 5, max_elapsed: 9s}\n", []),
        ("budget:\n  max_turns: 5\n  max_tokens: 9\n", ["3:3: budget.max_turns", "4:3: budget.max_tokens"]),
        ("budget: {max_tokens: 9}\ntools: [{match: a, tokens: 3}]\n", []),
        ("scopes: {user: {budget: {max_tokens: 9}}}\n", ["2:26: scopes.user.budget.max_tokens"]),
        ("tools: [{match: a, budget: {max_tokens: 9}}]\n", ["2:29: tools.0.budget.max_tokens"]),
        ("tools: [{match: a, timeout: 9s}]\n", []),
        ("extends: default\n", []),
    ],
)
def test_a_limit_that_a_host_cannot_hold_is_refused_for_that_host(text: str, lines: list[str], tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"version: 1\n{text}")
    for host in ("mcp", "fastmcp", "proxy"):
        shown = CliRunner().invoke(app, ["policy", "check", "--host", host, str(file)])
        found = re.findall(rf"{re.escape(str(file))}:(\S+ \S+): `{host}` tells of no model response", shown.stdout)
        assert (shown.exit_code, found) == (int(bool(lines)), lines)
    shown = CliRunner().invoke(app, ["policy", "check", "--host", "claude-agent-sdk", str(file)])
    assert ("tools.0.timeout: `claude-agent-sdk` ends no tool that runs" in shown.stdout) is ("timeout" in text)
    assert CliRunner().invoke(app, ["policy", "check", "--host", "langchain", str(file)]).exit_code == 0
    assert CliRunner().invoke(app, ["policy", "check", "--host", "lnagchain", str(file)]).exit_code == 2
