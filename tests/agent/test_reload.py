"""
Which policies `guardrails run` follows while it runs.
"""

from pathlib import Path

import pytest

from guardrails.agent.agent import prepare
from guardrails.agent.settings import Settings


@pytest.mark.parametrize(
    ("place", "follows"), [("policy.yaml", True), ("work/policy.yaml", False), ("work/sub/policy.yaml", False)]
)
def test_a_policy_that_the_agent_could_write_is_not_read_again(tmp_path: Path, place: str, follows: bool) -> None:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    path = tmp_path / place
    path.write_text("version: 1\n")
    made = prepare(Settings(model="m", policy=str(path), workspace=str(tmp_path / "work")))
    assert (made.policy.files is not None) is follows


def test_neither_is_one_that_extends_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "base.yaml").write_text("version: 1\n")
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nextends: ./work/base.yaml\n")
    made = prepare(Settings(model="m", policy=str(path), workspace=str(tmp_path / "work")))
    assert made.policy.files is None


@pytest.mark.parametrize("place", ["work/link.yaml", "work/folder/policy.yaml"])
def test_neither_is_one_to_which_a_link_leads_that_the_agent_could_replace(tmp_path: Path, place: str) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    work.mkdir()
    (outside / "policy.yaml").write_text("version: 1\n")
    (work / "link.yaml").symlink_to(outside / "policy.yaml")
    (work / "folder").symlink_to(outside)
    made = prepare(Settings(model="m", policy=str(tmp_path / place), workspace=str(work)))
    assert made.policy.files is None
