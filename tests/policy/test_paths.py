"""
A model file is looked for beside the policy file that names it.
"""

from pathlib import Path

import pytest

from guardrails import Policy, PolicyError, Retryable
from tests.tables import table


def test_a_model_is_relative_to_the_policy_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "base.yaml").write_text("version: 1\nretryable: {model: ../models/base.json}\n")
    (tmp_path / "own.yaml").write_text(
        "version: 1\nextends: base/base.yaml\ntools:\n  - match: pay\n    retryable: {model: pay.json}\n"
    )
    policy = Policy.load(tmp_path / "own.yaml")
    assert policy.model_files is not None
    found = [Path(path) for path in policy.model_files.loaded]
    assert found == [tmp_path / "base" / "../models/base.json", tmp_path / "pay.json"]
    chain = policy.chain
    own = next(guard for guard in chain.plan("pay").guards if isinstance(guard, Retryable))
    assert own.model == str(tmp_path / "pay.json")


@table("written", ["''", "3", "[a]"])
def test_a_model_that_is_no_name_is_a_mistake(written: str, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(f"version: 1\nretryable: {{model: {written}}}\n")
    with pytest.raises(PolicyError, match="model"):
        Policy.load(tmp_path / "own.yaml")
