"""
One tool call of Strands: what came back, and what goes into the conversation.
"""

import asyncio
import json

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from contextvars import ContextVar
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.hooks.results import mark_of
from guardrails.integrations.hosting import calling, content, declared, missing
from guardrails.session.session import scoped

from .requests import Invocation


with needs("strands", "this adapter"):
    from strands.interrupt import InterruptException
    from strands.middleware import ExecuteToolContext, ToolResultEvent


_TEXT: Final = (str, Any, "str", "Any")
_PLAIN: Final = (int, float, bool, "int", "float", "bool")
calling_id: ContextVar[str | None] = ContextVar("guardrails_strands_call", default=None)
"""The id of the call that this task runs."""


class _Parked(Exception):
    """
    A tool, or an agent that is one, waits for a person: its call goes on later.
    """

    def __init__(self, event: Any) -> None:
        super().__init__()
        self.event = event


async def called(
    run: Invocation, context: ExecuteToolContext, proceed: Callable[[Any], AsyncGenerator[Any, None]]
) -> AsyncGenerator[Any, None]:
    """
    Run a call if the chain lets it; what the tool streams passes on meanwhile, and its result is what the model reads.
    """
    use, tool = context.tool_use, context.tool
    told: asyncio.Queue[Any] = asyncio.Queue()
    native: Any = None

    async def execute(_: str, arguments: Any) -> Any:
        nonlocal native
        native = None
        calling_id.set(use["toolUseId"])
        # What it has open is to be closed in the task, and the context, that opened it.
        async with aclosing(proceed(context.replace(tool_use={**use, "input": arguments}))) as events:
            async for event in events:
                if isinstance(event, ToolResultEvent):
                    native = event
                elif "tool_interrupt_event" in event:
                    raise _Parked(event)
                else:
                    told.put_nowait(event)
        if native is None:
            return Failed("the tool gave no result")
        if tool is None:
            return missing(use["name"])
        if native.exception is not None:
            raise native.exception
        return read(native.tool_result, tool)

    passes = InterruptException, _Parked
    session = scoped(run.session, {}, passes=passes) if tool is None else calling(run.session, _declared(tool), passes)
    arguments = run.broken.get(use["toolUseId"], use["input"])
    work = asyncio.ensure_future(session.acall(use["name"], arguments, execute, id=use["toolUseId"] or None))
    work.add_done_callback(lambda _: told.put_nowait(None))
    try:
        while (event := await told.get()) is not None:
            yield event
        envelope = work.result()
    except _Parked as parked:
        yield parked.event
        return
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait({work})
    result = None if native is None else native.tool_result
    made = {"toolUseId": use["toolUseId"], **(result or {}), "status": "success" if envelope.ok else "error"}
    made["content"] = _content(result, envelope, tool)
    yield ToolResultEvent(made, exception=None if native is None else native.exception)


def _declared(tool: Any) -> Tool:
    """
    *tool* as a session knows it: what the model may pass, and the hints of an MCP server.
    """
    spec = tool.tool_spec
    schema = spec["inputSchema"]
    return declared(tool.tool_name, schema.get("json", schema), spec.get("description"), spec.get("annotations"))


def read(result: Any, tool: Any) -> Any:
    """
    The outcome of a call, of the *result* that the host made of what *tool* gave back.
    """
    blocks, structured = result["content"], result.get("structuredContent")
    values = [_value(block, tool) for block in blocks]
    if result["status"] == "error":
        text = "\n".join(block["text"] for block in blocks if "text" in block)
        rest = [value for block, value in zip(blocks, values, strict=True) if "text" not in block] or None
        return Failed(text, value=structured or rest)
    if structured is not None:
        return structured["result"] if structured.keys() == {"result"} else structured
    return values[0] if len(values) == 1 else values or None


def _value(block: Any, tool: Any) -> Any:
    if "json" in block:
        return block["json"]
    if "text" not in block:
        return mark_of(next(iter(block), None), block)
    # The host writes what is no text as JSON.
    returns = getattr(tool, "__annotations__", {}).get("return", str)
    unites = get_origin(returns) in (Union, UnionType)
    kinds = returns.split(" | ") if isinstance(returns, str) else get_args(returns) if unites else [returns]
    if any(kind in _TEXT for kind in kinds):
        return block["text"]
    try:
        value = json.loads(block["text"])
    except ValueError:
        return block["text"]
    return value if isinstance(value, (dict, list, NoneType)) or returns in _PLAIN else block["text"]


def _content(result: Any, envelope: Envelope, tool: Any) -> list[Any]:
    blocks = result["content"] if result is not None else []
    rich = [block for block in blocks if "text" not in block and "json" not in block]
    if envelope.ok and envelope.cut is None and getattr(tool, "delegate", False):
        # It is the user who reads it.
        return list(blocks)
    said = content(blocks, envelope, lambda text: {"text": text}, lambda block: block not in rich)
    return said or [{"text": envelope.to_json()}]
