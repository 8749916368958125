"""
`guardrails report` over records that the library itself wrote.
"""

import json

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy, Retryable, Summary, Tool, Truncate, Validation
from tests.cli.command import guardrails
from tests.pages import document


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture
def records(tmp_path: Path, clock: Any) -> Path:
    """
    A search that is repeated for nothing, a tool that times out once and then works, one that is called wrongly first.
    """
    path = tmp_path / "calls.jsonl"
    tools = [Tool(name="search"), Tool(name="rates"), Tool(name="book", parameters=SCHEMA)]
    policy = Policy([Budget(max_calls=1000), Validation(), Retryable(), Summary(), Truncate()], tools=tools)
    for number in range(30):
        failed = False

        def execute(tool: str, arguments: Any) -> Any:
            nonlocal failed
            clock.advance(0.5)
            if tool == "rates" and not failed:
                failed = True
                raise TimeoutError("no answer")
            return {"found": tool}

        with policy.session(f"s{number}", records=path, clock=clock) as session:
            for _ in range(4):
                session.call("search", {"q": "x"}, execute)
            for _ in range(2):
                session.call("rates", {"of": "USD"}, execute)
                clock.advance(60)
            session.call("book", {"n": "three"}, execute)
            session.call("book", {"n": 3}, execute)
    return path


def report(*arguments: object) -> Any:
    done = guardrails("report", *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a13_each_tool_has_its_figures_and_the_worst_goes_first(records: Path) -> None:
    found = json.loads(report(records, "--json"))
    tools = {tool["tool"]: tool for tool in found["tools"]}
    assert (found["calls"], found["tools"][0]["tool"]) == (240, "search")
    figures: dict[str, dict[str, Any]] = {
        "search": {"calls": 120, "pointless_second": 30, "pointless_later": 60, "duplicate_rate": 0.75},
        "rates": {"errors": {"timeout": 30}, "retries": 30, "retry_success": 1.0},
        "book": {"validation_errors": 30, "self_correction_rate": 1.0},
    }
    assert {name: {key: tools[name][key] for key in own} for name, own in figures.items()} == figures
    shown = report(records, "-q")
    assert "Redesign first" in shown
    assert "1. search: " in shown


def test_what_is_suggested_is_a_policy_with_its_evidence_and_of_one_reading_with_page_and_json(
    records: Path, tmp_path: Path
) -> None:
    html, path = tmp_path / "out.html", tmp_path / "overrides.yaml"
    done = guardrails("report", records, "--html", html, "--suggest", "-o", path, "--json", "-q")
    assert f"1 setting for 1 tool written to `{path}`" in done.stderr
    assert f"A page is written to `{html}`.\n" in done.stderr
    assert html.stat().st_mode & 0o077 == 0, "it is its owner's"
    found = json.loads(done.stdout)
    (one,) = found["suggestions"]
    assert list(one["settings"]) == ["duplicates"]
    assert document(html.read_text()) == {"command": "report", "data": found}
    assert one["evidence"]["duplicates"] in path.read_text()
    assert "# 90 of 90 repeats within " in path.read_text()
    printed = report(records, "--suggest", "-q")
    for text in (path.read_text(), printed):
        path.write_text(text)
        (rule, *_) = Policy.load(path).chain.rules
        assert (rule.match, rule.guards["duplicates"]["rule"]) == (("search",), "always")


def test_a_policy_of_ones_own_is_extended_from_where_the_file_stands(records: Path, tmp_path: Path) -> None:
    own, out = tmp_path / "own" / "policy.yaml", tmp_path / "made" / "overrides.yaml"
    own.parent.mkdir()
    out.parent.mkdir()
    own.write_text("version: 1\nextends: default\ntools: [{match: rates, timeout: 5s, retryable: {max_retries: 1}}]\n")
    assert f"--compare {out}" in report(records, "--policy", own, "--suggest", "-o", out, "-q")
    policy = Policy.load(out)
    assert "extends: ../own/policy.yaml" in out.read_text()
    assert policy.chain.plan("rates").timeout_ms == 5_000
    assert policy.chain.rules[0].match == ("search",)
