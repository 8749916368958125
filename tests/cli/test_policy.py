"""
`guardrails policy check|schema|show|test`.
"""

import json

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import guardrails
from tests.tables import table


POLICIES = Path(__file__).parents[2] / "policies"
FILES = Path(__file__).with_name("files")
MISTAKEN = (FILES / "mistaken.yaml").read_text()
OWN = (FILES / "own.yaml").read_text()


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    monkeypatch.chdir(tmp_path)

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


def test_every_mistake_is_told_with_line_column_and_caret_and_hides_no_other_file(write: Any) -> None:
    good, bad = write("good.yaml", "version: 1\nbudget: {max_calls: 2}\n"), write("bad.yaml", MISTAKEN)
    checked, data = guardrails("policy", "check", bad, good), guardrails("policy", "check", "--json", bad, good)
    assert checked.exit_code == data.exit_code == 1
    lines = checked.stdout.splitlines()
    places = [(3, 3), (4, 16), (5, 20)]
    assert [line.split(": ")[0] for line in lines if line.startswith(bad)] == [f"{bad}:{n}:{m}" for n, m in places]
    assert "did you mean `max_calls`?" in lines[0]
    assert lines[1].endswith("max_cals: 20")
    assert lines[2].strip() == "^"
    assert f"{good}: ok, 1 guard" in lines
    said = json.loads(data.stdout)
    assert said["ok"] is False
    assert [(f["file"], f["ok"], f["guards"]) for f in said["files"]] == [(bad, False, None), (good, True, 1)]
    told = [(m["file"], m["line"], m["column"]) for m in said["files"][0]["mistakes"]]
    assert told == [(bad, *place) for place in places]


BASE = (FILES / "base.yaml").read_text()


def test_what_a_file_overrides_is_named_and_so_is_the_new_form_of_an_older_word(write: Any) -> None:
    write("base.yaml", BASE)
    for text, told in json.loads((FILES / "overrides.json").read_text()):
        file = write("own.yaml", f"version: 1\nextends: ./base.yaml\n{text}")
        head, *shown = guardrails("policy", "check", file).stdout.splitlines()
        assert head.startswith(f"{file}: ok, "), text
        assert shown == [f"{file}:{one}" for one in told], text
        hints = json.loads(guardrails("policy", "check", "--json", file).stdout)["files"][0]["hints"]
        assert [f"{one['file']}:{one['line']}:{one['column']}: {one['message']}" for one in hints] == shown


def test_the_schema_is_printed_or_written_and_the_one_beside_the_policies_is_current(tmp_path: Path) -> None:
    written = guardrails("policy", "schema", "-o", str(tmp_path / "s.json"))
    assert (written.exit_code, written.stdout) == (0, "")
    schema = (tmp_path / "s.json").read_text()
    assert schema == guardrails("policy", "schema").stdout
    current = schema == (POLICIES / "policy.schema.json").read_text()
    assert current, "run: guardrails policy schema -o policies/policy.schema.json"


def test_a_chain_is_shown_in_order_with_what_is_said_of_single_tools_and_why_it_stops_all(write: Any) -> None:
    file = write("own.yaml", OWN)
    shown = guardrails("policy", "show", file).stdout
    said = json.loads(guardrails("policy", "show", "--json", file).stdout)
    assert "guard: budget, max_calls: 1000, max_elapsed: 604800.0" in shown
    assert 'match: ["search_*", "find_*"], cost_usd: 0.01, budget: max_calls: 3' in " ".join(shown.split())
    assert "stop      the key leaked" in shown
    assert (said["mode"], said["stop"]) == ("observe", "the key leaked")
    assert [guard["guard"] for guard in said["guards"]][:3] == ["tool_filter", "validation", "budget"]
    assert said["tools"][0] == {"match": ["search_*", "find_*"], "cost_usd": 0.01, "budget": {"max_calls": 3}}
    assert said["prices"] == {"small": {"input_mtok": 0.5, "output_mtok": 2.0}}


POLICY = "version: 1\nbudget: {max_calls: 2}\n"
CASES = (FILES / "team.cases.yaml").read_text()
WRONG = (FILES / "wrong.yaml").read_text()
ONE = "1 case, 1 passed\n"


def test_the_shipped_policies_pass_their_cases() -> None:
    tested = guardrails("policy", "test")
    assert (tested.exit_code, tested.stderr) == (0, "")
    cases, passed = tested.stdout.removesuffix(" passed\n").split(" cases, ")
    assert int(cases) == int(passed) >= 18


def test_the_cases_of_a_policy_are_found_beside_it_and_chosen_by_a_part_of_their_name(write: Any) -> None:
    write("team.yaml", POLICY)
    write("team.cases.yaml", CASES)
    for more, told in {(): "2 cases, 2 passed\n", ("-k", "two"): ONE, ("-k", "REFUSED"): ONE}.items():
        tested = guardrails("policy", "test", "team.yaml", *more)
        assert (tested.exit_code, tested.stdout, tested.stderr) == (0, told, "")


def test_a_failed_case_is_one_line_and_exit_code_1(write: Any) -> None:
    named = ("team.yaml", "team.cases.yaml", "wrong.yaml")
    for name, text in zip(named, (POLICY, CASES, WRONG), strict=True):
        write(name, text)
    tested, data = guardrails("policy", "test", *named), guardrails("policy", "test", *named, "--json")
    assert tested.exit_code == data.exit_code == 1
    assert tested.stdout.splitlines() == [
        r"wrong.yaml:7: the second is refused: call `b\x1b[2J`: expected deny duplicates.window; decided allow",
        "3 cases, 2 passed, 1 failed",
    ]
    assert tested.stderr == "wrong.yaml: written for the policy `other`, run by `team.yaml`\n"
    said = json.loads(data.stdout)
    assert (said["ok"], said["cases"], said["passed"], said["failed"]) == (False, 3, 2, 1)
    [failure] = said["suites"][1]["cases"][0]["failures"]
    assert (failure["line"], failure["expected"], failure["decided"]) == (7, "deny duplicates.window", "allow")
