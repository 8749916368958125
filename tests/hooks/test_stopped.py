"""
Hooks while their policy stops every call.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.hooks.driven import POLICY, Claude, Codex, Gemini, refused


@pytest.mark.parametrize("client", [Claude, Codex, Gemini])
def test_a_hook_refuses_every_call_under_a_policy_that_stops_them(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path, f"{POLICY}stop: the key leaked\n")
    said = driven.before(arguments={"command": "make test"})
    assert refused(said)
    assert "the key leaked" in str(said)
    stops = [record["stop"] for record in driven.records() if "stop" in record]
    assert stops == ["the key leaked"]
