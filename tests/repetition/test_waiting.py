"""
Who waits, by name and arguments, and whom finding nothing pleases (MISSION A12).
"""

from typing import Any

import pytest

from guardrails.repetition.waiting import HEAD, inspects, sleeps, waits


@pytest.mark.parametrize(
    ("tool", "expected"),
    [("job_status", True), ("check_build", True), ("TaskOutput", True), ("write_stdin", True), ("get_export", False)],
)
def test_a_tool_that_waits_is_known_by_its_name(tool: str, expected: bool) -> None:
    assert waits(tool) is expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"command": "sleep 30; tail -1 build.log"}, True),
        ({"command": "cd app && sleep 5 && gh run view 7"}, True),
        ({"command": "gh run watch 7 --watch"}, True),
        ({"command": "Start-Sleep -Seconds 5; Get-Content log"}, True),
        ({"command": "kubectl get pods"}, True),
        ({"command": "cd app && gh pr checks 7"}, True),
        ({"command": "curl -s localhost:8080/healthz"}, True),
        ({"command": "cat docs/docker.md src/health.py"}, False),
        ({"command": "kubectl apply -f a.yaml"}, False),
        ({"command": "grep -rn 'sleep' src"}, False),
        ({"command": "x" * HEAD + "; sleep 30"}, False),
        ({"seconds": 30}, False),
        ({}, False),
        (None, False),
        ("sleep 30", False),
        ({"command": b"sleep 30", 7: "\ud800"}, False),
    ],
)
def test_a_command_that_sleeps_before_it_looks_waits(arguments: Any, expected: bool) -> None:
    assert sleeps(arguments) is expected


@pytest.mark.parametrize(
    ("tool", "expected"), [("lint_file", True), ("mcp__ide__getDiagnostics", True), ("list_issues", False)]
)
def test_a_tool_that_looks_for_faults_is_known_by_its_name(tool: str, expected: bool) -> None:
    assert inspects(tool) is expected
