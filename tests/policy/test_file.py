"""
Policy files: found, put together with what they extend, and checked with every mistake at its place.
"""

import contextlib
import os

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import jsonschema_rs
import pytest
import yaml

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrails import Budget, Guard, Policy, PolicyError, guard
from guardrails.core.guards import GUARDS
from guardrails.policy.check import PARTS
from guardrails.policy.file import Document, find, plain, shipped
from guardrails.policy.reload import is_name
from tests.tables import table


FILES = Path(__file__).parent / "files"
MISTAKES = yaml.safe_load((FILES / "mistakes.yaml").read_text(encoding="utf-8"))


@guard
class Watch(Guard):
    """
    A guard whose settings go together.
    """

    codes: ClassVar[dict[str, tuple[str, ...]]] = {}
    window: int = 5
    rule: str = "always"

    @classmethod
    def check_settings(cls, settings: Any) -> None:
        if settings.get("rule") == "evidence" and settings.get("window", 5) < 2:
            raise ValueError(f"evidence needs a window of at least 2, got `{settings['window']}`")


def written(folder: Path, **texts: str) -> Path:
    """
    Writes files by their names, and returns the last one.
    """
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text if text.startswith("version") else f"version: 1\n{text}\n")
    return folder / f"{[*texts][-1]}.yaml"


def mistakes_of(file: Path) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        Policy.load(file, guards=[Watch])
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
    guards = {g.name: g for g in plan.guards}
    assert policy.chain.guards[0] == Budget(max_calls=40, max_turns=20, max_cost_usd=0.5, max_elapsed=600.0)
    assert {model: price.input_mtok for model, price in policy.prices.items()} == {"gpt-5": 1.25, "local": 0.0}
    assert policy.chain.plan("wait").timeout_ms == 60_000
    # First match first, key by key.
    assert (plan.tool.read_only, plan.tool.retryable, plan.tool.timeout) == (True, True, 0.5)
    assert [str(guards[name]) for name in ("duplicates", "retryable", "tools.budget")] == [
        *("Duplicates(window=3)", "Retryable(max_retries=1)", "ToolBudget(amount=2)"),
    ]
    assert (guards["summary"].mode, plan.deny_on_error) == ("off", False)
    assert not any(enforced for _, _, enforced, _ in plan.checks)
    # A declared classifier finds a failure that hides.
    session = ruled.session("s", clock=clock)
    envelope = session.call("web_get", {"city": "x"}, lambda *_: {"status": 404, "error": "nope"})
    assert (envelope.status, envelope.error_type) == ("error", "not_found")


def test_the_json_schema_is_that_of_a_file() -> None:
    schema = Policy.schema()
    validator, budget = jsonschema_rs.validator_for(schema), schema["$defs"]["Budget"]["properties"]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert (schema["required"], schema["description"][:10]) == (["version"], "A policy: ")
    assert budget["max_tool_calls"] == budget["max_calls"]
    assert {cls.name for cls in GUARDS} <= {*schema["properties"], *PARTS}
    assert all("description" in schema["properties"][key] for key in ("version", "extends"))
    right: list[Any] = [yaml.safe_load((FILES / "example.yaml").read_text(encoding="utf-8"))]
    right += [{"version": 1, "extends": ["strict"], "budget": {"max_tool_calls": 3}}]
    wrong: list[Any] = [{"version": 2}, {"budget": {}}, {"version": 1, "budgets": {}}]
    wrong += [{"version": 1, "budget": {"max_elapsed": "24 hours"}}]
    assert [validator.is_valid(one) for one in (*right, *wrong)] == [True] * 2 + [False] * 4


WORDS = st.sampled_from(
    [
        *("version", "extends", "budget", "max_calls", "tools", "match", "mode", "timeout", "strict"),
        *("1", "010", "yes", "30s", "null", "&a ", "*a", "<<", "#", '"', "'"),
        *("\n", "\n  ", "\n    ", " ", ", ", ": ", "- ", "{", "}", "[", "]"),
    ]
)


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
    package, own = tmp_path / "site" / "guardrails", tmp_path / "policies"
    package.mkdir(parents=True)
    assert shipped(package) == tmp_path / "site" / "policies"
    (package / "_policies").mkdir()
    assert shipped(package) == package / "_policies"
    own.mkdir()
    for place in (tmp_path / "mine.yaml", tmp_path / "strict.yaml", own / "mine.yaml"):
        place.write_text("version: 1\nmode: off\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolicyError) as caught:
        find("mine")
    assert str(caught.value) == (
        "no policy named `mine`; there are `agent`, `default`, `observe`, `shell`, `strict`; "
        "a file is written as a path, `./mine.yaml`"
    )
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


def test_later_files_win_maps_merge_and_rules_add_up() -> None:
    document = Document(FILES / "team.yaml")
    assert plain(document.root) == {
        "budget": {"max_calls": 20, "max_cost_usd": 0.5, "max_elapsed": "10m"},
        "duplicates": {"rule": "always", "window": 5},
        "tools": [
            {"match": "search", "timeout": "30s"},
            *({"match": name, "read_only": True} for name in ("read_*", "list_*")),
        ],
    }
    names = [Path(source.name).name for source in document.sources]
    assert (names, document.mistakes) == (["team.yaml", "strict.yaml", "default.yaml", "money.yaml"], [])


@table(
    ("own", "found"),
    [
        ("extends: ./b.yaml\ntools: [{match: own}]", ["own", "b", "a"]),
        ("extends: ./b.yaml", ["b", "a"]),
        ("extends: ./b.yaml\ntools: !replace [{match: own}]", ["own"]),
        ("extends: ./b.yaml\ntools: !replace []", []),
        ("extends: ./b.yaml\ntools:\n  # - match: own", ["b", "a"]),
        ("extends: [./b.yaml, ./c.yaml]\ntools: [{match: own}]", ["own", "c", "b", "a"]),
        ("extends: [./c.yaml, ./a.yaml]", ["c", "a"]),
    ],
)
def test_the_rules_of_a_file_stand_before_those_of_what_it_extends(own: str, found: list[str], tmp_path: Path) -> None:
    b, c = (f"extends: ./a.yaml\ntools: [{{match: {name}}}]" for name in "bc")
    data = merged(written(tmp_path, a="tools: [{match: a}]", b=b, c=c, own=own))
    assert [rule["match"] for rule in data.get("tools", [])] == found


@table(
    ("base", "own", "settings"),
    [
        # A setting replaces what another file has of it by another name.
        ("{max_calls: 5}", "{max_tool_calls: 9}", {"max_tool_calls": 9}),
        ("{max_tool_calls: 5}", "{max_calls: 9}", {"max_calls": 9}),
        # A cap that a file writes is not softened by what another file has of the cap it replaces.
        ("{max_cost_usd: 1, on_unpriced: warn}", "{max_calls: 5}", {"on_unpriced": "warn", "max_calls": 5}),
        ("{max_cost_usd: 1, on_unpriced: warn}", "{max_cost_usd: 2}", {}),
        ("{max_cost_usd: 1, on_unpriced: warn}", "{max_total_cost_usd: 2}", {"max_total_cost_usd": 2}),
        ("{max_cost_usd: 1, on_unpriced: warn}", "{max_cost_usd: 2, on_unpriced: warn}", {"on_unpriced": "warn"}),
        ("{max_cost_usd: 1, on_unpriced: deny}", "{on_unpriced: warn}", {"on_unpriced": "warn"}),
        ("{on_unpriced: warn}", "{max_cost_usd: 2}", {"on_unpriced": "warn"}),
    ],
)
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
    (tmp_path / "sub").mkdir()
    written(tmp_path / "sub", a="budget: {max_calls: many, max_tokens: -1}\ntools: [{match: a, timeout: soon}]")
    b = "budget:\n  max_turns: 3\n  max_elapsed: soon"
    top = (
        "extends: [sub/a.yaml, b.yaml]\nbudget: {max_calls: 3}\nmoed: off\ntools: [{match: c}, {match: d, tmeout: 5s}]"
    )
    assert mistakes_of(written(tmp_path, b=b, top=top)) == [
        "top.yaml:4:1: unknown key `moed`, did you mean `mode`?",
        "top.yaml:5:32: unknown key `tmeout`, did you mean `timeout`?",
        "sub/a.yaml:2:39: budget.max_tokens: must be at least 0, got `-1`",
        "sub/a.yaml:3:29: tools.2.timeout: not a duration: write 500ms, 30s, 10m, 24h or 7d, got `soon`",
        "b.yaml:4:16: budget.max_elapsed: not a duration: write 500ms, 30s, 10m, 24h or 7d, got `soon`",
    ]


def test_a_file_need_not_be_whole_when_what_it_extends_completes_it(tmp_path: Path) -> None:
    parts = {"a": "watch: {rule: evidence, window: 9}", "b": "watch: {window: 1}"}
    top = written(tmp_path, **parts, top="extends: [b.yaml, a.yaml]\nwatch: {window: 3}")
    assert list(Policy.load(top, guards=[Watch]).chain.guards) == [Watch(rule="evidence", window=3)]
    low = written(tmp_path, low="extends: [a.yaml, b.yaml]")
    assert mistakes_of(low) == ["b.yaml:2:8: watch: evidence needs a window of at least 2, got `1`"]


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


def secrets(word: str = "hunter2-is-the-password") -> Iterator[str]:
    yield from (f"root:{word}:0:0\n", f"{word}\n", f"password: {word}\n", f"- {word}\n", f"a: [{word}\n", "")
    yield from (f"version: '3'\nservices: {{db: {{password: {word}}}}}\n", f"\tpassword={word}\n")
    yield from (f"PASSWORD={word}\0OTHER=1", f"password: &{word} x\nb: *{word}2\n", f"{word}: 1\n{word}: 2\n")
    yield f"<<: {word}\npassword: !{word} x\n"


@table("content", secrets())
def test_of_a_file_that_is_no_policy_nothing_is_shown(tmp_path: Path, content: str) -> None:
    (tmp_path / "secrets").write_text(content)
    with pytest.raises(PolicyError) as caught:
        Policy.load(written(tmp_path, top="extends: ./secrets"))
    [mistake] = caught.value.mistakes
    assert "top.yaml:2:10: extends: " in mistake
    assert "is no policy that can be read" in mistake
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
    both = written(
        tmp_path, both="extends: ./parts.yaml\nenvelope: {form: merged, summary: {}}\nretryable: {max_retries: 1}"
    )
    assert merged(both) | {
        "retryable": {"max_retries": 1},
        "retry_budget": {"burst": 3},
        "envelope": "merged",
    } == merged(both)
    assert mistakes_of(written(tmp_path, twice="truncate: {}\nenvelope: {truncate: {}, frm: quiet}")) == [
        *("twice.yaml:3:12: `truncate` is given twice", "twice.yaml:3:26: unknown key `frm`, did you mean `form`?"),
    ]
