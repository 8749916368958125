"""
SWE-agent's `.traj` files.
"""

import json

from typing import Any


def test_a_run_gives_the_tools_of_its_history_with_the_results_and_times_of_its_steps(read: Any) -> None:
    calls, report = read("swe_agent.json")
    assert [(c.tool, c.turn, c.call_index, c.is_error, c.duration_ms) for c in calls] == [
        ("create", 1, 0, False, 239),
        ("insert", 2, 1, False, 435),
        ("bash", 3, 2, False, 330),
        ("bash", 4, 3, False, 217),
    ]
    assert calls[0].arguments == {"filename": "reproduce.py"}
    assert calls[0].result == "[File: reproduce.py (1 lines total)]\r\n1:", "not the prompt that the model saw after it"
    assert calls[2].id == calls[3].id, "servers use an id again"
    assert calls[2].result != calls[3].result
    assert {c.model for c in calls} == {"gpt-4o"}
    assert report.notices == []


def test_a_step_without_a_tool_call_is_a_line_for_the_shell(read: Any) -> None:
    calls, _ = read("swe_agent_2024.json")
    assert [c.tool for c in calls] == ["bash"] * 4
    assert calls[0].arguments == {"command": "create reproduce_bug.py\n"}
    assert [(c.is_error, c.error_type) for c in calls] == [
        (False, None),
        (False, None),
        (True, "code_error"),
        (False, None),
    ]


def test_the_history_alone_and_the_steps_alone_are_read(read: Any, files: Any) -> None:
    run = json.loads((files / "swe_agent.json").read_text())
    whole = [(c.tool, c.id) for c in read("swe_agent.json")[0]]
    told, _ = read(json.dumps({"history": run["history"]}))
    assert [(c.tool, c.id) for c in told] == whole
    assert told[0].has_result
    done, _ = read(json.dumps({"trajectory": run["trajectory"]}))
    assert [(c.tool, c.result) for c in done] == [("bash", step["observation"]) for step in run["trajectory"]]
    assert done[0].arguments == {"command": run["trajectory"][0]["action"]}


def test_a_demonstration_in_the_prompt_is_no_call(read: Any, files: Any) -> None:
    run = json.loads((files / "swe_agent.json").read_text())
    shown = [{**turn, "is_demo": True} for turn in run["history"][2:]]
    run["history"][1:1] = shown
    assert len(read(json.dumps(run))[0]) == 4


def test_each_attempt_and_each_agent_is_a_session(read: Any, files: Any) -> None:
    run = json.loads((files / "swe_agent.json").read_text())
    calls, _ = read(json.dumps({"attempts": [run, run], **run}))
    assert [c.session_id for c in calls] == ["given/0"] * 4 + ["given/1"] * 4
    for turn in run["history"][6:]:
        turn["agent"] = "searcher"
    assert [c.session_id for c in read(json.dumps(run))[0]] == ["given"] * 2 + ["given/searcher"] * 2


def test_an_action_without_a_step_has_the_answer_of_the_history(read: Any, files: Any) -> None:
    run = json.loads((files / "swe_agent.json").read_text())
    del run["trajectory"][1]
    calls, _ = read(json.dumps(run))
    assert calls[1].duration_ms is None
    assert calls[1].result.startswith("[File: /testbed/reproduce.py (10 lines total)]")
    assert [c.duration_ms for c in calls] == [239, None, 330, 217]
