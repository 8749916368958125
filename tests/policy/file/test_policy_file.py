"""
Policy files: found, extended, and checked with every mistake at its place.
"""

import contextlib
import os
import tempfile

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest
import yaml

from annotated_types import Ge
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, TypeAdapter

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.units import ByteSize, Duration
from guardrails.policy.file import json_schema, read, validate
from tests.tables import table


FILES = Path(__file__).parent / "files"
SHIPPED = FILES / "shipped"
CONFIG = ConfigDict(extra="forbid", strict=True, revalidate_instances="always", use_attribute_docstrings=True)

Mode = Literal["enforce", "observe", "off"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """
    End the session once a limit is used up.
    """

    __pydantic_config__ = CONFIG

    mode: Mode = "enforce"
    max_calls: Annotated[int, Ge(0)] | None = None
    """Tool calls of a session."""
    max_turns: Annotated[int, Ge(0)] | None = None
    max_cost_usd: Annotated[float, Ge(0)] | None = None
    max_elapsed: Annotated[Duration, Ge(1)] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Duplicates:
    __pydantic_config__ = CONFIG

    window: Annotated[int, Ge(1)] = 5
    rule: Literal["always", "evidence"] = "always"
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.rule == "evidence" and self.window < 2:
            raise ValueError(f"evidence needs a window of at least 2, got `{self.window}`")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    __pydantic_config__ = CONFIG

    match: str
    read_only: bool = False
    budget: Budget | None = None
    timeout: Duration | Literal["never"] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """
    The settings of a policy.
    """

    __pydantic_config__ = CONFIG

    mode: Mode = "enforce"
    budget: Budget | None = None
    duplicates: Duplicates | None = None
    tools: tuple[Rule, ...] = ()
    prices: dict[str, float] = field(default_factory=dict)
    max_bytes: ByteSize = 65_536


ADAPTER = TypeAdapter(Settings)
NAMES = {"budget": {"max_tool_calls": "max_calls", "max_tool_turns": "max_turns"}}


def load(path: Path, *, adapter: TypeAdapter[Any] = ADAPTER, other_names: Any = None) -> Any:
    return validate(read(path, other_names=other_names), adapter)


def loads(text: str, **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "p.yaml")
        path.write_text(text, encoding="utf-8")
        return load(path, **options)


def plain(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def mistakes_of(text: str, **options: Any) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        loads(text, **options)

    return [mistake.split("\n", 1)[0].partition("p.yaml:")[2] for mistake in caught.value.mistakes]


def mistakes_in(path: Path) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load(path)

    return [mistake.split("\n", 1)[0].replace(f"{FILES}{os.sep}", "") for mistake in caught.value.mistakes]


def test_nine_mistakes_of_one_file_are_reported_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        load(FILES / "nine.yaml")

    assert f"{caught.value}\n".replace(f"{FILES}{os.sep}", "") == (FILES / "nine.txt").read_text(encoding="utf-8")
    assert len(caught.value.mistakes) == 9


def test_a_valid_file_gives_the_settings() -> None:
    settings = load(FILES / "example.yaml")

    assert settings.budget == Budget(max_calls=40, max_turns=20, max_cost_usd=0.5, max_elapsed=600.0)
    assert settings.max_bytes == 65_536
    assert settings.prices == {"gpt-5": 1.25, "gpt-5-mini": 0.25, "local": 0.0}
    assert len(settings.tools) == 10
    assert settings.tools[8] == Rule(match="wait", timeout="never")


@table(
    ("line", "expected"),
    [
        ("budget: {max_calls: yes}", "2:21: budget.max_calls: not a whole number: got `yes`"),
        ('budget: {max_calls: "20"}', '2:21: budget.max_calls: not a whole number: write 20, got `"20"`'),
        ("budget: {max_calls: 200_000}", "2:21: budget.max_calls: not a whole number: write 200000, got `200_000`"),
        ("budget: {max_calls: 20.0}", "2:21: budget.max_calls: not a whole number: write 20, got `20.0`"),
        ("budget: {max_calls: true}", "2:21: budget.max_calls: not a whole number: got `true`"),
        ("budget: {max_calls: 1:30}", "2:21: budget.max_calls: not a whole number: got `1:30`"),
        ("budget: {max_calls: 2024-01-01}", "2:21: budget.max_calls: not a whole number: got `2024-01-01`"),
        ("budget: {max_calls: [20]}", "2:21: budget.max_calls: not a whole number: got a list"),
        ("budget: {max_calls: -1}", "2:21: budget.max_calls: must be at least 0, got `-1`"),
        ("budget: {max_call: 20}", "2:10: unknown key `max_call`, did you mean `max_calls`?"),
        ("budget: {Max-Calls: 20}", "2:10: unknown key `Max-Calls`, did you mean `max_calls`?"),
        ("max_calls: 20", "2:1: unknown key `max_calls`, did you mean `budget.max_calls`?"),
        ("max_cost_usd: 20", "2:1: unknown key `max_cost_usd`, did you mean `budget.max_cost_usd`?"),
        (
            "frobnicate: 1",
            (
                "2:1: unknown key `frobnicate`, known here: `version`, `extends`, `mode`, `budget`, `duplicates`, "
                "`tools`, `prices`, `max_bytes`"
            ),
        ),
        ('budget: {max_cost_usd: "0.5"}', '2:24: budget.max_cost_usd: not a number: write 0.5, got `"0.5"`'),
        ("budget: {max_elapsed: 500ms}", "2:23: budget.max_elapsed: must be at least 1, got `500ms`"),
        ("max_bytes: 64KB", "2:12: max_bytes: not a size: write 64KiB or 64000 (bytes), got `64KB`"),
        ("max_bytes:", "2:11: max_bytes: not a size: write 65536, 512B, 64KiB, 4MiB or 1GiB, got nothing"),
        ("budget: 20", "2:9: budget: not a map of keys: got `20`"),
        ("tools: {match: x}", "2:8: tools: not a list: got a map"),
        ("duplicates: {ignore: reason}", '2:22: duplicates.ignore: not a list: write ["reason"], got `reason`'),
        ("duplicates: {ignore: [a, 5]}", '2:26: duplicates.ignore.1: not text: write "5", got `5`'),
        ("tools: [{match: x, read_only: on}]", "2:31: tools.0.read_only: not true or false: write true, got `on`"),
        ("tools: [{match: x, read_only: No}]", "2:31: tools.0.read_only: not true or false: write false, got `No`"),
        ("tools: [{match: x, read_only: 1}]", "2:31: tools.0.read_only: not true or false: write true, got `1`"),
        ("tools: [{match: }]", "2:17: tools.0.match: not text: got nothing"),
        ("tools: [x]", "2:9: tools.0: not a map of keys: got `x`"),
        ("tools: [{read_only: true}]", "2:9: missing key `match`"),
        ("prices: {a: .inf}", "2:13: not a finite number: got `.inf`"),
        (
            "duplicates: {window: 1, rule: evidence}",
            "2:13: duplicates: evidence needs a window of at least 2, got `1`",
        ),
        (
            "tools: [{match: x, timeout: neverr}]",
            "2:29: tools.0.timeout: not a duration: write 500ms, 30s, 10m, 24h or 7d, got `neverr`",
        ),
    ],
)
def test_a_mistake_names_its_place_what_is_wrong_and_how_to_write_it(line: str, expected: str) -> None:
    assert mistakes_of(f"version: 1\n{line}\n") == [expected]


@table(
    ("text", "expected"),
    [
        ("", "1:1: the file is empty"),
        ("# nothing\n", "1:1: the file is empty"),
        ("---\n", "1:1: the file is empty"),
        ("- version: 1\n", "1:1: not a map of keys: got a list"),
        ("version 1\n", "1:1: not a map of keys: got `version 1`"),
        ("mode: off\n", "1:1: missing key `version`: write `version: 1`, the version of the file format"),
        (
            "version: 2\nnews: 1\n",
            "1:10: version: newer than this library, which reads version 1: upgrade toolcall-guardrails, got `2`",
        ),
        ("version: 0\n", "1:10: version: not a version: write 1, got `0`"),
        ('version: "1"\n', '1:10: version: not a version: write 1, got `"1"`'),
        ("version: 1.0\n", "1:10: version: not a version: write 1, got `1.0`"),
        ("version: true\n", "1:10: version: not a version: write 1, got `true`"),
        ("version:\n  - 1\n", "1:1: version: not a version: write 1, got a list"),
        ("version: 01\n", '1:10: a number with a leading zero: write 1 or "01", got `01`'),
        ("{}", "1:1: missing key `version`: write `version: 1`, the version of the file format"),
    ],
)
def test_a_file_without_a_readable_version_is_refused(text: str, expected: str) -> None:
    assert mistakes_of(text) == [expected]


def test_on_no_and_yes_are_text_where_text_is_wanted() -> None:
    settings = loads("version: 1\nmode: off\ntools: [{match: no}, {match: on}]\n")

    assert settings.mode == "off"
    assert [rule.match for rule in settings.tools] == ["no", "on"]


def test_duplicate_keys_in_nested_maps_are_all_found() -> None:
    text = "version: 1\nbudget: {max_calls: 1, max_calls: 2}\ntools:\n  - match: a\n    match: b\nbudget:\n  mode: x\n"

    assert mistakes_of(text) == [
        "2:24: key `max_calls` is given twice (first on line 2)",
        "5:5: key `match` is given twice (first on line 4)",
        "6:1: key `budget` is given twice (first on line 2)",
    ]


def test_a_latin_1_file_is_refused_at_the_byte() -> None:
    assert mistakes_in(FILES / "latin1.yaml") == ["latin1.yaml:2:6: not UTF-8: byte 0xe9, save the file as UTF-8"]


def test_tabs_as_indentation_are_named() -> None:
    with pytest.raises(PolicyError) as caught:
        loads("version: 1\nbudget:\n\tmax_calls: 3\n")

    assert (
        str(caught.value).partition("p.yaml:")[2]
        == "3:1: a tab in the indentation: use spaces\n     max_calls: 3\n    ^"
    )


def test_bombs_are_refused_at_their_place() -> None:
    deep = "version: 1\nprices: " + "[" * 200_000
    aliases = "version: 1\na0: &a0 [x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
    )

    assert mistakes_of(deep) == ["2:40: nested deeper than 32"]
    assert mistakes_of(aliases) == ["7:40: more than 100000 values, aliases written out"]
    assert mistakes_of("x" * (1 << 20) + "x") == ["1:1: the file is larger than 1048576 bytes"]


def test_mistakes_of_all_extended_files_are_reported_each_in_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "top.yaml").write_text("version: 1\nextends: [sub/a.yaml, b.yaml]\nbudget: {max_calls: 3}\nmoed: off\n")
    (tmp_path / "sub" / "a.yaml").write_text("version: 1\nbudget: {max_calls: many, max_turns: -1}\n")
    (tmp_path / "b.yaml").write_text("version: 1\nbudget:\n  max_turns: 3\n  max_elapsed: soon\n")

    with pytest.raises(PolicyError) as caught:
        load(tmp_path / "top.yaml")

    assert [mistake.split("\n")[0].removeprefix(f"{tmp_path}{os.sep}") for mistake in caught.value.mistakes] == [
        "top.yaml:4:1: unknown key `moed`, did you mean `mode`?",
        "sub/a.yaml:2:21: budget.max_calls: not a whole number: got `many`",
        "sub/a.yaml:2:38: budget.max_turns: must be at least 0, got `-1`",
        "b.yaml:4:16: budget.max_elapsed: not a duration: write 500ms, 30s, 10m, 24h or 7d, got `soon`",
    ]


def test_a_file_need_not_be_whole_when_what_it_extends_completes_it(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("version: 1\nduplicates: {rule: evidence, window: 9}\n")
    (tmp_path / "b.yaml").write_text("version: 1\nduplicates: {window: 1}\n")
    (tmp_path / "top.yaml").write_text("version: 1\nextends: [b.yaml, a.yaml]\nduplicates: {window: 3}\n")
    (tmp_path / "low.yaml").write_text("version: 1\nextends: [a.yaml, b.yaml]\n")

    assert load(tmp_path / "top.yaml").duplicates == Duplicates(rule="evidence", window=3)

    with pytest.raises(PolicyError, match=r"b.yaml:2:13: duplicates: evidence needs a window of at least 2, got `1`"):
        load(tmp_path / "low.yaml")


def test_the_json_schema_is_that_of_a_file() -> None:
    schema = json_schema(ADAPTER, NAMES)
    validator = jsonschema_rs.validator_for(schema)

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["required"] == ["version"]
    assert schema["description"] == "The settings of a policy."
    assert schema["$defs"]["Budget"]["description"] == "End the session once a limit is used up."
    assert schema["$defs"]["Budget"]["properties"]["max_calls"]["description"] == "Tool calls of a session."
    assert schema["$defs"]["Budget"]["properties"]["max_tool_calls"]["description"] == "Tool calls of a session."
    assert all("description" in schema["properties"][key] for key in ("version", "extends"))

    for path in (FILES / "example.yaml", FILES / "team.yaml", *SHIPPED.glob("*.yaml")):
        assert validator.is_valid(plain(path))

    assert not validator.is_valid(plain(FILES / "nine.yaml"))
    assert validator.is_valid({"version": 1, "extends": ["strict"], "budget": {"max_tool_calls": 3}})
    assert not validator.is_valid({"version": 2})
    assert not validator.is_valid({"budget": {}})
    assert not validator.is_valid({"version": 1, "budgets": {}})
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
        assert isinstance(loads(text, other_names=NAMES), Settings)
