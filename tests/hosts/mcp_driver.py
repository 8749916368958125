"""
Drives MCP servers and clients: the scripted model calls tools through a real client of a real server, as an agent would.

There is no model in MCP, and so no final answer, no tool choice and no usage: those are the host's that the client is a part of.
"""

import asyncio
import json

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mcp_types import CallToolResult, TextContent

from guardrails.mcp.answers import ENVELOPE, RUN

from .driver import Asked, Call, Ran, Script


MAX_REQUESTS = 25
"""What a scripted model may ask that nobody stops."""
_NO_MODEL = (
    "MCP knows tools and no model: there is no request to turn tools off in; mcp_types/methods.py:57, CLIENT_REQUESTS"
)
FINAL: Final[dict[str, str]] = dict.fromkeys(
    ("test_a_stuck_model_comes_to_a_final_answer", "test_a_model_at_the_cap_comes_to_a_final_answer"), _NO_MODEL
)
"""Tests of final answers, which are owed by whoever has the model."""


def as_envelope(result: Any) -> str:
    """
    A result as the contract reads it. One of ours that failed is the envelope below its line; else a result says its status by
    `isError`, keeps its own content, and has what there is to say beside it.
    """
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    line, _, below = text.partition("\n")
    if result.is_error and line.startswith("[guardrails:"):
        return below
    said = (result.meta or {}).get(ENVELOPE, {})
    return json.dumps({"status": "error" if result.is_error else "success", "result": text, **said})


class McpDriver:
    """
    What the drivers of both packages share: the model's loop over a client.
    """

    name: str
    cannot: Mapping[str, str]
    client_side: bool = False

    def adapter(self, guarded: Any, **options: Any) -> Any:
        raise NotImplementedError

    def connected(self, tools: Sequence[Callable[..., Any]], adapter: Any, thread: str | None) -> Any:
        """
        A client of a server with *tools*, not entered yet, one of them behind *adapter*.
        """
        raise NotImplementedError

    def run(
        self,
        adapter: Any,
        tools: Sequence[Callable[..., Any]],
        script: Script,
        *,
        prompt: str = "go",
        thread: str | None = None,
        stream: bool = False,
        sync: bool = False,
        **more: Any,
    ) -> Ran:
        ran = Ran()
        try:
            asyncio.run(self._go(ran, self.connected(tools, adapter, thread), script, thread))
        except Exception as error:
            ran.error = error
        return ran

    async def _go(self, ran: Ran, connected: Any, script: Script, thread: str | None) -> None:
        meta = {} if thread is None or self.client_side else {"meta": {RUN: thread}}
        async with connected as client:
            listed = await client.list_tools()
            names = tuple(tool.name for tool in getattr(listed, "tools", listed))
            for n in range(MAX_REQUESTS):
                asked = Asked(n=n, tools=names, choice=None, results=tuple(ran.results))
                ran.asked.append(asked)
                said = script(asked)
                if not said.calls:
                    ran.answer = said.text
                    return
                made = await asyncio.gather(*(self.called(client, call, meta) for call in said.calls))
                ran.results += [as_envelope(result) for result in made]

    async def called(self, client: Any, call: Call, meta: dict[str, Any]) -> CallToolResult:
        arguments = json.loads(call.arguments) if isinstance(call.arguments, str) else dict(call.arguments)
        result: CallToolResult = await client.call_tool(call.tool, arguments, **meta)
        return result
