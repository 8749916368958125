"""
Policy files put together with what they extend.
"""

import os

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy
from guardrails.core.values.errors import PolicyError
from guardrails.policy.document import Document
from guardrails.policy.file import plain
from tests.tables import table


FILES = Path(__file__).parent / "files"


def mistakes_of(document: Document, folder: Path) -> list[str]:
    lines = [str(mistake).split("\n", 1)[0] for mistake in document.mistakes]

    return [line.replace(f"{folder}{os.sep}", "") for line in lines]


def data_of(document: Document) -> Any:
    return plain(document.root)


def written(folder: Path, text: str) -> Document:
    (folder / "t.yaml").write_text(text)

    return Document(folder / "t.yaml")


def test_later_files_win_maps_merge_and_rules_add_up() -> None:
    document = Document(FILES / "team.yaml")

    assert data_of(document) == {
        "budget": {"max_calls": 20, "max_cost_usd": 0.5, "max_elapsed": "10m"},
        "duplicates": {"rule": "always", "window": 5},
        "tools": [
            {"match": "search", "timeout": "30s"},
            {"match": "read_*", "read_only": True},
            {"match": "list_*", "read_only": True},
        ],
    }
    assert [Path(source.name).name for source in document.sources] == [
        "team.yaml",
        "strict.yaml",
        "default.yaml",
        "money.yaml",
    ]
    assert document.mistakes == []


def rules_of(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(f"version: 1\n{text}\n")

    document = Document(folder / "own.yaml")
    assert document.mistakes == []

    return [rule["match"] for rule in data_of(document).get("tools", [])]


def test_the_rules_of_a_file_stand_before_those_of_what_it_extends(tmp_path: Path) -> None:
    a, b = "tools: [{match: a}]", "extends: ./a.yaml\ntools: [{match: b}]"
    c = "extends: ./a.yaml\ntools: [{match: c}]"

    for own, found in {
        "extends: ./b.yaml\ntools: [{match: own}]": ["own", "b", "a"],
        "extends: ./b.yaml": ["b", "a"],
        "extends: ./b.yaml\ntools: []": ["b", "a"],
        "extends: ./b.yaml\ntools: !replace [{match: own}]": ["own"],
        "extends: ./b.yaml\ntools: !replace []": [],
        "extends: ./b.yaml\ntools:\n  # - match: own": ["b", "a"],
        "extends: [./b.yaml, ./c.yaml]\ntools: [{match: own}]": ["own", "c", "b", "a"],
        "extends: [./c.yaml, ./a.yaml]": ["c", "a"],
    }.items():
        assert rules_of(tmp_path, a=a, b=b, c=c, own=own) == found, own


def test_a_mistake_in_a_rule_is_told_once_with_its_number_among_all(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("version: 1\ntools: [{match: a}, {match: b, timeout: soon}]\n")
    (tmp_path / "own.yaml").write_text(
        "version: 1\nextends: ./base.yaml\ntools: [{match: c}, {match: d, tmeout: 5s}]\n"
    )

    with pytest.raises(PolicyError) as caught:
        Policy.load(tmp_path / "own.yaml")

    told = [mistake.split("\n")[0].removeprefix(f"{tmp_path}{os.sep}") for mistake in caught.value.mistakes]
    assert told == [
        "own.yaml:3:32: unknown key `tmeout`, did you mean `timeout`?",
        "base.yaml:2:41: tools.3.timeout: not a duration: write 500ms, 30s, 10m, 24h or 7d, got `soon`",
    ]


@table(("base", "own"), [("max_calls", "max_tool_calls"), ("max_tool_calls", "max_calls")])
def test_a_setting_replaces_what_another_file_said_of_it_by_another_name(base: str, own: str, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(f"version: 1\nbudget: {{{base}: 5}}\n")
    (tmp_path / "own.yaml").write_text(f"version: 1\nextends: ./base.yaml\nbudget: {{{own}: 9}}\n")
    [budget] = [guard for guard in Policy.load(tmp_path / "own.yaml").chain.guards if guard.name == "budget"]
    assert budget.settings() == {"max_calls": 9}


@table(
    ("base", "own", "said"),
    [
        ("{max_cost_usd: 1, on_unpriced: warn}", "{max_calls: 5}", "warn"),
        ("{max_cost_usd: 1, on_unpriced: warn}", "{max_cost_usd: 2}", None),
        ("{max_cost_usd: 1, on_unpriced: warn}", "{max_total_cost_usd: 2}", None),
        ("{max_cost_usd: 1, on_unpriced: warn}", "{max_cost_usd: 2, on_unpriced: warn}", "warn"),
        ("{max_cost_usd: 1, on_unpriced: deny}", "{on_unpriced: warn}", "warn"),
        ("{on_unpriced: warn}", "{max_cost_usd: 2}", "warn"),
    ],
)
@table("place", ["budget: SETTINGS", "scopes: {user: {budget: SETTINGS}}"])
def test_a_cap_that_a_file_writes_is_not_softened_by_what_was_said_of_another(
    base: str, own: str, said: str | None, place: str, tmp_path: Path
) -> None:
    (tmp_path / "base.yaml").write_text(f"version: 1\n{place.replace('SETTINGS', base)}\n")
    (tmp_path / "own.yaml").write_text(f"version: 1\nextends: ./base.yaml\n{place.replace('SETTINGS', own)}\n")
    document = Document(tmp_path / "own.yaml")
    data = data_of(document) if "budget" in data_of(document) else data_of(document)["scopes"]["user"]

    assert document.mistakes == []
    assert data["budget"].get("on_unpriced") == said


def test_a_circle_of_extends_shows_its_chain() -> None:
    assert mistakes_of(Document(FILES / "circle" / "a.yaml"), FILES) == [
        (
            "circle/c.yaml:2:10: extends: goes in a circle, "
            "`circle/a.yaml` -> `circle/b.yaml` -> `circle/c.yaml` -> `circle/a.yaml`"
        )
    ]


def test_a_file_that_two_files_extend_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("version: 1\nmode: wrong\n")

    for i in range(12):
        below = "base" if i == 0 else f"l{i - 1}"
        (tmp_path / f"l{i}.yaml").write_text(f"version: 1\nextends: [./{below}.yaml, ./{below}.yaml]\n")

    document = Document(tmp_path / "l11.yaml")

    assert len(document.sources) == 13
    assert data_of(document) == {"mode": "wrong"}


@table(
    ("extends", "expected"),
    [
        ("strikt", "2:10: extends: no policy named `strikt`, did you mean `strict`?"),
        ("[strict, ./nowhere.yaml]", "2:19: extends: no policy file `"),
        *((nowhere, "2:10: extends: no policy file `") for nowhere in ("./", '"a\\0b"', '""')),
        ("5", '2:10: extends: not text or a list: write "5", got `5`'),
        ("", "2:9: extends: not text or a list: got nothing"),
        ("{a: b}", "2:10: extends: not text or a list: got a map"),
        ("[strict, [strict]]", "2:19: extends.1: not text: got a list"),
    ],
)
def test_a_parent_that_is_missing_or_no_name_is_a_mistake_at_its_line(
    tmp_path: Path, extends: str, expected: str
) -> None:
    file = tmp_path / "top.yaml"
    file.write_text(f"version: 1\nextends: {extends}\n")
    with pytest.raises(PolicyError) as caught:
        Policy.load(file)
    [mistake] = caught.value.mistakes
    assert mistake.startswith(f"{file}:{expected}")


SECRET = "hunter2-is-the-password"


@table(
    "content",
    [
        f"root:{SECRET}:0:0\n",
        f"{SECRET}\n",
        f"password: {SECRET}\n",
        f"version: '3'\nservices: {{db: {{password: {SECRET}}}}}\n",
        f"- {SECRET}\n",
        f"a: [{SECRET}\n",
        f"\tpassword={SECRET}\n",
        f"PASSWORD={SECRET}\0OTHER=1",
        f"password: &{SECRET} x\nb: *{SECRET}2\n",
        f"<<: {SECRET}\npassword: !{SECRET} x\n",
        f"{SECRET}: 1\n{SECRET}: 2\n",
        "",
    ],
)
def test_of_a_file_that_is_no_policy_nothing_is_shown(tmp_path: Path, content: str) -> None:
    (tmp_path / "secrets").write_text(content)
    (tmp_path / "top.yaml").write_text("version: 1\nextends: ./secrets\n")

    with pytest.raises(PolicyError) as caught:
        Policy.load(tmp_path / "top.yaml")

    (told,) = caught.value.mistakes
    assert "top.yaml:2:10: extends: " in told
    assert "is no policy that can be read" in told
    assert SECRET not in str(caught.value)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "there", ["/proc/self/environ", "/proc/kmsg", "/dev/stdin", "link", "fifo", "/sys/kernel/notes"]
)
def test_what_is_no_file_of_a_disk_is_not_opened(tmp_path: Path, there: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/proc/self/environ")
    (tmp_path / "top.yaml").write_text(f"version: 1\nextends: {there if there[0] == '/' else './' + there}\n")

    with pytest.raises(PolicyError, match="no policy file") as caught:
        Policy.load(tmp_path / "top.yaml")

    assert len(caught.value.mistakes) == 1
