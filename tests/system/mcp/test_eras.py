"""
Both eras of the protocol through the proxy, by the SDK's own client: nothing that the server offers is lost.
"""

import asyncio
import os
import warnings

from pathlib import Path
from typing import Any

import pytest

from tests.mcp.process import ENVIRONMENT, ROOT
from tests.system.mcp.chains import reached


pytest.importorskip("mcp")
import mcp_types as types

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters


pytestmark = pytest.mark.system


WATCHED = "test://watched-resource"
LEGACY, MODERN = "2025-11-25", "2026-07-28"


class Conversation:
    """
    A client that answers what a server asks, and remembers what it was told.
    """

    def __init__(self) -> None:
        self.logged: list[Any] = []
        self.heard: list[str] = []
        self.progress: list[float] = []
        self.told = asyncio.Event()

    async def sampling(self, context: Any, params: Any) -> types.CreateMessageResult:
        content = types.TextContent(type="text", text="Hello")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def elicitation(self, context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"username": "Ada", "email": "a@b.ch"})

    async def roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///tmp/of-the-client"})])

    async def log(self, params: Any) -> None:
        self.logged.append(params.data)

    async def message(self, message: Any) -> None:
        self.heard.append(getattr(message, "method", type(message).__name__))
        self.told.set()

    async def count(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(progress)

    def client(self, target: Any, era: str) -> Client:
        return Client(
            target,
            mode="legacy" if era == LEGACY else era,
            sampling_callback=self.sampling,
            elicitation_callback=self.elicitation,
            list_roots_callback=self.roots,
            logging_callback=self.log,
            log_level="info",
            message_handler=self.message,
            client_info=types.Implementation(name="eras", version="1"),
        )


def told(result: Any) -> str:
    return "\n".join(one.text for one in result.content if one.type == "text")


async def everything(target: Any, era: str) -> dict[str, Any]:
    """
    All that a client of this era can do, and what came of it.
    """
    ours = Conversation()
    seen: dict[str, Any] = {}
    async with asyncio.timeout(300), ours.client(target, era) as client:
        seen["era"] = client.protocol_version
        seen["server"] = client.server_info.name if client.server_info else None
        tools = (await client.list_tools()).tools
        seen["tools"] = [tool.name for tool in tools]
        seen["defs"] = next(tool for tool in tools if tool.name.startswith("json_schema")).input_schema["$defs"]
        for name in ("test_simple_text", "test_multiple_content_types"):
            seen[name] = (await client.call_tool(name)).content
        seen["error"] = (await client.call_tool("test_error_handling")).is_error
        await client.call_tool("test_tool_with_progress", progress_callback=ours.count)
        seen["progress"] = ours.progress
        await client.call_tool("test_tool_with_logging")
        seen["logged"] = ours.logged
        seen["rows"] = (await client.call_tool("rows", {"n": 3})).structured_content
        for seconds in (0.5, 4, 32):
            with pytest.raises(Exception, match=r"imed out|cancel"):
                await client.call_tool("wait", {"label": f"{seconds}"}, read_timeout_seconds=seconds)
            # On a slow machine a call may not have reached the server when its time was up.
            seen["cancelled"] = told(await client.call_tool("waited", {"after": seconds}))
            if seen["cancelled"] == "cancelled: True":
                break
        reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        for name, asked in {
            "completed": client.complete(reference, {"name": "arg1", "value": "par"}),
            "prompts": client.list_prompts(),
            "prompt": client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"}),
            "resources": client.list_resources(),
            "templates": client.list_resource_templates(),
            "read": client.read_resource("test://template/7/data"),
        }.items():
            seen[name] = (await asked).model_dump(exclude={"meta"})
        await (old if era == LEGACY else new)(client, ours, seen)
        with pytest.raises(Exception, match=r"no resource|-32"):
            await client.read_resource("test://no-such")
    return seen


async def old(client: Client, ours: Conversation, seen: dict[str, Any]) -> None:
    """
    What only a connection with a handshake has: requests of the server at any time.
    """
    await client.send_ping()
    await client.set_logging_level("warning")
    seen["sampling"] = told(await client.call_tool("test_sampling", {"prompt": "hi"}))
    seen["elicitation"] = told(await client.call_tool("test_elicitation", {"message": "who"}))
    seen["roots"] = told(await client.call_tool("roots"))
    await client.subscribe_resource(WATCHED)
    ours.told.clear()
    seen["watched"] = told(await client.call_tool("touch"))
    await ours.told.wait()
    await client.unsubscribe_resource(WATCHED)
    seen["unwatched"] = told(await client.call_tool("touch", {"again": True}))
    ours.told.clear()
    seen["grown"] = told(await client.call_tool("grow"))
    await ours.told.wait()
    seen["heard"] = sorted(set(ours.heard) - {"notifications/message", "notifications/progress"})
    seen["tools now"] = len((await client.list_tools()).tools)
    seen["of the new"] = told(await client.call_tool("grown_0"))


async def new(client: Client, ours: Conversation, seen: dict[str, Any]) -> None:
    """
    What only a connection without one has: continuations, and streams of changes that are asked for.
    """
    seen["greeted"] = [told(await client.call_tool("greet")) for _ in range(2)]
    async with client.listen(tools_list_changed=True, resource_subscriptions=[WATCHED]) as changes:
        seen["grown"] = told(await client.call_tool("grow"))
        seen["watched"] = told(await client.call_tool("touch"))
        seen["changes"] = [type(await anext(changes)).__name__ for _ in range(2)]
    seen["tools now"] = len((await client.list_tools(cache_mode="refresh")).tools)
    seen["of the new"] = told(await client.call_tool("grown_0"))


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_all_that_a_client_can_do_passes_in_both_eras(era: str, tmp_path: Path) -> None:
    seen = {}
    for name in ("direct", "stdio", "url", "listen"):
        (tmp_path / name).mkdir()
        with warnings.catch_warnings(), reached(name, tmp_path / name) as found:
            warnings.simplefilter("ignore")  # The newest revision calls much of the older one deprecated.
            target: Any = found
            if not isinstance(found, str):
                environment = {**os.environ, **ENVIRONMENT}
                target = StdioServerParameters(command=found[0], args=list(found[1:]), env=environment, cwd=ROOT)
            seen[name] = asyncio.run(everything(target, era))
    direct = seen.pop("direct")
    assert (direct["era"], direct["error"], direct["progress"], len(direct["logged"])) == (era, True, [0, 50, 100], 3)
    assert (direct["cancelled"], direct["tools now"]) == ("cancelled: True", len(direct["tools"]) + 1)
    for name, one in seen.items():
        assert one == direct, name
