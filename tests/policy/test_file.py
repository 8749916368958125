"""
Policy files: found, put together with what they extend, and checked with every mistake at its place.
"""

import contextlib
import os
import re

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrails import Budget, Policy, PolicyError
from guardrails.core.guards import GUARDS
from guardrails.policy.check import PARTS
from guardrails.policy.file import Document, find, plain, shipped
from guardrails.policy.reload import is_name
from tests.tables import table


FILES = Path(__file__).parent / "files"
MISTAKES = yaml.safe_load((FILES / "mistakes.yaml").read_text(encoding="utf-8"))


def written(folder: Path, **texts: str) -> Path:
    """
    Writes files by their names, and returns the last one.
    """
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text if text.startswith("version") else f"version: 1\n{text}\n")
    return folder / f"{[*texts][-1]}.yaml"


def mistakes_of(file: Path) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        Policy.load(file)
    return [one.split("\n", 1)[0].removeprefix(f"{file.parent}{os.sep}") for one in caught.value.mistakes]


def merged(file: Path) -> Any:
    document = Document(file)
    assert document.mistakes == []
    return plain(document.root)


# One file


def test_nine_mistakes_of_one_file_are_reported_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.load(FILES / "nine.yaml")
    assert f"{caught.value}\n".replace(f"{FILES}{os.sep}", "") == (FILES / "nine.txt").read_text(encoding="utf-8")


@table(("line", "expected"), MISTAKES["lines"])
def test_a_mistake_names_its_place_what_is_wrong_and_how_to_write_it(line: str, expected: str, tmp_path: Path) -> None:
    [mistake] = mistakes_of(written(tmp_path, p=line))
    assert mistake.startswith(f"p.yaml:{expected}")


@table(("text", "expected"), MISTAKES["files"])
def test_a_file_without_a_readable_version_is_refused(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(text)
    assert mistakes_of(tmp_path / "p.yaml") == [f"p.yaml:{expected}"]


def test_a_valid_file_gives_the_settings(tmp_path: Path, clock: Any) -> None:
    policy, ruled = Policy.load(FILES / "example.yaml"), Policy.load(FILES / "rules.yaml")
    plan = ruled.chain.plan("fetch")
    guards = {g.name: str(g) for g in plan.guards}
    assert policy.chain.guards[0] == Budget(max_calls=40, max_turns=20, max_cost_usd=0.5, max_elapsed=600.0)
    assert {model: price.input_mtok for model, price in policy.prices.items()} == {"gpt-5": 1.25, "local": 0.0}
    # First match first, key by key.
    assert (plan.tool.read_only, plan.tool.retryable, plan.tool.timeout) == (True, True, 0.5)
    assert (guards["duplicates"], guards["retryable"]) == ("Duplicates(window=3)", "Retryable(max_retries=1)")
    assert (guards["tools.budget"], guards["summary"]) == ("ToolBudget(amount=2)", "Summary(mode='off')")
    assert not plan.deny_on_error
    assert not any(enforced for _, _, enforced, _ in plan.checks)
    # A declared classifier finds a failure that hides.
    envelope = ruled.session("s", clock=clock).call("web_get", {"city": "x"}, lambda *_: {"status": 404, "error": "no"})
    assert (envelope.status, envelope.error_type) == ("error", "not_found")


def test_the_json_schema_is_that_of_a_file() -> None:
    schema = Policy.schema()
    validator, budget = jsonschema_rs.validator_for(schema), schema["$defs"]["Budget"]["properties"]
    assert (schema["required"], schema["description"][:10]) == (["version"], "A policy: ")
    assert budget["max_tool_calls"] == budget["max_calls"]
    assert {cls.name for cls in GUARDS} <= {*schema["properties"], *PARTS}
    assert all("description" in schema["properties"][key] for key in ("version", "extends"))
    right: list[Any] = [yaml.safe_load((FILES / "example.yaml").read_text(encoding="utf-8"))]
    right += [{"version": 1, "extends": ["strict"], "budget": {"max_tool_calls": 3}}]
    wrong: list[Any] = [{"version": 2}, {"budget": {}}, {"version": 1, "budgets": {}}]
    wrong += [{"version": 1, "budget": {"max_elapsed": "24 hours"}}]
    assert [validator.is_valid(one) for one in (*right, *wrong)] == [True] * 2 + [False] * 4


KEYS = "version extends budget max_calls tools match mode timeout strict 1 010 yes 30s null"
WORDS = st.sampled_from([*KEYS.split(), *"\n {}[]#\"'", "\n  ", "\n    ", ", ", ": ", "- ", "&a ", "*a", "<<"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, max_size=40))
def test_any_text_is_a_policy_or_a_policy_error(tmp_path: Path, words: list[str]) -> None:
    with contextlib.suppress(PolicyError):
        assert isinstance(Policy.load(written(tmp_path, p="".join(words))), Policy)


# Names and paths


@table("text", ["", "./default", "default.yaml", "a/b", "..", "a\\b", "default\n", "a b"])
def test_anything_else_than_letters_is_a_path(text: str) -> None:
    assert not is_name(text)


def test_a_name_is_looked_for_in_the_package_and_never_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "guardrails"
    assert shipped(package) == tmp_path / "site" / "policies"
    (package / "_policies").mkdir(parents=True)
    assert shipped(package) == package / "_policies"
    (tmp_path / "policies").mkdir()
    for place in ("mine.yaml", "strict.yaml", "policies/mine.yaml"):
        (tmp_path / place).write_text("version: 1\nmode: off\n")
    monkeypatch.chdir(tmp_path)
    there = "there are `agent`, `default`, `observe`, `shell`, `strict`; a file is written as a path, `./mine.yaml`"
    with pytest.raises(PolicyError, match=f"^no policy named `mine`; {re.escape(there)}$"):
        find("mine")
    assert find("strict") == shipped() / "strict.yaml"
    assert find("./mine.yaml") == find(Path("mine.yaml")) == Path("mine.yaml")


@table("name", ["./nowhere.yaml", "", ".", "/", "a\0b.yaml", "x" * 5_000 + ".yaml", os.devnull, "./pipe.yaml"])
def test_what_is_no_file_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if not Path("pipe.yaml").exists():
        os.mkfifo("pipe.yaml")
    with pytest.raises(PolicyError, match="no policy file"):
        find(name)


# `extends`


def test_later_files_win_and_maps_merge() -> None:
    document = Document(FILES / "team.yaml")
    assert plain(document.root) == MISTAKES["team"]
    names = [Path(source.name).name for source in document.sources]
    assert (names, document.mistakes) == (["team.yaml", "strict.yaml", "default.yaml", "money.yaml"], [])


@table(("own", "found"), MISTAKES["added"])
def test_the_rules_of_a_file_stand_before_those_of_what_it_extends(own: str, found: list[str], tmp_path: Path) -> None:
    b, c = (f"extends: ./a.yaml\ntools: [{{match: {name}}}]" for name in "bc")
    data = merged(written(tmp_path, a="tools: [{match: a}]", b=b, c=c, own=own))
    assert [rule["match"] for rule in data.get("tools", [])] == found


@table(("base", "own", "settings"), MISTAKES["replaced"])
@table("place", ["budget: SETTINGS", "scopes: {user: {budget: SETTINGS}}"])
def test_a_setting_replaces_the_one_of_another_file(
    base: str, own: str, settings: dict[str, Any], place: str, tmp_path: Path
) -> None:
    own = f"extends: ./base.yaml\n{place.replace('SETTINGS', own)}"
    data = merged(written(tmp_path, base=place.replace("SETTINGS", base), own=own))
    budget = data.get("budget") or data["scopes"]["user"]["budget"]
    assert budget | settings == budget
    assert ("on_unpriced" in budget) is ("on_unpriced" in settings)
    assert len({"max_calls", "max_tool_calls"} & budget.keys()) <= 1


def test_the_mistakes_of_all_files_are_told_each_in_its_own_but_of_what_is_replaced(tmp_path: Path) -> None:
    *texts, expected = MISTAKES["several"]
    (tmp_path / "sub").mkdir()
    written(tmp_path / "sub", a=texts[0])
    assert mistakes_of(written(tmp_path, b=texts[1], top=texts[2])) == expected


def test_a_file_need_not_be_whole_when_what_it_extends_completes_it(tmp_path: Path) -> None:
    parts = {"a": "budget: {final_answer_reserve_usd: 1, max_cost_usd: 9}", "b": "budget: {max_cost_usd: 1}"}
    top = written(tmp_path, **parts, top="extends: [b.yaml, a.yaml]\nbudget: {max_cost_usd: 3}")
    assert list(Policy.load(top).chain.guards) == [Budget(max_cost_usd=3.0, final_answer_reserve_usd=1.0)]
    [mistake] = mistakes_of(written(tmp_path, low="extends: [a.yaml, b.yaml]"))
    assert mistake.startswith("b.yaml:2:9: budget: final_answer_reserve_usd ($1.00) must be below max_cost_usd")


def test_a_circle_shows_its_chain_and_a_file_that_two_extend_is_read_once(tmp_path: Path) -> None:
    [circle] = map(str, Document(FILES / "circle" / "a.yaml").mistakes)
    assert circle.replace(f"{FILES}{os.sep}", "").startswith(
        "circle/c.yaml:2:10: extends: goes in a circle, "
        "`circle/a.yaml` -> `circle/b.yaml` -> `circle/c.yaml` -> `circle/a.yaml`"
    )
    levels = {f"l{n}": f"extends: [./l{n - 1}.yaml, ./l{n - 1}.yaml]" for n in range(1, 13)}
    document = Document(written(tmp_path, l0="mode: wrong", **levels))
    assert (len(document.sources), plain(document.root)) == (13, {"mode": "wrong"})


@table(("extends", "expected"), MISTAKES["extends"])
def test_a_parent_that_is_missing_or_no_name_is_a_mistake_at_its_line(
    tmp_path: Path, extends: str, expected: str
) -> None:
    [mistake] = mistakes_of(written(tmp_path, top=f"extends: {extends}"))
    assert mistake.startswith(f"top.yaml:{expected}")


SECRET = "hunter2-is-the-password"


@table("content", [text.replace("SECRET", SECRET) for text in [*MISTAKES["secrets"], "PASSWORD=SECRET\0OTHER=1"]])
def test_of_a_file_that_is_no_policy_nothing_is_shown(tmp_path: Path, content: str) -> None:
    (tmp_path / "secrets").write_text(content)
    with pytest.raises(PolicyError) as caught:
        Policy.load(written(tmp_path, top="extends: ./secrets"))
    [mistake] = caught.value.mistakes
    assert re.search(r"top\.yaml:2:10: extends: .* is no policy that can be read", mistake)
    assert "hunter2" not in str(caught.value)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@table("there", ["/proc/self/environ", "/proc/kmsg", "/dev/stdin", "./link", "./fifo", "/sys/kernel/notes"])
def test_what_is_no_file_of_a_disk_is_not_opened(tmp_path: Path, there: str) -> None:
    if not (tmp_path / "fifo").exists():
        os.mkfifo(tmp_path / "fifo")
        (tmp_path / "link").symlink_to("/proc/self/environ")
    [mistake] = mistakes_of(written(tmp_path, top=f"extends: {there}"))
    assert "no policy file" in mistake


def test_a_key_has_parts_that_may_also_stand_by_themselves(tmp_path: Path) -> None:
    parts = "envelope: {form: quiet, fields: [progress], truncate: {max_bytes: 1KiB}}\nretryable: {budget: {burst: 3}}"
    alone = "envelope: quiet\nfields: [progress]\ntruncate: {max_bytes: 1KiB}\nretry_budget: {burst: 3}"
    assert merged(written(tmp_path, parts=parts)) == merged(written(tmp_path, alone=alone))
    assert Document(tmp_path / "alone.yaml").hints()[0].endswith("`fields` is now `envelope.fields`")
    over = "extends: ./parts.yaml\nenvelope: {form: merged, summary: {}}\nretryable: {max_retries: 1}"
    both = merged(written(tmp_path, both=over))
    assert (both["retryable"], both["retry_budget"], both["envelope"]) == ({"max_retries": 1}, {"burst": 3}, "merged")
    assert mistakes_of(written(tmp_path, twice="truncate: {}\nenvelope: {truncate: {}, frm: quiet}")) == [
        *("twice.yaml:3:12: `truncate` is given twice", "twice.yaml:3:26: unknown key `frm`, did you mean `form`?")
    ]
