"""
An MCP server with all that the official conformance suite asks for, over stdio or HTTP: the tests' own server.

Beside the suite's tools it has some for what the suite does not try: cancellation, roots, lists that change, a
continuation (`input_required`), results that are big.
"""

import asyncio
import sys
import warnings

from typing import Any

import mcp_types as types

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError
from pydantic import AnyUrl

from tests.system.mcp.conformance_schemas import (
    NO_ARGUMENTS,
    PNG,
    PROMPTS,
    ROWS,
    TOOLS,
    USER,
    WAV,
    WITH_CHOICES,
    WITH_DEFAULTS,
)


STATIC, BINARY, WATCHED = "test://static-text", "test://static-binary", "test://watched-resource"
grown: list[str] = []
cancelled: list[str] = []
ended = asyncio.Event()
watched: set[str] = set()
bus = InMemorySubscriptionBus()


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


def image() -> types.ImageContent:
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def resource(uri: str, mime: str, words: str) -> types.EmbeddedResource:
    inner = types.TextResourceContents(uri=uri, mime_type=mime, text=words)
    return types.EmbeddedResource(type="resource", resource=inner)


CONTENT: dict[str, list[Any]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image()],
    "test_audio_content": [types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        image(),
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "json_schema_2020_12_tool": [text("valid")],
}


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    tools = [
        types.Tool(name=name, description=name.replace("_", " "), input_schema=schema)
        for name, schema in {**TOOLS, **dict.fromkeys(grown, NO_ARGUMENTS)}.items()
    ]
    tools[list(TOOLS).index("rows")].output_schema = ROWS
    return types.ListToolsResult(tools=tools)


async def call_tool(ctx: Any, params: Any) -> types.CallToolResult | types.InputRequiredResult:
    name, arguments, session = params.name, params.arguments or {}, ctx.session
    if name == "test_error_handling":
        return types.CallToolResult(
            content=[text("This tool intentionally returns an error for testing")], is_error=True
        )
    if name == "rows":
        rows = [{"id": n, "text": f"row {n} " * 20} for n in range(arguments["n"])]
        found = {"rows": rows, "total": len(rows)}
        return types.CallToolResult(content=[text(str(found))], structured_content=found)
    if name == "greet" and ctx.protocol_version >= "2026":
        return greet(params)
    return types.CallToolResult(content=CONTENT.get(name) or [text(await told(name, arguments, ctx, session))])


def greet(params: Any) -> types.CallToolResult | types.InputRequiredResult:
    """
    A call that needs three answers of the client, and then one more, each time by a retry of the same call.
    """
    answers = params.input_responses or {}
    if params.request_state is None:
        said = [types.SamplingMessage(role="user", content=text("Say hello"))]
        asked = types.ElicitRequestFormParams(message="Who?", requested_schema=USER)
        requests: dict[str, Any] = {
            "who": types.ElicitRequest(params=asked),
            "hello": types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=said, max_tokens=9)),
            "where": types.ListRootsRequest(),
        }
        return types.InputRequiredResult(input_requests=requests, request_state="asked")
    if params.request_state == "asked":
        found = f"{answers['hello'].content.text} {answers['who'].content['username']} {answers['where'].roots[0].uri}"
        sure = types.ElicitRequestFormParams(message="Sure?", requested_schema=USER)
        return types.InputRequiredResult(
            input_requests={"sure": types.ElicitRequest(params=sure)}, request_state=f"sure {found}"
        )
    return types.CallToolResult(content=[text(f"{answers['sure'].action}: {params.request_state}")])


async def told(name: str, arguments: dict[str, Any], ctx: Any, session: Any) -> str:  # noqa: C901  a case for each tool
    """
    What a tool says that talks with the client first.
    """
    related = ctx.request_id
    match name:
        case "test_tool_with_logging":
            for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
                await session.send_log_message("info", words, related_request_id=related)
                await asyncio.sleep(0.05)
            return "done"
        case "test_tool_with_progress":
            for progress in (0, 50, 100):
                await session.report_progress(progress, 100)
                await asyncio.sleep(0.05)
            return "done"
        case "test_sampling":
            asked = [types.SamplingMessage(role="user", content=text(arguments["prompt"]))]
            said = await session.create_message(asked, max_tokens=100, related_request_id=related)
            return f"LLM response: {said.content.text}"
        case "test_elicitation":
            reply = await session.elicit_form(arguments["message"], USER, related)
            return f"User response: action={reply.action}, content={reply.content}"
        case "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums":
            wanted = WITH_DEFAULTS if name.endswith("defaults") else WITH_CHOICES
            reply = await session.elicit_form("Please fill in", wanted, related)
            return f"Elicitation completed: action={reply.action}, content={reply.content}"
        case "wait":
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append(arguments.get("label", ""))
                ended.set()
                raise
            return "waited"
        case "waited":
            await asyncio.wait_for(ended.wait(), 30)
            return f"cancelled: {cancelled}"
        case "roots":
            return ", ".join(str(root.uri) for root in (await session.list_roots()).roots)
        case "grow":
            grown.append(f"grown_{len(grown)}")
            if ctx.protocol_version >= "2026":
                await bus.publish(ToolsListChanged())
            else:
                await session.send_tool_list_changed()
            return grown[-1]
        case "touch":
            for uri in sorted(watched):
                await session.send_resource_updated(uri)
            await bus.publish(ResourceUpdated(uri=WATCHED))
            return f"{len(watched)} watched"
        case _ if name in grown or name in {"test_reconnection", "greet"}:
            return f"this is {name}"
    raise MCPError(types.INVALID_PARAMS, f"no tool {name}")


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    found = ((STATIC, "text/plain"), (BINARY, "image/png"), (WATCHED, "text/plain"))
    return types.ListResourcesResult(
        resources=[types.Resource(uri=uri, name=uri[7:], description=uri, mime_type=mime) for uri, mime in found]
    )


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    found = types.ResourceTemplate(uri_template="test://template/{id}/data", name="template", description="by id")
    return types.ListResourceTemplatesResult(resource_templates=[found])


async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
    uri = str(params.uri)
    contents: Any
    if uri == BINARY:
        contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri.startswith("test://template/"):
        found = uri.split("/")[3]
        words = f'{{"id":"{found}","templateTest":true,"data":"Data for ID: {found}"}}'
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=words)
    elif uri in {STATIC, WATCHED}:
        words = "This is the content of the static text resource."
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=words)
    else:
        raise MCPError(-32002, f"no resource {uri}")
    return types.ReadResourceResult(contents=[contents])


async def subscribe(ctx: Any, params: Any) -> types.EmptyResult:
    watched.add(str(AnyUrl(str(params.uri))))
    return types.EmptyResult()


async def unsubscribe(ctx: Any, params: Any) -> types.EmptyResult:
    watched.discard(str(AnyUrl(str(params.uri))))
    return types.EmptyResult()


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description=name.replace("_", " "),
                arguments=[types.PromptArgument(name=one, description=one, required=True) for one in needed],
            )
            for name, needed in PROMPTS.items()
        ]
    )


async def get_prompt(ctx: Any, params: Any) -> types.GetPromptResult:
    given = params.arguments or {}
    content: dict[str, list[Any]] = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
        ],
        "test_prompt_with_embedded_resource": [
            resource(given.get("resourceUri", STATIC), "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [image(), text("Please analyze the image above.")],
    }
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=one) for one in content[params.name]]
    )


async def complete(ctx: Any, params: Any) -> types.CompleteResult:
    values = [one for one in ("paris", "park", "party") if one.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


async def set_level(ctx: Any, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


def server() -> Server[Any]:
    warnings.simplefilter("ignore")  # The suite asks for what the newest revision calls deprecated.
    return Server(
        "conformance",
        version="1.0.0",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_subscriptions_listen=ListenHandler(bus),
        on_set_logging_level=set_level,
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
