"""
The policy of docs/internals.md, run as it stands.
"""

import re

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy


GUIDE = (Path(__file__).parents[2] / "docs" / "internals.md").read_text()


@pytest.mark.parametrize(
    ("result", "error_type"),
    [
        ({"id": "A-17", "sum": 3}, None),
        ('{"id": "a-17", "sum": 3}', None),
        ({"id": "B-03", "sum": 3}, "other"),
        ({"id": "A-17", "sum": "3"}, "server_error"),
        ("<title>503 Service Temporarily Unavailable</title>", "server_error"),
        ([], "server_error"),
    ],
)
def test_faults_that_look_like_success_are_seen_as_declared(
    tmp_path: Path, result: Any, error_type: str | None
) -> None:
    block = next(one for one in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL) if "other_than" in one)
    file = tmp_path / "policy.yaml"
    file.write_text(block)
    with Policy.load(file).session("anne") as session:
        envelope = session.call("get_order", {"order_id": "A-17"}, lambda *_: result)
    assert envelope.error_type == error_type
    assert envelope.value == result
