"""
The guards by cases, as a person writes them: `cases/GUARD.yaml` has policies, each followed by what it is to decide, or by its mistakes.
"""

from pathlib import Path

import pytest
import yaml

from guardrails import Policy, PolicyError
from guardrails.offline.policy_cases import load_cases, run_case
from tests.tables import table


MISTAKES = "mistakes:"


def failures(rules: str, story: str, folder: Path) -> list[str]:
    """
    What a policy does not do of a story.
    """
    policy, cases = folder / "p.yaml", folder / "p.cases.yaml"
    policy.write_text(f"version: 1\n{rules}")
    if not story.startswith(MISTAKES):
        cases.write_text(f"version: 1\ncases:\n{story}")
        made, read = Policy.load(policy), load_cases(cases).cases
        return [str(one) for one in (run_case(made, case) for case in read) if not one.passed]
    with pytest.raises(PolicyError) as raised:
        Policy.load(policy)
    told = [one.split("\n")[0].removeprefix(f"{policy}:") for one in raised.value.mistakes]
    return [] if told == yaml.safe_load(story)["mistakes"] else told


@table("file", sorted(Path(__file__).with_name("cases").glob("*.yaml")))
def test_a_policy_decides_as_its_cases_say(file: Path, tmp_path: Path) -> None:
    if file.stem == "rules":
        pytest.importorskip("cel_expr_python")
    parts = file.read_text().split("---\n")
    failed = [one for pair in zip(parts[::2], parts[1::2], strict=True) for one in failures(*pair, tmp_path)]
    assert not failed, "\n".join(failed)
