"""
Drives MCP servers and clients: the scripted model calls tools through a real client of a real server, as an agent would.

There is no model in MCP, and so no final answer, no tool choice and no usage: those are the host's that the client is a part of.
"""

import asyncio
import json
import re

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import count, islice
from typing import Any, Final

from mcp_types import CallToolResult, TextContent

from guardrails.core.result.content import wrapped_value
from guardrails.mcp.calls import ENVELOPE, NOTES, RUN

from .behaviours import PAGE
from .driver import Asked, Call, Ran, Script, Way, cancelled


_NO_MODEL = "MCP knows tools and no model, whose requests, text, usage and end are its client's; mcp_types/methods.py:57, CLIENT_REQUESTS"
_NO_AGENT = "MCP knows no agent that pauses, or asks another; mcp_types/methods.py:57, CLIENT_REQUESTS"
_OBJECT = "arguments are an object when a client sends them; mcp_types/_types.py, CallToolRequestParams.arguments"
CANNOT: Final[dict[str, str]] = {
    "test_a_stuck_model_comes_to_a_final_answer": _NO_MODEL,
    "test_a_stuck_model_before_a_store_that_is_gone_comes_to_an_end": _NO_MODEL,
    "test_a_model_at_the_cap_comes_to_a_final_answer": _NO_MODEL,
    "test_text_is_streamed_in_pieces_and_the_guards_are_the_same": _NO_MODEL,
    "test_a_model_that_calls_with_tools_off_is_asked_once_more_and_the_digest_is_the_answer": _NO_MODEL,
    "test_a_model_that_stays_silent_with_tools_off_is_answered_for_by_the_digest": _NO_MODEL,
    "test_a_forced_tool_choice_holds_for_the_first_request_only": _NO_MODEL,
    "test_a_structured_output_is_the_hosts_own": _NO_MODEL,
    "test_a_structured_output_is_valid_at_the_end_too": _NO_MODEL,
    "test_a_second_run_of_a_thread_goes_on_with_its_budget_and_more_can_be_given": _NO_MODEL,
    "test_usage_is_charged_at_the_policys_prices": _NO_MODEL,
    "test_turns_are_counted_with_their_number_of_calls_and_each_request_is_told_of": _NO_MODEL,
    "test_a_sub_agent_uses_the_budget_of_the_agent_that_asks_it": _NO_AGENT,
    "test_a_call_that_the_host_holds_is_charged_once_and_runs_an_hour_later": _NO_AGENT,
    "test_a_pause_of_one_call_runs_the_others_of_its_turn_once": _NO_AGENT,
    "test_arguments_that_are_no_json_are_told_of_and_the_run_goes_on": _OBJECT,
}
"""What is owed by whoever has the model."""
OF_SERVERS: Final[dict[str, str]] = CANNOT | {
    "test_runs_without_a_thread_do_not_share_a_budget": (
        "nothing tells the calls of two runs apart that name none: 2026-07-28 has no sessions; mcp/server/runner.py, ServerRunner"
    )
}
"""The same for servers, which know of runs what clients tell them."""


def said(result: Any) -> Mapping[str, Any]:
    """
    The envelope in `_meta`; empty if there is nothing to say.
    """
    found: Mapping[str, Any] = (result.meta or {}).get(ENVELOPE, {})
    return found


def as_envelope(result: Any) -> str:
    """
    A result as the contract reads it. One of ours that failed is the envelope below its line; else a result says its status by
    `isError`, keeps its own content, and has what there is to say beside it.
    """
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    line, _, below = text.partition("\n")
    if result.is_error and line.startswith("[guardrails:"):
        return below
    value: Any = text
    if result.structured_content is not None and NOTES not in result.structured_content:
        value = wrapped_value(result.structured_content)
    return json.dumps({"status": "error" if result.is_error else "success", "result": value, **said(result)})


class McpDriver:
    """
    What the drivers of both packages share: the model's loop over a client.
    """

    name: str
    limits: Mapping[str, Any] = {"requests": 25}
    """What a scripted model may ask that nobody stops."""
    integration: Any
    """The module with the middleware of servers and the guarded client."""
    hidden: Mapping[str, str] = {}
    """What else the package makes impossible on both sides."""
    of_clients: Mapping[str, str] = {}
    """And before a client."""

    def __init__(self, mode: str = "auto", *, client_side: bool = False) -> None:
        """
        With the *mode* `legacy` the protocol has a handshake. On the *client_side* the guards are before a client, of a
        server that knows nothing of them.
        """
        self.mode, self.client_side = mode, client_side
        self.cannot = {
            **(CANNOT if client_side else OF_SERVERS),
            **(self.of_clients if client_side else {}),
            **self.hidden,
        }

    def adapter(self, guarded: Any, **options: Any) -> Any:
        if self.client_side:
            return partial(self.integration.GuardedClient, guarded=guarded, **options)
        return self.integration.GuardrailsMiddleware(guarded, **options)

    def page(self, monkeypatch: Any) -> AbstractContextManager[None]:
        """
        Nothing has to take the place of a model.
        """
        return nullcontext()

    def client(self, tools: Sequence[Callable[..., Any]], middleware: list[Any]) -> Any:
        """
        A client of a server with *tools*, not entered yet.
        """
        raise NotImplementedError

    def run(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, **how: Any) -> Ran:
        way = Way(**how)
        ran = Ran()
        before = adapter if self.client_side else None
        client = self.client(tools, [] if adapter is None or before else [adapter])
        work = self._go(ran, before(client, run=way.thread) if before else client, script, way.thread)
        try:
            asyncio.run(work if way.cancel is None else cancelled(work, way.cancel))
        except (Exception, asyncio.CancelledError) as error:
            ran.error = error
        return ran

    async def _go(self, ran: Ran, connected: Any, script: Script, thread: str | None) -> None:
        meta = {} if thread is None or self.client_side else {"meta": {RUN: thread}}
        async with connected as client:
            listed = await client.list_tools()
            offered = getattr(listed, "tools", listed)
            names = tuple(tool.name for tool in offered)
            schemas = {tool.name: tool.model_dump(mode="json") for tool in offered}
            results: list[str] = []
            for n in islice(count(), self.limits.get("requests")):
                asked = Asked(n=n, tools=names, choice=None, results=tuple(results), schemas=schemas)
                ran.asked.append(asked)
                said = script(asked)
                if not said.calls:
                    ran.answer = said.text
                    return
                made = await asyncio.gather(*(self.called(client, call, meta) for call in said.calls))
                results += [as_envelope(result) for result in made]

    async def called(self, client: Any, call: Call, meta: dict[str, Any]) -> CallToolResult:
        result: CallToolResult = await client.call_tool(call.tool, call.values, **meta)
        return result


def clients_of(host: str) -> str:
    """
    The program that shows a client of *host*.
    """
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    [found] = [each for each in blocks if f"guardrails.integrations.{host} import GuardedClient" in each]
    return str(found)
