"""
Tools of a person's own file.
"""

from dataclasses import asdict
from pathlib import Path

import pytest

from guardrails.agent.settings import AgentError, Settings
from guardrails.agent.tools import load_tools, replaced
from tests.tables import table


@table(
    ("code", "names"),
    [
        ("def a(x: int) -> int: return x\ndef b(): ...\ndef _c(): ...\n", ["a", "b"]),
        ("from json import dumps\ndef a(): ...\n", ["a"]),
        ("def a(): ...\ndef b(): ...\ntools = [b]\n", ["b"]),
        (
            (
                "from guardrails.policy.tools import Registry\nregistry = Registry()\n"
                "@registry.register(timeout=5)\ndef a(): ...\ndef b(): ...\n"
            ),
            ["a"],
        ),
    ],
)
def test_a_file_offers_its_registry_its_list_or_its_public_functions(
    tmp_path: Path, code: str, names: list[str]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(code)
    assert list(load_tools(str(file)).entries) == names


def test_the_types_of_a_file_are_found_where_its_annotations_are_texts(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    code = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    file.write_text(f"{code}@dataclass\nclass Place:\n    x: int\ndef look(at: Place) -> int:\n    return at.x\n")
    assert load_tools(str(file)).execute("look", {"at": {"x": "7"}}) == 7


def test_a_file_that_fails_is_named_with_its_error(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("raise ValueError('no key')")
    with pytest.raises(AgentError, match=r"own\.py` cannot be run: ValueError: no key"):
        load_tools(str(file))


def test_asynchronous_functions_run_too(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("import asyncio\nasync def a(n: int) -> int:\n    await asyncio.sleep(0)\n    return n + 1\n")
    assert load_tools(str(file)).execute("a", '{"n": "1"}') == 2


def test_a_later_file_replaces_the_tools_of_an_earlier_one(tmp_path: Path) -> None:
    for name, code in (("one", "def a(): return 1\ndef b(): return 1\n"), ("two", "def b(): return 2\n")):
        (tmp_path / f"{name}.py").write_text(code)
    first, second = replaced([load_tools(str(tmp_path / f"{name}.py")) for name in ("one", "two")])
    assert (list(first), list(second)) == (["a"], ["b"])


def test_what_is_given_now_stands_above_what_was_kept() -> None:
    kept = asdict(Settings(model="m", base_url="http://a", tools=("x.py",)))
    assert Settings.merged(
        {**kept, "task": "old", "of a later version": 1}, {"model": "n", "base_url": None}
    ) == Settings(model="n", base_url="http://a", tools=("x.py",))
    with pytest.raises(AgentError, match="--model"):
        Settings.merged({}, {})


def test_kept_paths_are_absolute_and_a_shipped_policy_stays_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("version: 1\n")
    assert Settings(model="m", policy="mine.yaml", tools=("t.py",)).anywhere() == Settings(
        model="m", policy=str(tmp_path / "mine.yaml"), workspace=str(tmp_path), tools=(str(tmp_path / "t.py"),)
    )
    assert Settings(model="m", policy="strict").anywhere().policy == "strict"
