"""
A server that is started here, spoken to over its standard input and output, with bounds on what it may say.

A line that is no message is passed over, as servers greet their terminal. A line longer than `MAX_LINE_BYTES`, or the
end of the output, ends the connection. All who wait for an answer are then told at once.
"""

import asyncio
import errno
import os
import shutil
import signal

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from guardrails.core.values.errors import needs
from guardrails.core.values.logs import log
from guardrails.processes.needs import confinement_for
from guardrails.processes.run import Started, end_group
from guardrails.processes.sandbox import Confinement, started

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
    Start *server* in a process group of its own, which is ended with everything in it at the end of the block. The
    event *lost* is set once the server says nothing more.

    Raises OSError if it cannot be started, SandboxUnavailable if it cannot be confined as its entry asks.
    """
    # What it is confined by may be tried first, which takes a while.
    program = await asyncio.to_thread(started_of, server, environment(server.env))
    process = await asyncio.create_subprocess_exec(
        *program.arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=program.environment,
        cwd=program.folder,
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


def started_of(server: McpServer, environment: dict[str, str]) -> Started:
    """
    Returns *server*, which sees all of *environment*, ready to be started.

    Raises OSError if there is no such program, SandboxUnavailable if what its entry asks for does not work here.
    """
    command = server.command or ""
    folder = str(Path.cwd() if server.cwd is None else Path(server.cwd).absolute())
    program = (command, *server.args)
    if server.sandbox == "none" or (server.sandbox is None and server.network):
        return Started(arguments=program, environment=environment, folder=folder)
    named = command if Path(command).name == command else str(Path(folder, command))
    found = shutil.which(named, path=environment.get("PATH"))
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command)
    if server.sandbox is None:
        # What honest servers keep in a home, caches of npx and uvx say, stays theirs.
        confinement = Confinement(workspace=folder, files="all", environment=environment)
        return started("bwrap", confinement, program, folder)
    # By the folder that it really lies in: a link to that is not there.
    program = (str(Path(os.path.realpath(Path(found).parent), Path(found).name)), *server.args)
    confinement = confinement_for(folder, network=server.network, environment=environment, program=program)
    return started(server.sandbox, confinement, program, folder)


def environment(added: Mapping[str, str]) -> dict[str, str]:
    """
    Returns the variables that a server sees: a few of ours (PATH, HOME, ...) and those that were *added* for it.
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
            end_group(process.pid, signal_)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await process.wait()
                break
    end_group(process.pid)
    for pump in pumps:
        pump.cancel()
    await asyncio.gather(*pumps, return_exceptions=True)
    transport = getattr(process, "_transport", None)
    if transport is not None:
        # A grandchild that left the group may hold the pipe open.
        transport.close()
