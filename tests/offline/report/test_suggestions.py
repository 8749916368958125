"""
Which settings the figures of one tool support, and the policy file of them. What records say in it is data: it steers neither the file nor
a terminal.
"""

from pathlib import Path
from typing import Any

import yaml

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrails import Duplicates, Policy, Tool
from guardrails.core.retries.model import Count
from guardrails.offline.report.suggestions import SESSIONS, Suggestion, overrides, suggestion
from guardrails.offline.report.tally import Tally
from tests.tables import table


EVIDENCE = Duplicates(rule="evidence", window=20)
ALWAYS = Duplicates(window=5)
TABLES = yaml.safe_load(Path(__file__).with_name("suggestions.yaml").read_text(encoding="utf-8"))


def suggested(tally: Tally, guard: Duplicates, **declared: Any) -> dict[str, Any]:
    """
    What is suggested for *tally* under a policy of *guard* that declares the tool so.
    """
    policy = Policy([guard], tools=[Tool(name=tally.tool, **declared)])
    made = suggestion(tally, policy.chain.plan(tally.tool))
    assert made is None or (list(made.evidence) == list(made.settings) and all(made.evidence.values()))
    return {} if made is None else made.settings


def test_a_tool_that_polls_gets_no_rule_against_repeats() -> None:
    tally = Tally("job", polls=Count(20, 20), poll_sessions=20, always=[(1, True)] * 200, repeat_sessions=9)
    assert suggested(tally, EVIDENCE, read_only=True) == {"repeats": "allow"}


@table("rule, repeats, expected", TABLES["repeats"])
def test_few_repeats_prove_nothing_and_one_that_brought_something_outweighs_many(
    rule: str, repeats: list[list[int]], expected: dict[str, Any] | None
) -> None:
    guard = ALWAYS if rule == "always" else EVIDENCE
    always = [(back, at < pointless) for back, n, pointless in repeats for at in range(n)]
    assert suggested(Tally("a", always=always, repeat_sessions=SESSIONS), guard).get("duplicates") == expected
    assert suggested(Tally("a", always=always, repeat_sessions=SESSIONS - 1), guard) == {}


def repeated(name: str) -> Suggestion | None:
    tally = Tally(name, always=[(1, True)] * 50, repeat_sessions=9)
    return suggestion(tally, Policy([EVIDENCE]).chain.plan("any"))


def written(*names: str, seen: str = "1 call", replay: str = "guardrails replay") -> str:
    return overrides([one for one in map(repeated, names) if one is not None], "default", seen, replay)


def loaded(text: str, folder: Path) -> Policy:
    path = folder / "overrides.yaml"
    path.write_text(text, encoding="utf-8")
    return Policy.load(path)


@table("name", TABLES["names"])
def test_the_name_of_a_tool_is_matched_as_it_is_and_nothing_more(name: str, tmp_path: Path) -> None:
    chain = loaded(written(name), tmp_path).chain
    assert (chain.rules[0].guards, chain.rules[0].declared) == ({"duplicates": {"rule": "always", "window": 1}}, {})
    plans = (chain.plan(name), chain.plan(f"{name}x"))
    rules = [guard.rule for plan in plans for guard in plan.guards if isinstance(guard, Duplicates)]
    assert rules == ["always", "evidence"]


@given(st.text(max_size=60))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_name_breaks_the_file(tmp_path: Path, name: str) -> None:
    text = written(name, "after")
    assert [line for line in text.splitlines() if line.startswith("extends:")] == ["extends: default"]
    tools = yaml.safe_load(text)["tools"]
    assert [set(entry) for entry in tools] == [{"match", "duplicates"}] * len(tools)
    assert len(tools) == (1 if repeated(name) is None else 2)
    assert not [c for c in text if not c.isprintable() and c != "\n"]


@table("name", TABLES["unnamed"])
def test_a_name_with_line_breaks_or_controls_gets_no_rule(name: str, tmp_path: Path) -> None:
    assert repeated(name) is None
    text = written(name)
    assert "Nothing is suggested" in text
    assert loaded(text, tmp_path).chain.mode == "enforce"


def test_the_evidence_stands_above_each_setting_and_a_path_stays_in_its_comment(tmp_path: Path) -> None:
    text = written("a", seen="x\nmode: off", replay="guardrails replay 'a\nmode: off'")
    assert loaded(text, tmp_path).chain.mode == "enforce"
    lines = [line.strip() for line in written("a").splitlines()]
    at = next(n for n, line in enumerate(lines) if line.startswith("duplicates:"))
    assert lines[at - 1] == (
        "# 50 of 50 repeats within 1 call brought nothing new (the others: 95 % sure < 7.2 %, allowed 10 %)"
    )
