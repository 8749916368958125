"""
The README's own code, run as it stands.
"""

import json
import re

from pathlib import Path
from typing import Any

import pytest

from benchmarks.stuck_agent import PICTURE, svg
from guardrails import Policy, PolicyError
from guardrails.agent.demo import compare


ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


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
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    # The block of a host is the program of its page, which the tests of the host run.
    for block in [block for block in blocks("python") if "integrations.langchain" not in block]:
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert [timeless(line) for line in printed] == [timeless(line) for line in blocks("json")[0].splitlines()]


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


def test_the_installation_comes_by_line_10_and_the_whole_is_at_most_110_lines() -> None:
    lines = README.splitlines()
    assert lines.index("```sh") < 10
    assert len(lines) <= 110


@pytest.mark.system
def test_the_picture_is_what_the_demo_does_today() -> None:
    pytest.importorskip("openai")
    assert svg(compare(Policy.load("default"))) == PICTURE.read_text(encoding="utf-8")
