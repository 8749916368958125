"""
One trace through the loop, a proxy that it starts, and a hook that a program of it runs: real processes.
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
pytest.importorskip("opentelemetry.sdk")

from guardrails.sinks import read
from guardrails.testing.scripted_openai import Calls, ScriptedOpenAI, Text, call
from tests.mcp.process import ROOT, SERVER


pytestmark = pytest.mark.system
HERE = Path(__file__).parent


def run(folder: Path, *arguments: object, given: str = "", **environment: str) -> str:
    """
    The output of the command `guardrails`, whose spans go into a file of *folder*.
    """
    own = {name: str(folder) for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")} | {"PYTHONPATH": str(ROOT)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "GUARDRAILS_"))}
    whole = {**kept, **own, "OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1", **environment}
    command: Any = [*traced(folder), *map(str, arguments)]
    return subprocess.run(command, input=given, env=whole, stdout=-1, text=True, check=True, timeout=120).stdout


def traced(folder: Path) -> list[str]:
    return [sys.executable, str(HERE / "traced.py"), str(folder / "spans")]


def spans(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "spans").read_text().splitlines()]


def id_of(span: Any) -> str:
    made: str = span["context"]["span_id"]
    return made


def test_one_trace_goes_through_the_loop_the_proxy_and_the_hook(tmp_path: Path) -> None:
    records = {name: tmp_path / f"{name}.jsonl" for name in ("run", "mcp", "hook")}
    (tmp_path / "none.yaml").write_text("version: 1\nbudget: {max_calls: 0}\n")
    proxy = [*traced(tmp_path), "mcp", f"--records={records['mcp']}", "--pins=none", "--", *SERVER]
    hook = [*traced(tmp_path), "hook", f"--policy={tmp_path / 'none.yaml'}", f"--records={records['hook']}"]
    environment = {"PYTHONPATH": str(ROOT), "SERVER_LOG": str(tmp_path / "asked")}
    servers = {"srv": {"command": proxy[0], "args": proxy[1:], "env": environment}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (tmp_path / "own.py").write_text(f"HOOK = {hook!r}\n{(HERE / 'own_tool.py.txt').read_text()}")
    asked = [call("srv__echo", {"text": "hi"}, id="c1"), call("code", {"task": "build"}, id="c2")]
    options = [f"--mcp={tmp_path / 'mcp.json'}", f"--tools={tmp_path / 'own.py'}", f"--records={records['run']}"]
    with ScriptedOpenAI([Calls(*asked), Text("done")]) as server:
        given: Any = ("run", "the task", "--model=m", "--sandbox=none", f"--workspace={tmp_path}", *options)
        run(tmp_path, *given, OPENAI_BASE_URL=server.base_url)
    above = {id_of(one): one for one in spans(tmp_path)}
    named = {f"{one['resource']['attributes']['service.name']} {one['name']}": one for one in above.values()}
    agent, echo, code = (
        named[f"run {name}"] for name in ("invoke_agent", "execute_tool srv__echo", "execute_tool code")
    )
    proxied, hooked = named["mcp execute_tool echo"], named["hook execute_tool Bash"]
    assert len({one["context"]["trace_id"] for one in (agent, echo, code, proxied, hooked)}) == 1
    assert [one["parent_id"] for one in (agent, echo, code, hooked)] == [None, id_of(agent), id_of(agent), id_of(code)]
    parent = above[proxied["parent_id"]]
    while parent is not echo:
        # The MCP SDK may have a span of its own around its request.
        parent = above[parent["parent_id"]]
    assert hooked["attributes"]["guardrails.code"] == "budget.max_calls"

    last = json.loads((tmp_path / "asked").read_text().splitlines()[-1])
    trace, span = (f"0x{part}" for part in last["params"]["_meta"]["traceparent"].split("-")[1:3])
    # The SDK has a span of its own around its request here, too.
    assert (trace, above[span]["parent_id"]) == (proxied["context"]["trace_id"], id_of(proxied))

    for name, own in (("run", (echo, code)), ("mcp", (proxied,)), ("hook", (hooked,))):
        decided = [record["trace"]["span_id"] for record in read(records[name]) if record["event"] == "call"]
        assert [f"0x{one}" for one in decided] == [id_of(one) for one in own]


def test_the_hooks_before_and_after_a_call_make_one_span(tmp_path: Path) -> None:
    event = {"session_id": "s", "cwd": "/", "tool_name": "Bash", "tool_use_id": "h1", "tool_input": {"command": "make"}}
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    for more in ({"hook_event_name": "PreToolUse"}, {"hook_event_name": "PostToolUse", "tool_response": {"ok": 1}}):
        given, around = json.dumps(event | more), f"00-{trace_id}-{span_id}-01"
        assert run(tmp_path, "hook", given=given, TRACEPARENT=around).strip() == "{}"
    [span] = spans(tmp_path)
    assert (span["context"]["trace_id"], span["parent_id"]) == (f"0x{trace_id}", f"0x{span_id}")
    shown = span["attributes"]
    assert (shown["guardrails.decision"], shown["guardrails.status"]) == ("allow", "success")
