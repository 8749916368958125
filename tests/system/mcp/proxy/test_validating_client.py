"""
The SDK for TypeScript through the proxy: it raises if structured content does not fit the tool's schema, or is missing.
"""

import json
import os
import subprocess

from pathlib import Path
from typing import Any

import pytest

from tests.mcp.proxy.lines import ENVIRONMENT, tap
from tests.system.mcp.proxy.chains import STDIO
from tests.system.mcp.proxy.published import module, node


pytestmark = pytest.mark.system


CLIENT = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const [calls, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "check", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const tools = (await client.listTools()).tools;
const found = [];
for (const [name, given] of JSON.parse(calls)) {
  try {
    found.push(await client.callTool({ name, arguments: given }));
  } catch (error) {
    found.push({ raised: String(error) });
  }
}
console.log(JSON.stringify({ schema: tools.find((tool) => tool.name === "rows").outputSchema ?? null, found }));
await client.close();
"""
Results = list[dict[str, Any]]


def checked(folder: Path, policy: str, calls: list[tuple[str, dict[str, Any]]], **given: str) -> tuple[Any, Results]:
    """
    The schema of `rows` as the client reads it, and what each of the *calls* gave.
    """
    (folder / "node_modules").symlink_to(module())
    (folder / "client.mjs").write_text(CLIENT)
    (folder / "policy.yaml").write_text(policy)
    command = tap(*STDIO, policy=folder / "policy.yaml", **given)
    done = subprocess.run(
        (node(), "client.mjs", json.dumps(calls), *command),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, **ENVIRONMENT},
    )
    read = json.loads(done.stdout)
    raised = [one["raised"] for one in read["found"] if "raised" in one]
    assert not raised, raised
    return read["schema"], read["found"]


def text(result: dict[str, Any]) -> str:
    return "\n".join(one["text"] for one in result["content"])


def test_a_denied_call_a_cut_result_and_a_note_are_all_valid_to_it(tmp_path: Path) -> None:
    rows = [("rows", {"n": 3})] * 6
    wrong: list[tuple[str, dict[str, Any]]] = [("rows", {"n": [3]}), ("rows", {})]
    calls = [*rows, ("rows", {"n": 5_000}), *wrong, ("rows", {"n": 4})]
    schema, found = checked(tmp_path, "version: 1\nextends: default\nbudget: {max_calls: 20}\n", calls)
    assert found[0]["structuredContent"]["total"] == 3
    denied = [one for one in found[:6] if one.get("isError")]
    assert len(denied) >= 3
    assert all(text(one).startswith("[guardrails:") and "structuredContent" not in one for one in denied)
    cut = found[6]
    assert not cut.get("isError")
    assert cut["structuredContent"]["total"] == 5_000
    assert 0 < len(cut["structuredContent"]["rows"]) < 5_000
    assert len(json.dumps(cut)) < 3 * 65_536
    assert "_guardrails" in cut["structuredContent"]
    assert "_guardrails" in schema["properties"]
    for one in found[7:9]:
        assert one["isError"]
        assert text(one).startswith("[guardrails:")
    assert found[-1]["structuredContent"]["total"] == 4


def test_a_budget_that_runs_out_is_told_in_both_places_and_then_refused(tmp_path: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [("rows", {"n": n}) for n in range(8)]
    _, found = checked(tmp_path, "version: 1\nbudget: {max_calls: 5}\n", calls)
    ran = [one for one in found if not one.get("isError")]
    assert len(ran) == 5
    assert all(one["structuredContent"]["total"] == n for n, one in enumerate(ran))
    assert all("structuredContent" not in one for one in found[5:])
    assert "final" in text(found[-1]) or "answer" in text(found[-1])
