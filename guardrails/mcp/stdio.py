"""
A server that is started here, spoken to over its standard input and output, with bounds on what it may say.

A line that is no message is passed over, as servers greet their terminal; one that is longer than `MAX_LINE_BYTES`, or the
end of the output, ends the connection, so that whoever waits for an answer is told at once.
"""

import asyncio
import os
import signal

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from guardrails.core.values.errors import needs
from guardrails.core.values.logs import log

from .config import McpServer


with needs("mcp", "`guardrails.mcp`"):
    import anyio

    from anyio.abc import ObjectReceiveStream, ObjectSendStream
    from mcp.client import Transport
    from mcp.client.stdio import get_default_environment
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter


MAX_LINE_BYTES: Final = 32 * 1024 * 1024
"""Of one message: what a result may hold before the chain truncates it, with room for its wrapping."""
GRACE_S: Final = 2.0
"""How long a server may take to end once its input is closed, and again once it is asked to (SIGTERM)."""
SHOWN: Final = 200


@asynccontextmanager
async def stdio_server(server: McpServer, lost: asyncio.Event) -> AsyncIterator[Transport]:
    """
    Start *server* in a process group of its own, which is ended with everything in it when this is left; *lost* is set
    once it says nothing more.

    Raises OSError where it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        server.command or "",
        *server.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment(server.env),
        cwd=server.cwd,
        limit=MAX_LINE_BYTES,
        start_new_session=True,
    )
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)
    pumps = [asyncio.create_task(_listen(server.name, process, to_client))]
    pumps[0].add_done_callback(lambda _: lost.set())
    pumps.append(asyncio.create_task(_speak(process, from_client, to_client)))
    try:
        yield from_server, to_server  # type: ignore[misc]  # the SDK's streams, as its own transports give them
    finally:
        for stream in (from_server, to_server):
            stream.close()
        await asyncio.shield(_end(process, pumps))


def environment(added: Mapping[str, str]) -> dict[str, str]:
    """
    What a server gets to see: a few variables of ours (PATH, HOME, ...) and those that were *added* for it.
    """
    return {**get_default_environment(), **added}


async def _listen(
    name: str, process: asyncio.subprocess.Process, out: "ObjectSendStream[SessionMessage | Exception]"
) -> None:
    assert process.stdout is not None  # noqa: S101  it was asked for
    passed_over = 0
    async with out:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                try:
                    line = await process.stdout.readline()
                except ValueError:
                    log.error("MCP server `%s` sent a line of more than %d bytes, so it is left", name, MAX_LINE_BYTES)
                    return
                if not line.endswith(b"\n"):
                    return
                if not line.strip():
                    continue
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    passed_over += 1
                    if passed_over == 1:
                        shown = line[:SHOWN].decode(errors="replace").strip()
                        log.warning("MCP server `%s` wrote what is no message; it is passed over: %r", name, shown)
                    continue
                await out.send(SessionMessage(message))


async def _speak(
    process: asyncio.subprocess.Process,
    messages: "ObjectReceiveStream[SessionMessage]",
    out: "ObjectSendStream[SessionMessage | Exception]",
) -> None:
    assert process.stdin is not None  # noqa: S101
    async with messages:
        try:
            async for one in messages:
                process.stdin.write(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            # Nobody reads any more: whoever waits for an answer shall know.
            await out.aclose()
        finally:
            with suppress(OSError):
                process.stdin.close()


async def _end(process: asyncio.subprocess.Process, pumps: "list[asyncio.Task[None]]") -> None:
    """
    Close the input, then ask, then kill, each after a while; the whole group, so that no grandchild stays.
    """
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    for signal_ in (None, signal.SIGTERM, signal.SIGKILL):
        if signal_ is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal_)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await process.wait()
                break
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pump in pumps:
        pump.cancel()
    await asyncio.gather(*pumps, return_exceptions=True)
    transport = getattr(process, "_transport", None)
    if transport is not None:
        # A grandchild that left the group may hold the pipe open.
        transport.close()
