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

from guardrails.sinks import read
from guardrails.testing.scripted_openai import Calls, Reply, ScriptedOpenAI, Text, call
from tests.otel.collector import Collector


pytestmark = pytest.mark.system


ROOT = Path(__file__).parents[3]
TRACED = str(Path(__file__).parent / "traced.py")
SERVER = """
import json, sys

TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
RESULTS = {
    "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "hi"}]},
}
for line in sys.stdin:
    asked = json.loads(line)
    method = asked["method"]
    if method == "tools/call":
        with open(sys.argv[1], "w") as heard:
            heard.write(asked["params"]["_meta"]["traceparent"])
    if "id" in asked:
        answer = {"result": RESULTS[method]} if method in RESULTS else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
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


def traced(collector: Collector, *arguments: object) -> list[str]:
    """
    The command `guardrails` with telemetry that goes to the collector.
    """
    return [*map(str, [sys.executable, TRACED, collector.url, *arguments])]


def run(command: list[str], environment: dict[str, str], given: str = "") -> str:
    done = subprocess.run(
        command, input=given, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
        proxy = traced(collector, "mcp", "--records", records["mcp"], "--pins", "none", "--")
        proxy += [sys.executable, "-c", SERVER, str(tmp_path / "heard")]
        hook = traced(collector, "hook", "--policy", tmp_path / "none.yaml", "--records", records["hook"])
        servers = {"srv": {"command": proxy[0], "args": proxy[1:], "env": environment}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        (tmp_path / "own.py").write_text(f"HOOK = {hook!r}\n{OWN_TOOL}")
        options = ["--model", "gpt-5.5", "--mcp", tmp_path / "mcp.json", "--tools", tmp_path / "own.py"]
        options += ["--records", records["run"], "--workspace", tmp_path, "--sandbox", "none"]
        run(traced(collector, "run", "the task", *options), {**environment, "OPENAI_BASE_URL": server.base_url})
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
    assert hooked["attributes"]["guardrails.code"] == "budget.max_calls"

    heard = (tmp_path / "heard").read_text()
    trace, span = heard.split("-")[1:3]
    # The SDK has a span of its own around its request here, too.
    assert (trace, above[span]["parentSpanId"]) == (proxied["traceId"], proxied["spanId"])

    for name, own in (("run", (echo, code)), ("mcp", (proxied,)), ("hook", (hooked,))):
        decided = [record["trace"]["span_id"] for record in read(records[name]) if record["event"] == "call"]
        assert decided == [one["spanId"] for one in own]


def test_the_hooks_before_and_after_a_call_make_one_span(tmp_path: Path, environment: dict[str, str]) -> None:
    event = {"session_id": "s", "cwd": "/", "tool_name": "Bash", "tool_use_id": "h1", "tool_input": {"command": "make"}}
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    around = {**environment, "TRACEPARENT": f"00-{trace_id}-{span_id}-01"}
    with Collector() as collector:
        for more in ({"hook_event_name": "PreToolUse"}, {"hook_event_name": "PostToolUse", "tool_response": {"ok": 1}}):
            assert run(traced(collector, "hook"), around, json.dumps(event | more)).strip() == "{}"
    [span] = collector.spans
    assert (span["traceId"], span["parentSpanId"]) == (trace_id, span_id)
    attributes = span["attributes"]
    assert (attributes["guardrails.decision"], attributes["guardrails.status"]) == ("allow", "success")
