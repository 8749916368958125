"""
An MCP server with all that the official conformance suite asks for, over stdio or HTTP: the tests' own server.

Beside the suite's tools it has some for what the suite does not try: cancellation, roots, lists that change, a
continuation (`input_required`), results that are big.
"""

import asyncio
import json
import sys
import warnings

from contextlib import suppress
from pathlib import Path
from typing import Any

import mcp_types as types
import yaml

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError


HAS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("conformance.yaml").read_text())
WATCHED = "test://watched-resource"
watched: set[str] = set()
ended = asyncio.Event()
bus = InMemorySubscriptionBus()


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    tools = []
    for name, has in HAS["tools"].items():
        schemas = {"input_schema": has.get("input", {"type": "object"}), "output_schema": has.get("output")}
        tools.append(types.Tool(name=name, description=name.replace("_", " "), **schemas))
    return types.ListToolsResult(tools=tools)


async def call_tool(ctx: Any, params: Any) -> types.CallToolResult | types.InputRequiredResult:
    name, arguments = params.name, params.arguments or {}
    if fixed := HAS["tools"].get(name, {}).get("result"):
        return types.CallToolResult.model_validate(fixed)
    if name == "rows":
        rows = [{"id": n, "text": f"row {n} " * 20} for n in range(arguments["n"])]
        found = {"rows": rows, "total": len(rows)}
        return types.CallToolResult(content=[text(str(found))], structured_content=found)
    if name == "greet" and ctx.protocol_version >= "2026":
        return greet(params)
    if name not in HAS["tools"]:
        raise MCPError(types.INVALID_PARAMS, f"no tool {name}")
    return types.CallToolResult(content=[text(await TOOLS.get(name, named)(name, arguments, ctx))])


def greet(params: Any) -> types.CallToolResult | types.InputRequiredResult:
    """
    A call that needs three answers of the client, and then one more, each time by a retry of the same call.
    """
    answers = params.input_responses or {}
    if params.request_state is None:
        said = [types.SamplingMessage(role="user", content=text("Say hello"))]
        asked = types.ElicitRequestFormParams(message="Who?", requested_schema=HAS["forms"]["greet"])
        requests: dict[str, Any] = {
            "who": types.ElicitRequest(params=asked),
            "hello": types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=said, max_tokens=9)),
            "where": types.ListRootsRequest(),
        }
        return types.InputRequiredResult(input_requests=requests, request_state="asked")
    if params.request_state == "asked":
        found = f"{answers['hello'].content.text} {answers['who'].content['username']} {answers['where'].roots[0].uri}"
        sure = types.ElicitRequestFormParams(message="Sure?", requested_schema=HAS["forms"]["greet"])
        more: dict[str, Any] = {"sure": types.ElicitRequest(params=sure)}
        return types.InputRequiredResult(input_requests=more, request_state=f"sure {found}")
    return types.CallToolResult(content=[text(f"{answers['sure'].action}: {params.request_state}")])


# Tools that do something, or talk with the client first


async def named(name: str, given: Any, ctx: Any) -> str:
    return f"this is {name}"


async def log(name: str, given: Any, ctx: Any) -> str:
    for words in ("started", "processing data", "completed"):
        await ctx.session.send_log_message("info", f"Tool execution {words}", related_request_id=ctx.request_id)
        await asyncio.sleep(0.05)
    return "done"


async def progress(name: str, given: Any, ctx: Any) -> str:
    for amount in (0, 50, 100):
        await ctx.session.report_progress(amount, 100)
        await asyncio.sleep(0.05)
    return "done"


async def sample(name: str, given: Any, ctx: Any) -> str:
    asked = [types.SamplingMessage(role="user", content=text(given["prompt"]))]
    said = await ctx.session.create_message(asked, max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {said.content.text}"


async def elicit(name: str, given: Any, ctx: Any) -> str:
    reply = await ctx.session.elicit_form(given.get("message", "Please fill in"), HAS["forms"][name], ctx.request_id)
    begin = "User response" if "message" in given else "Elicitation completed"
    return f"{begin}: action={reply.action}, content={reply.content}"


async def wait(name: str, given: Any, ctx: Any) -> str:
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        ended.set()
        raise
    return "waited"


async def waited(name: str, given: Any, ctx: Any) -> str:
    with suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), 10)
    return f"cancelled: {ended.is_set()}"


async def roots(name: str, given: Any, ctx: Any) -> str:
    return ", ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


async def grow(name: str, given: Any, ctx: Any) -> str:
    new = f"grown_{sum(tool.startswith('grown') for tool in HAS['tools'])}"
    HAS["tools"][new] = {}
    if ctx.protocol_version >= "2026":
        await bus.publish(ToolsListChanged())
    else:
        await ctx.session.send_tool_list_changed()
    return new


async def touch(name: str, given: Any, ctx: Any) -> str:
    for uri in sorted(watched):
        await ctx.session.send_resource_updated(uri)
    await bus.publish(ResourceUpdated(uri=WATCHED))
    return f"{len(watched)} watched"


TOOLS = {tool.__name__: tool for tool in (wait, waited, roots, grow, touch)}
TOOLS |= {"test_tool_with_logging": log, "test_tool_with_progress": progress, "test_sampling": sample}
TOOLS |= {name: elicit for name in HAS["forms"] if name.startswith("test_")}


# What else there is


async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
    uri = str(params.uri)
    has = HAS["resources"].get(uri)
    if uri.startswith("test://template/"):
        found = uri.split("/")[3]
        words = f'{{"id":"{found}","templateTest":true,"data":"Data for ID: {found}"}}'
        has = {"mimeType": "application/json", "text": words}
    if has is None:
        raise MCPError(-32002, f"no resource {uri}")
    return types.ReadResourceResult.model_validate({"contents": [{"uri": uri, **has}]})


async def subscribe(ctx: Any, params: Any) -> types.EmptyResult:
    watched.add(str(params.uri))
    return types.EmptyResult()


async def unsubscribe(ctx: Any, params: Any) -> types.EmptyResult:
    watched.discard(str(params.uri))
    return types.EmptyResult()


async def get_prompt(ctx: Any, params: Any) -> types.GetPromptResult:
    said = json.dumps([{"role": "user", "content": one} for one in HAS["prompts"][params.name]])
    for name, value in (params.arguments or {}).items():
        said = said.replace(name.upper(), value)
    return types.GetPromptResult.model_validate({"messages": json.loads(said)})


def fixed(kind: Any) -> Any:
    """
    A handler whose answer is always that of the file.
    """

    async def answer(ctx: Any, params: Any) -> Any:
        return kind.model_validate(HAS["fixed"][kind.__name__])

    return answer


def server() -> Server[Any]:
    warnings.simplefilter("ignore")  # The suite asks for what the newest revision calls deprecated.
    return Server(
        "conformance",
        version="1.0.0",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=fixed(types.ListResourcesResult),
        on_list_resource_templates=fixed(types.ListResourceTemplatesResult),
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_list_prompts=fixed(types.ListPromptsResult),
        on_get_prompt=get_prompt,
        on_completion=fixed(types.CompleteResult),
        on_subscriptions_listen=ListenHandler(bus),
        on_set_logging_level=fixed(types.EmptyResult),
    )


async def stdio() -> None:
    ours = server()
    async with stdio_server() as (read, write):
        await ours.run(read, write, ours.create_initialization_options())


if __name__ == "__main__":
    if sys.argv[1] == "http":
        import uvicorn

        uvicorn.run(server().streamable_http_app(), port=int(sys.argv[2]), log_level="error")
    else:
        asyncio.run(stdio())
