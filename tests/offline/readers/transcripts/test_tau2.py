"""
tau2-bench simulations.
"""

import json

from pathlib import Path
from typing import Any


def test_a_simulation_gives_the_calls_of_the_agent_with_cost(read: Any) -> None:
    calls, _ = read("tau2.json")
    assert [(c.session_id, c.call_index, c.tool, c.turn, c.is_error) for c in calls] == [
        ("0d47", 0, "find_user", 1, False),
        ("0d47", 1, "get_order", 1, True),
        ("0d47", 2, "cancel", 2, None),
    ], "the tools of the simulated user are none of the agent's"
    assert [(c.tokens_in, c.tokens_out, c.cost_usd) for c in calls] == [
        (4811, 33, 0.00070225),
        (None, None, None),
        (5000, 9, 0.001),
    ]
    assert [(c.ts_ms, c.duration_ms) for c in calls[:2]] == [(1_772_099_320_908, 2), (1_772_099_320_908, 1000)]


def test_a_results_file_gives_a_session_for_each_simulation(read: Any) -> None:
    calls, _ = read("tau2_results.json")
    assert [(c.session_id, c.call_index) for c in calls] == [
        ("sim-1", 0),
        ("sim-1", 1),
        ("sim-2", 0),
        ("sim-2", 1),
        ("sim-2", 2),
    ]
    assert {c.model for c in calls} == {"gpt-5-mini"}


def test_a_simulation_whose_name_comes_again_is_a_session_of_its_own(read: Any, files: Path) -> None:
    simulation = json.loads((files / "tau2_results.json").read_text())["simulations"][0]
    calls, _ = read(json.dumps({"simulations": [simulation, simulation]}))
    assert [c.session_id for c in calls if c.call_index == 0] == [simulation["id"], simulation["id"] + ":2"]
