"""
Policy files: found, extended, and checked with every mistake at its place.
"""

import contextlib
import os
import tempfile

from pathlib import Path
from typing import Any, ClassVar

import jsonschema_rs
import pytest
import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Guard, Policy, PolicyError, guard
from tests.tables import table


FILES = Path(__file__).parent / "files"
WRONG = ("yes", "true", "1:30", "2024-01-01")
VERSION = "write `version: 1`, the format that this release reads, or upgrade toolcall-guardrails, got"


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


def loads(text: str) -> Policy:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "p.yaml")
        path.write_text(text, encoding="utf-8")
        return Policy.load(path, guards=[Watch])


def mistakes_of(text: str) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        loads(text)

    return [mistake.split("\n", 1)[0].partition("p.yaml:")[2] for mistake in caught.value.mistakes]


def test_nine_mistakes_of_one_file_are_reported_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.load(FILES / "nine.yaml")

    assert f"{caught.value}\n".replace(f"{FILES}{os.sep}", "") == (FILES / "nine.txt").read_text(encoding="utf-8")
    assert len(caught.value.mistakes) == 9


def test_a_valid_file_gives_the_settings() -> None:
    policy = Policy.load(FILES / "example.yaml")

    assert policy.chain.guards[0] == Budget(max_calls=40, max_turns=20, max_cost_usd=0.5, max_elapsed=600.0)
    assert {model: price.input_mtok for model, price in policy.prices.items()} == {"gpt-5": 1.25, "local": 0.0}
    assert [rule.match for rule in policy.chain.rules][-1] == ("*",)
    assert policy.chain.plan("wait").timeout_ms == 60_000


DURATION, SIZE = "write 500ms, 30s, 10m, 24h or 7d", "write 65536, 512B, 64KiB, 4MiB or 1GiB"
LIMIT = "`$limt` stands for nothing in any message, did you mean `limit`?"


@table(
    ("line", "expected"),
    [
        # Values of a wrong kind, and how to write them.
        *(
            (f"budget: {{max_calls: {wrong}}}", f"2:21: budget.max_calls: not a whole number: got `{wrong}`")
            for wrong in WRONG
        ),
        ('budget: {max_calls: "20"}', '2:21: budget.max_calls: not a whole number: write 20, got `"20"`'),
        ("budget: {max_calls: 200_000}", "2:21: budget.max_calls: not a whole number: write 200000, got `200_000`"),
        ("budget: {max_calls: 20.0}", "2:21: budget.max_calls: not a whole number: write 20, got `20.0`"),
        ("budget: {max_calls: [20]}", "2:21: budget.max_calls: not a whole number: got a list"),
        ('budget: {max_cost_usd: "0.5"}', '2:24: budget.max_cost_usd: not a number: write 0.5, got `"0.5"`'),
        ("budget: 20", "2:9: budget: not a map of keys: got `20`"),
        ("tools: {match: x}", "2:8: tools: not a list: got a map"),
        ("tools: [x]", "2:9: tools.0: not a map of keys: got `x`"),
        ("shell: {deny: reason}", '2:15: shell.deny: not a list: write ["reason"], got `reason`'),
        ("shell: {deny: [a, 5]}", '2:19: shell.deny.1: not text: write "5", got `5`'),
        ("tools: [{match: x, read_only: on}]", "2:31: tools.0.read_only: not true or false: write true, got `on`"),
        ("tools: [{match: x, read_only: No}]", "2:31: tools.0.read_only: not true or false: write false, got `No`"),
        ("tools: [{match: x, read_only: 1}]", "2:31: tools.0.read_only: not true or false: write true, got `1`"),
        ("tools: [{match: }]", "2:17: tools.0.match: not text or a list: got nothing"),
        ("scopes: [user]", "2:9: scopes: not a map of keys: got a list"),
        # Values of the kind that are wrong.
        ("budget: {max_calls: -1}", "2:21: budget.max_calls: must be at least 0, got `-1`"),
        ("budget: {max_elapsed: 0s}", "2:23: budget.max_elapsed: must be above 0, got `0s`"),
        ("truncate: {max_bytes: 64KB}", f"2:23: truncate.max_bytes: not a size: {SIZE}, got `64KB`"),
        ("truncate: {max_bytes: }", f"2:23: truncate.max_bytes: not a size: {SIZE}, got nothing"),
        ("tools: [{match: x, timeout: soon}]", f"2:29: tools.0.timeout: not a duration: {DURATION}, got `soon`"),
        (
            "duplicates: {rule: evidance}",
            "2:20: duplicates.rule: not one of `always`, `evidence`: got `evidance`, did ",
        ),
        ("tools: [{match: [a, '']}]", "2:21: tools.0.match.1: a glob that matches no name: "),
        ("tool_filter: {deny: ['rm[']}", "2:22: tool_filter.deny.0: a glob that matches no name: "),
        (
            "tools: [{match: x, parameters: {type: strng}}]",
            "2:32: tools.0.parameters: the schema of the arguments is not",
        ),
        # Keys that are not there, or are missing.
        ("budget: {max_call: 20}", "2:10: unknown key `max_call`, did you mean `max_calls`?"),
        ("budget: {Max-Calls: 20}", "2:10: unknown key `Max-Calls`, did you mean `max_calls`?"),
        ("max_cost_usd: 2", "2:1: unknown key `max_cost_usd`, did you mean `budget.max_cost_usd`?"),
        ("denials: {frobnicate: 1}", "2:11: unknown key `frobnicate`, known here: `mode`, `max_turns_in_a_row`"),
        (
            "guards: {budget: {}}",
            "2:1: unknown key `guards`: a guard is a key by its own name, `budget: {max_calls: 20}`, a",
        ),
        ("tools: [{match: x, growth: {}}]", "2:20: unknown key `growth`"),
        ("tools: [{match: x, budget: {final_answer_reserve_usd: 1}}]", "2:29: unknown key `final_answer_reserve_usd`"),
        ("tools: [{read_only: true}]", "2:9: missing key `match`"),
        ("prices: {m: {output_mtok: 1}}", "2:10: missing key `input_mtok`"),
        ("prices: {a: .inf}", "2:13: prices.a: not a map of keys: got `.inf`"),
        ("scopes: {user: {budget: {max_turns: 1}}}", "2:26: unknown key `max_turns`"),
        ("scopes: {user: {streak: {}}}", "2:17: unknown key `streak`, known here: `budget`, `growth`, `rate`"),
        # What does not go together, or names nothing.
        ("watch: {window: 1, rule: evidence}", "2:8: watch: evidence needs a window of at least 2, got `1`"),
        ("scopes: {User: {budget: {max_calls: 1}}}", "2:10: a scope is named like `user`"),
        ("scopes: {rate: {budget: {max_calls: 1}}}", "2:10: a scope is named like `user`"),
        ("scopes: {user: {}}", "2:16: scopes.user: a scope without guards limits nothing"),
        ("messages: {budget.max_cals: {message: x}}", "2:12: no guard says `budget.max_cals`, did you mean"),
        ("messages: {user.budget.max_cals: {message: no}}", "2:12: no guard says `user.budget.max_cals`"),
        ("messages: {budget.max_calls: {message: $limt}}", f"2:40: messages.budget.max_calls.message: {LIMIT}"),
        ("messages: {budget.max_calls: {mesage: x}}", "2:31: unknown key `mesage`, did you mean `message`?"),
    ],
)
def test_a_mistake_names_its_place_what_is_wrong_and_how_to_write_it(line: str, expected: str) -> None:
    [said] = mistakes_of(f"version: 1\n{line}\n")
    assert said.startswith(expected)


@table(
    ("text", "expected"),
    [
        ("", "1:1: the file is empty"),
        ("# nothing\n", "1:1: the file is empty"),
        ("---\n", "2:1: not a map of keys: got nothing"),
        ("- version: 1\n", "1:1: not a map of keys: got a list"),
        ("version 1\n", "1:1: not a map of keys: got `version 1`"),
        ("mode: off\n", f"1:1: {VERSION} no version"),
        (
            "version: 2\n",
            f"1:10: {VERSION} `2`",
        ),
        ("version: 0\n", f"1:10: {VERSION} `0`"),
        ('version: "1"\n', f'1:10: {VERSION} `"1"`'),
        ("version: 1.0\n", f"1:10: {VERSION} `1.0`"),
        ("version: true\n", f"1:10: {VERSION} `true`"),
        ("version:\n  - 1\n", f"1:1: {VERSION} a list"),
        ("version: 01\n", f"1:10: {VERSION} `01`"),
        ("{}", f"1:1: {VERSION} no version"),
    ],
)
def test_a_file_without_a_readable_version_is_refused(text: str, expected: str) -> None:
    assert mistakes_of(text) == [expected]


def test_mistakes_of_all_extended_files_are_reported_each_in_its_own_file_but_of_what_is_replaced(
    tmp_path: Path,
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "top.yaml").write_text("version: 1\nextends: [sub/a.yaml, b.yaml]\nbudget: {max_calls: 3}\nmoed: off\n")
    (tmp_path / "sub" / "a.yaml").write_text("version: 1\nbudget: {max_calls: many, max_tokens: -1}\n")
    (tmp_path / "b.yaml").write_text("version: 1\nbudget:\n  max_turns: 3\n  max_elapsed: soon\n")

    with pytest.raises(PolicyError) as caught:
        Policy.load(tmp_path / "top.yaml")

    assert [mistake.split("\n")[0].removeprefix(f"{tmp_path}{os.sep}") for mistake in caught.value.mistakes] == [
        "top.yaml:4:1: unknown key `moed`, did you mean `mode`?",
        "sub/a.yaml:2:39: budget.max_tokens: must be at least 0, got `-1`",
        "b.yaml:4:16: budget.max_elapsed: not a duration: write 500ms, 30s, 10m, 24h or 7d, got `soon`",
    ]


def test_a_file_need_not_be_whole_when_what_it_extends_completes_it(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("version: 1\nwatch: {rule: evidence, window: 9}\n")
    (tmp_path / "b.yaml").write_text("version: 1\nwatch: {window: 1}\n")
    (tmp_path / "top.yaml").write_text("version: 1\nextends: [b.yaml, a.yaml]\nwatch: {window: 3}\n")
    (tmp_path / "low.yaml").write_text("version: 1\nextends: [a.yaml, b.yaml]\n")

    assert list(Policy.load(tmp_path / "top.yaml", guards=[Watch]).chain.guards) == [Watch(rule="evidence", window=3)]

    with pytest.raises(PolicyError, match=r"b.yaml:2:8: watch: evidence needs a window of at least 2, got `1`"):
        Policy.load(tmp_path / "low.yaml", guards=[Watch])


def test_the_json_schema_is_that_of_a_file() -> None:
    schema = Policy.schema()
    validator = jsonschema_rs.validator_for(schema)
    budget = schema["$defs"]["Budget"]["properties"]

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["required"] == ["version"]
    assert schema["description"].startswith("A policy: ")
    assert budget["max_tool_calls"] == budget["max_calls"]
    assert all("description" in schema["properties"][key] for key in ("version", "extends"))
    assert validator.is_valid(yaml.safe_load((FILES / "example.yaml").read_text(encoding="utf-8")))
    assert validator.is_valid({"version": 1, "extends": ["strict"], "budget": {"max_tool_calls": 3}})
    wrongs: list[Any] = [{"version": 2}, {"budget": {}}, {"version": 1, "budgets": {}}]
    for wrong in wrongs:
        assert not validator.is_valid(wrong)
    assert not validator.is_valid({"version": 1, "budget": {"max_elapsed": "24 hours"}})


WORDS = st.sampled_from(
    [
        *("version", "extends", "budget", "max_calls", "tools", "match", "mode", "timeout", "strict"),
        *("1", "010", "yes", "30s", "null", "&a ", "*a", "<<", "#", '"', "'"),
        *("\n", "\n  ", "\n    ", " ", ", ", ": ", "- ", "{", "}", "[", "]"),
    ]
)


@given(st.lists(WORDS, max_size=40))
def test_any_text_is_a_policy_or_a_policy_error(words: list[str]) -> None:
    text = "version: 1\n" + "".join(words)

    with contextlib.suppress(PolicyError):
        assert isinstance(loads(text), Policy)
