"""
Who waits, by name and arguments, and whom finding nothing pleases (MISSION A12).
"""

from typing import Any

from guardrails.core.repetition.commands.waiting import HEAD, inspects, sleeps, waits, waits_itself
from guardrails.core.values.types import ToolCall
from tests.tables import table


@table(
    ("tool", "expected"),
    [("job_status", True), ("check_build", True), ("TaskOutput", True), ("write_stdin", True), ("get_export", False)],
)
def test_a_tool_that_waits_is_known_by_its_name(tool: str, expected: bool) -> None:
    assert waits(tool) is expected


@table(
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


POLL = "kubectl -n shop get pods"


@table(
    ("tool", "arguments", "expected"),
    [
        ("exec_command", {"cmd": POLL, "workdir": "/srv"}, True),
        ("run", {"shell_command": POLL}, True),
        ("run", {"commandLine": POLL}, True),
        ("run", {"argv": ["kubectl", "-n", "shop", "get", "pods"]}, True),
        ("shell", {"command": ["bash", "-lc", POLL]}, True),
        ("run", {"commands": ["cd app", POLL]}, True),
        ("spawn", {"command": "kubectl", "args": ["-n", "shop", "get", "pods"]}, True),
        ("spawn", {"program": "zorble", "args": ["--zone=a", "status", "7"]}, True),
        ("spawn", {"args": "-n shop get pods", "command": "kubectl"}, True),
        ("local_shell", {"action": {"type": "exec", "command": ["gh", "-R", "o/r", "run", "view"]}}, True),
        ("mcp__k8s__kubectl", {"args": ["-n", "shop", "get", "pods"]}, True),
        ("kubectl", {"command": "get pods -n shop"}, True),
        ("call_aws", {"cli_command": "aws --region r ec2 describe-instances"}, True),
        ("terminal", {"text": "zorble status 7"}, True),
        ("send_keys", {"keys": f"{POLL}\n"}, True),
        ("web_fetch", {"url": "http://localhost:8080/healthz"}, True),
        ("bash", POLL, True),
        ("spawn", {"command": "kubectl", "args": ["-n", "shop", "apply", "-f", "get.yaml"]}, False),
        ("kubectl", {"args": ["delete", "pod", "get"]}, False),
        ("shell", {"command": ["bash", "-lc", "pytest -q tests/test_status.py"]}, False),
        ("run", {"commands": ["cd app", "make"]}, False),
        ("bash", {"command": "pytest", "description": "Check build status"}, False),
        ("bash", {"command": "pytest", "description": "docker ps"}, False),
        ("web_search", {"query": "docker logs"}, False),
        ("grep", {"pattern": "kubectl get pods", "path": "docs/status"}, False),
        ("write_file", {"path": "wait.sh", "content": "sleep 5\ndocker ps"}, False),
        ("write_file", {"path": "wait.sh", "data": "sleep 5\ndocker ps\n"}, False),
        ("note", {"about": "project status"}, False),
        ("edit", {"command": "view", "path": "/src/status"}, False),
        ("python", {"code": "import time\ntime.sleep(30)\nprint(open('x').read())"}, True),
        ("code_interpreter", {"input": "import time; time.sleep(60)"}, True),
        ("js_repl", {"code": "await new Promise(r => setTimeout(r, 5000))"}, True),
        ("http_request", {"url": "http://localhost:8080/api/jobs/7", "method": "GET"}, True),
        ("http_request", {"url": "http://localhost:8080/api/jobs/7", "method": "POST"}, False),
        ("python", {"code": "def test_status():\n    assert status() == 'sleep'"}, False),
        ("write_file", {"code": "time.sleep(30)"}, False),
        ("click", {"script": "await page.click('#go')"}, False),
        ("web_fetch", {"url": "https://example.com/docs/status-codes"}, False),
        ("apply_patch", POLL, False),
        ("run", {"command": ["x"] * 100_000}, False),
        ("run", {"command": [], "args": [None, 7], "env": {"A": {"command": POLL}}}, False),
    ],
)
def test_a_command_is_found_in_the_arguments_that_hold_one(tool: str, arguments: Any, expected: bool) -> None:
    assert sleeps(arguments, tool) is expected


@table(("tool", "expected"), [("lint_file", True), ("mcp__ide__getDiagnostics", True), ("list_issues", False)])
def test_a_tool_that_looks_for_faults_is_known_by_its_name(tool: str, expected: bool) -> None:
    assert inspects(tool) is expected


@table(("command", "expected"), [("sleep 30", True), ("cat notes.md", False)])
def test_whether_a_call_waits_is_found_out_once(command: str, expected: bool) -> None:
    call = ToolCall("run", {"command": command}, "call_1", None, 7)
    assert waits_itself(call) is expected

    call.arguments.clear()
    assert waits_itself(call) is expected
