"""
Settings of `Loops` that have keys of their own, and the old spelling of each.
"""

import copy
import json

from pathlib import Path
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Loops, Policy, PolicyError, Rule
from guardrails.core.guards.repeats.loops import SPELLINGS
from guardrails.policy.file import read
from guardrails.policy.file.document import other_names
from tests.tables import table


COUNTS = st.none() | st.integers(1, 9)
OLD = st.fixed_dictionaries({}, optional=dict.fromkeys(SPELLINGS, COUNTS))


def respelt(old: dict[str, Any]) -> dict[str, dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}
    for key, value in old.items():
        name, _, grade = SPELLINGS[key].partition(".")
        made.setdefault(name, {})[grade] = value
    return made


def written(folder: Path, settings: dict[str, Any], **rest: Any) -> Policy:
    path = folder / "policy.yaml"
    path.write_text(json.dumps({"version": 1, "loops": settings, **rest}))
    return Policy.load(path)


@given(OLD)
def test_both_spellings_are_one_guard_in_code(old: dict[str, Any]) -> None:
    made: Any = Loops
    assert made(**old) == made(**respelt(old))
    assert hash(made(**old)) == hash(made(**respelt(old)))


@given(OLD, OLD)
def test_both_spellings_are_one_policy_in_a_file_and_in_a_rule_of_it(
    tmp_path_factory: pytest.TempPathFactory, old: dict[str, Any], ruled: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("policies")
    before = written(folder, old, tools=[{"match": "a", "loops": ruled}])
    after = written(folder, respelt(old), tools=[{"match": "a", "loops": respelt(ruled)}])
    assert before.chain.guards == after.chain.guards
    assert before.chain.plan("a").guards == after.chain.plan("a").guards


@given(OLD, OLD)
def test_both_spellings_merge_key_by_key_with_the_policy_that_is_extended(
    tmp_path_factory: pytest.TempPathFactory, below: dict[str, Any], above: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("policies")
    made: Any = Loops
    (folder / "old.yaml").write_text(json.dumps({"version": 1, "loops": below}))
    (folder / "new.yaml").write_text(json.dumps({"version": 1, "loops": respelt(below)}))
    for base, over in (("./old.yaml", respelt(above)), ("./new.yaml", above)):
        assert list(written(folder, over, extends=base).chain) == [made(**{**below, **above})]


def test_what_is_not_given_of_a_map_keeps_its_default() -> None:
    assert Loops(cycle={"deny": 9}).cycle == {"nudge": 2, "deny": 9}
    assert str(Loops(cycle={"deny": 9})) == "Loops(cycle={'nudge': 2, 'deny': 9})"
    assert Loops(cycle={"nudge": 2}) == Loops()


def test_a_rule_lies_upon_the_policy_and_upon_later_rules_key_by_key() -> None:
    rules = [
        Rule(match="a", guards={"loops": {"cycle": {"deny": 9}}}),
        Rule(match="*", guards={"loops": {"cycle": {"nudge": None, "deny": 8}}}),
    ]
    chain = Policy([Loops(empty={"deny": 5})], rules=rules).chain
    assert chain.plan("a").guards == (Loops(empty={"deny": 5}, cycle={"nudge": None, "deny": 9}),)
    assert chain.plan("b").guards == (Loops(empty={"deny": 5}, cycle={"nudge": None, "deny": 8}),)


@table(
    ("settings", "said"),
    [
        ({"cycle": {"nudge": 1}, "cycle_nudge": 2}, "`cycle.nudge` is given twice, once as `cycle_nudge`"),
        ({"cycle_nudge": 2, "cycle": {"nudge": 1}}, "`cycle.nudge` is given twice, once as `cycle_nudge`"),
        ({"cycle_nudge": 2, "cycle": 3}, "`cycle` is given twice, once as `cycle`"),
    ],
)
def test_a_key_in_both_spellings_is_refused_in_code(settings: Any, said: str) -> None:
    made: Any = Loops
    with pytest.raises(TypeError) as raised:
        made(**settings)
    assert str(raised.value) == said
    with pytest.raises(PolicyError) as mistakes:
        Policy(rules=[Rule(match="a", guards={"loops": settings})])
    assert f"rules.0.loops: {said}" in mistakes.value.mistakes


@table(
    ("lines", "said"),
    [
        ("cycle: {nudge: 1}\n  cycle_nudge: 2", "4:3: key `cycle_nudge` is `cycle.nudge` by another name"),
        ("cycle_nudge: 2\n  cycle: {nudge: 1}", "4:11: key `cycle.nudge` is `cycle_nudge` by another name"),
        ("cycle: 2\n  cycle_nudge: 2", "4:3: key `cycle_nudge` is `cycle.nudge` by another name"),
        ("cycle_nudge: 2\n  cycle: 2", "4:3: key `cycle` is `cycle_nudge` by another name"),
    ],
)
def test_a_key_in_both_spellings_is_a_mistake_of_a_file_with_its_place(lines: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(f"version: 1\nloops:\n  {lines}\n")
    with pytest.raises(PolicyError) as raised:
        Policy.load(path)
    found = [mistake for mistake in raised.value.mistakes if "given twice (first on line 3)" in mistake]
    assert [mistake.startswith(f"{path}:{said}") for mistake in found] == [True]


@table(
    ("settings", "said"),
    [
        ({"cycle": {"nuge": 1}}, "loops.cycle.nuge: extra inputs are not permitted"),
        ({"cycle": {"deny": 0}}, "loops.cycle.deny: input should be greater than or equal to 1"),
        ({"cycle": 3}, "loops.cycle: input should be a valid dictionary"),
        ({"wait": {"deny": 3}}, "loops.wait.deny: extra inputs are not permitted"),
    ],
)
def test_a_map_that_is_not_valid_is_told_of(settings: Any, said: str) -> None:
    with pytest.raises(PolicyError) as raised:
        Policy([Loops(**settings)])
    assert str(raised.value).startswith(said)


def test_each_old_key_is_told_of_with_its_new_spelling_and_its_place(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nloops: {cycle_nudge: 2}\ntools:\n  - {match: a, loops: {empty_deny: null}}\n")
    told = [str(mistake).splitlines()[0] for mistake in read(path, other_names=other_names()).outdated]
    assert told == [
        f"{path}:2:9: hint: `cycle_nudge` is written `cycle: {{nudge: 2}}` now",
        f"{path}:4:24: hint: `empty_deny` is written `empty: {{deny: null}}` now",
    ]


def test_a_map_does_not_change_and_is_handed_on_whole() -> None:
    held: Any = Loops().cycle
    with pytest.raises(TypeError, match="do not change"):
        held.update(nudge=1)
    with pytest.raises(TypeError, match="do not change"):
        held["nudge"] = 1
    again = copy.deepcopy(held)
    assert (type(again), again) == (type(held), held)
