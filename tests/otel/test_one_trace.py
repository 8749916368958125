"""
One trace through the loop, a proxy that it starts, and a hook that a program of it runs: real processes, a collector on loopback.
"""

import json
import os
import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest


pytest.importorskip("mcp")
pytest.importorskip("openai")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.files import calls_in
from guardrails.testing.scripted_openai import Calls, Reply, ScriptedOpenAI, Text, call
from tests.otel.collector import Collector


pytestmark = pytest.mark.system


ROOT = Path(__file__).parents[3]
TRACED = str(Path(__file__).parent / "traced.py")
SERVER = """
import json, sys

TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if asked["method"] == "tools/list":
        result = {"tools": [TOOL]}
    elif asked["method"] == "tools/call":
        with open(sys.argv[1], "w") as heard:
            heard.write(asked["params"]["_meta"]["traceparent"])
        result = {"content": [{"type": "text", "text": "hi"}]}
    if "id" in asked and asked["method"] in ("initialize", "tools/list", "tools/call"):
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    elif "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
"""
OWN_TOOL = '''
import json, os, subprocess
from opentelemetry.propagate import inject

def code(task: str) -> str:
    """Let a coding agent work."""
    carrier = {}
    inject(carrier)
    event = {"session_id": "coding", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash"}
    event |= {"tool_input": {"command": "make"}, "tool_use_id": "h1"}
    ran = subprocess.run(HOOK, input=json.dumps(event), text=True, capture_output=True, check=True,
        env={**os.environ, "TRACEPARENT": carrier["traceparent"]})
    return ran.stdout

tools = [code]
'''


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    own = {name: str(tmp_path / name.lower()) for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    (tmp_path / "home").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "GUARDRAILS_"))}
    return {**kept, **own, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1"}


def test_one_trace_goes_through_the_loop_the_proxy_and_the_hook(tmp_path: Path, environment: dict[str, str]) -> None:
    def model(body: dict[str, Any], n: int) -> Reply:
        asked = [call("srv__echo", {"text": "hi"}, id="c1"), call("code", {"task": "build"}, id="c2")]
        return Calls(*asked) if n == 0 else Text("done")

    records = {name: tmp_path / f"{name}.jsonl" for name in ("run", "mcp", "hook")}
    (tmp_path / "none.yaml").write_text("version: 1\nbudget: {max_calls: 0}\n")
    with Collector() as collector, ScriptedOpenAI(model) as server:
        traced = [sys.executable, TRACED, collector.url]
        proxy = [*traced, "mcp", "--records", str(records["mcp"]), "--pins", "none", "--"]
        proxy += [sys.executable, "-c", SERVER, str(tmp_path / "heard")]
        hook = [*traced, "hook", "--policy", str(tmp_path / "none.yaml"), "--records", str(records["hook"])]
        (tmp_path / "mcp.json").write_text(
            json.dumps({"mcpServers": {"srv": {"command": proxy[0], "args": proxy[1:], "env": environment}}})
        )
        (tmp_path / "own.py").write_text(f"HOOK = {hook!r}\n{OWN_TOOL}")
        said = ["--model", "gpt-5.5", "--mcp", str(tmp_path / "mcp.json"), "--tools", str(tmp_path / "own.py")]
        said += ["--records", str(records["run"]), "--workspace", str(tmp_path), "--sandbox", "none"]
        ran = subprocess.run(
            [*traced, "run", "the task", *said],
            env={**environment, "OPENAI_BASE_URL": server.base_url},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        spans = collector.spans
    by_name = {
        (one["service"], one["name"]): one for one in spans if one["name"].startswith(("execute_tool", "invoke"))
    }
    agent = by_name["run", "invoke_agent"]
    echo, code = by_name["run", "execute_tool srv__echo"], by_name["run", "execute_tool code"]
    proxied, hooked = by_name["mcp", "execute_tool echo"], by_name["hook", "execute_tool Bash"]
    assert len({one["traceId"] for one in by_name.values()}) == 1
    assert "parentSpanId" not in agent
    assert echo["parentSpanId"] == code["parentSpanId"] == agent["spanId"]
    assert hooked["parentSpanId"] == code["spanId"]
    above = {one["spanId"]: one for one in spans}
    parent = above[proxied["parentSpanId"]]
    while parent is not echo:
        # The MCP SDK may have a span of its own around its request.
        parent = above[parent["parentSpanId"]]
    assert (hooked["said"]["guardrails.decision"], hooked["said"]["guardrails.code"]) == ("deny", "budget.max_calls")

    heard = (tmp_path / "heard").read_text()
    trace, span = heard.split("-")[1:3]
    # The SDK has a span of its own around its request here, too.
    told = (trace, above[span]["parentSpanId"])
    assert told == (proxied["traceId"], proxied["spanId"]), "the server is told of the span of the proxy"

    for name, own in (("run", (echo, code)), ("mcp", (proxied,)), ("hook", (hooked,))):
        decided = [one for one in lines(records[name]) if one["event"] == "call"]
        assert [(one["trace"]["trace_id"], one["trace"]["span_id"]) for one in decided] == [
            (one["traceId"], one["spanId"]) for one in own
        ]

    text = "\n".join(map(json.dumps, collector.exports))
    calls = calls_in(text.encode(), "given", Report())
    assert sorted((one.tool, one.decision, one.is_error) for one in calls) == [
        ("Bash", "deny", None),
        ("code", "allow", False),
        ("echo", "allow", False),
        ("srv__echo", "allow", False),
    ]


def test_the_hooks_before_and_after_a_call_make_one_span(tmp_path: Path, environment: dict[str, str]) -> None:
    event = {"session_id": "s", "cwd": "/", "tool_name": "Bash", "tool_use_id": "h1", "tool_input": {"command": "make"}}
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with Collector() as collector:
        for said in ({"hook_event_name": "PreToolUse"}, {"hook_event_name": "PostToolUse", "tool_response": {"ok": 1}}):
            ran = subprocess.run(
                [sys.executable, TRACED, collector.url, "hook"],
                input=json.dumps({**event, **said}),
                env={**environment, "TRACEPARENT": f"00-{trace_id}-{span_id}-01"},
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            assert (ran.returncode, ran.stdout.strip()) == (0, "{}"), ran.stderr
    [span] = collector.spans
    assert (span["traceId"], span["parentSpanId"]) == (trace_id, span_id)
    assert (span["said"]["guardrails.decision"], span["said"]["guardrails.status"]) == ("allow", "success")
