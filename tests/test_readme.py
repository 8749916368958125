"""
The README's own code, run as it stands.
"""

import json
import re

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy, PolicyError


README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def timeless(line: str) -> Any:
    """
    An envelope without the time that is left, which depends on the machine.
    """
    read = json.loads(line)
    read.get("progress", {}).pop("seconds_left", None)
    return read


def test_the_python_blocks_run_in_order_and_print_what_is_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    printed = []
    # That of a host is the program of its page, which the tests of the host run.
    for block in [block for block in blocks("python") if "integrations.langchain" not in block]:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102
        printed.append(capsys.readouterr().out)
    names["client"].close()
    assert [timeless(line) for line in printed[0].splitlines()] == [
        timeless(line) for line in blocks("json")[0].splitlines()
    ]
    assert "I stopped after 3 calls" in printed[1]
    assert "budget.max_turns" in printed[1]
    third = names["messages"][6]["content"]
    assert '"limit_message": "Tool call limit reached (3). Stopping tool loop."' in third
    assert '"found":7' in printed[2]


def test_the_policy_of_the_readme_loads(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(blocks("yaml")[0])
    policy = Policy.load(path)
    assert policy.chain.plan("pay_invoice").tool.idempotent is False
    assert policy.prices["gpt-5-mini"].output_mtok == 2.0


def test_the_mistakes_of_the_readme_are_what_a_person_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("version: 1\nbudget:\n  max_call: 40\n  max_elapsed: 24 hours\n")
    with pytest.raises(PolicyError) as mistakes:
        Policy.load("bad.yaml")
    assert str(mistakes.value).strip() == blocks("text")[0].strip()


def test_code_comes_by_line_30_and_the_whole_is_under_200_lines() -> None:
    lines = README.splitlines()
    assert lines.index("```python") < 30
    assert len(lines) < 200
