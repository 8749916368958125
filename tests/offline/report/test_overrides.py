"""
The suggestions as a policy file. What records say in it is data: it steers neither the file nor a terminal.
"""

from pathlib import Path

import yaml

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrails import Duplicates, Policy
from guardrails.offline.report.suggestions import Suggestion, overrides, suggestion
from guardrails.offline.report.tally import Tally
from tests.tables import table


BASE = Policy([Duplicates(rule="evidence", window=20)])
RULE = {"duplicates": {"rule": "always", "window": 1}}
HOSTILE = (
    "a: {polling: true}|quote \" and \\ and ' in one|# no comment|a # comment|- a|*|a*b?[c]|"
    "!!python/object/apply:os.system|&anchor|*alias|%YAML 1.2|---|yes|null|1|1.0|0x1F|2026-01-01|~|"
    "=|<<| leading|trailing |🏨|検索|بحث|ﬁ|${HOME}|{{x}}|`a`|<script>"
)


def suggested(name: str) -> Suggestion | None:
    tally = Tally(name, always=[(1, True)] * 50, repeat_sessions=9)
    return suggestion(tally, BASE.chain.plan("any"))


def written(*names: str, seen: str = "1 call", replay: str = "guardrails replay") -> str:
    made = [one for one in map(suggested, names) if one is not None]
    return overrides(made, "default", seen, replay)


def matched(text: str, folder: Path) -> Policy:
    path = folder / "overrides.yaml"
    path.write_text(text, encoding="utf-8")
    return Policy.load(path)


@table("name", HOSTILE.split("|"))
def test_the_name_of_a_tool_is_matched_as_it_is_and_nothing_more(name: str, tmp_path: Path) -> None:
    policy = matched(written(name), tmp_path)
    (rule, *_) = policy.chain.rules
    assert rule.guards == RULE
    assert rule.declared == {}
    own = next(guard for guard in policy.chain.plan(name).guards if isinstance(guard, Duplicates))
    other = next(guard for guard in policy.chain.plan(f"{name}x").guards if isinstance(guard, Duplicates))
    assert (own.rule, other.rule) == ("always", "evidence")


@given(st.text(max_size=60))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_name_breaks_the_file(tmp_path: Path, name: str) -> None:
    text = written(name, "after")
    assert [line for line in text.splitlines() if line.startswith("extends:")] == ["extends: default"]
    tools = yaml.safe_load(text)["tools"]
    assert [set(entry) for entry in tools] == [{"match", "duplicates"}] * len(tools)
    assert len(tools) == (1 if suggested(name) is None else 2)
    assert not [c for c in text if not c.isprintable() and c != "\n"]


@table("name", ["a\nextends: observe", "a\r\nb", "a\x00b", "a\x1b[31m", "a\u2028b", "a\x85b", "\ud800"])
def test_a_name_with_line_breaks_or_controls_gets_no_rule(name: str) -> None:
    assert suggested(name) is None
    assert "Nothing is suggested" in written(name)


def test_a_path_with_a_line_break_stays_in_its_comment(tmp_path: Path) -> None:
    text = written("a", seen="x\nmode: off", replay="guardrails replay 'a\nmode: off'")
    assert matched(text, tmp_path).chain.mode == "enforce"
    assert "\nmode" not in text


def test_the_evidence_stands_above_each_setting() -> None:
    lines = written("a").splitlines()
    at = next(n for n, line in enumerate(lines) if line.strip().startswith("duplicates:"))
    assert lines[at - 1].strip() == (
        "# 50 of 50 repeats within 1 call brought nothing new (the others: 95 % sure < 7.2 %, allowed 10 %)"
    )


def test_without_suggestions_the_file_is_still_a_policy(tmp_path: Path) -> None:
    text = written()
    assert "Nothing is suggested" in text
    matched(text, tmp_path)
