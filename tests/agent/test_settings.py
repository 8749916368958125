"""
What an agent is run with: settings that are kept, a policy that it cannot write, tools of a person's own file.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from guardrails.agent.agent import AgentError, Settings, client_of, how_to_go_on, load_tools, prepare, together


REGISTRY = "from guardrails import Registry\nregistry = Registry()\n@registry.register(timeout=5)\ndef a(): ...\ndef b(): ...\n"
ANNOTATED = (
    "from __future__ import annotations\nfrom pathlib import Path\ndef look(at: Path) -> str:\n    return at.name\n"
)


def own(folder: Path, code: str, name: str = "own") -> str:
    (folder / f"{name}.py").write_text(code)
    return str(folder / f"{name}.py")


def test_a_file_offers_its_registry_its_list_or_its_public_functions(tmp_path: Path) -> None:
    for n, (code, names) in enumerate((
        ("from json import dumps\ndef a(x: int) -> int: return x\ndef b(): ...\ndef _c(): ...\n", ["a", "b"]),
        ("def a(): ...\ndef b(): ...\ntools = [b]\n", ["b"]), (REGISTRY, ["a"]),
    )):  # fmt: skip
        assert list(load_tools(own(tmp_path, code, f"own{n}")).entries) == names


def test_of_several_files_the_latest_tool_of_a_name_runs_whatever_its_kind(tmp_path: Path) -> None:
    later = "async def plus(n: int) -> int:\n    return n + 1\n"
    codes = {"one": "def b(): ...\ndef plus(): ...\n", "two": ANNOTATED, "three": later}
    tools = together(load_tools(own(tmp_path, code, name)) for name, code in codes.items())
    assert list(tools.entries) == ["b", "look", "plus"]
    assert tools.execute("plus", '{"n": "1"}') == 2
    assert tools.execute("look", {"at": "a/7"}) == "7"
    with pytest.raises(AgentError, match=r"own\.py` cannot be run: ValueError: no key"):
        load_tools(own(tmp_path, "raise ValueError('no key')"))


def test_what_is_given_now_stands_above_what_was_kept_and_paths_are_absolute(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("version: 1\n")
    given = {"model": "n", "base_url": None, "policy": "mine.yaml", "tools": ("t.py",)}
    kept = asdict(Settings(model="m", base_url="http://a", mcp="s.toml", allow_hosts=("h",), policy="strict"))
    here, old = str(tmp_path), {**kept, "allow_hosts": ["h"], "task": "old", "of a later version": 1}
    whole = Settings(
        model="n", base_url="http://a", policy=f"{here}/mine.yaml", workspace=here, tools=(f"{here}/t.py",),
        mcp=f"{here}/s.toml", allow_hosts=("h",),
    )  # fmt: skip
    assert Settings.merged(old, given) == whole
    assert Settings.merged(asdict(whole), {}) == whole
    # A shipped policy stays a name.
    assert Settings.merged(old, {}).policy == "strict"
    with pytest.raises(AgentError, match="--model"):
        Settings.merged({}, {})


def test_a_policy_that_the_agent_could_write_is_not_read_again(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    for path in ("policy.yaml", "work/policy.yaml", "work/sub/policy.yaml"):
        (tmp_path / path).write_text("version: 1\n")
    # It extends a file of the workspace; links lead to it which the agent could replace.
    (tmp_path / "child.yaml").write_text("version: 1\nextends: ./work/policy.yaml\n")
    (work / "link.yaml").symlink_to(tmp_path / "policy.yaml")
    (work / "folder").symlink_to(tmp_path)
    kept = "work/policy.yaml work/sub/policy.yaml child.yaml work/link.yaml work/folder/policy.yaml"
    for place in ("policy.yaml", *kept.split()):
        _, policy, _ = prepare(Settings(model="m", policy=str(tmp_path / place), workspace=str(work)))
        assert (policy.files is not None) is (place == "policy.yaml"), place


def test_a_client_that_cannot_be_made_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    for name, value in (("OPENAI_BASE_URL", "::none"), ("HTTPS_PROXY", "none://a:1"), ("SSL_CERT_FILE", "/no/such")):
        monkeypatch.setenv(name, value)
        with pytest.raises(AgentError, match=r"no client \(URL, proxy, SSL_CERT_FILE\): \S"), client_of(None):
            pass
        monkeypatch.delenv(name)


def test_how_a_conversation_goes_on_is_told_by_what_ended_it() -> None:
    assert how_to_go_on("budget.max_calls") == "--extend max_calls=AMOUNT"
    assert how_to_go_on("user.budget.max_cost_usd") == "--extend user.max_cost_usd=AMOUNT"
    assert how_to_go_on("user.budget.unpriced") == "--extend user.max_cost_usd=0"
    assert how_to_go_on("loop.max_iterations") == '"go on"'
    for cause in ("budget.unpriced", "denials.max_turns_in_a_row", None):
        assert how_to_go_on(cause) == "--forgive"
