"""
A streamable HTTP front for a stdio server, so that the conformance suite, which speaks HTTP only, reaches a stdio proxy.

`python -m tests.system.mcp.bridge PORT COMMAND...`. Each HTTP session has a process of its own. Messages pass as the
SDK's transports read them; nothing here knows a method but to tell which request a message of the server belongs to.
"""

import asyncio
import contextlib
import os
import sys
import uuid

from collections.abc import AsyncIterator
from typing import Any

import anyio
import uvicorn

from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount


HOSTS = ("127.0.0.1:*", "localhost:*", "[::1]:*")
SECURITY = TransportSecuritySettings(allowed_hosts=[*HOSTS], allowed_origins=[f"http://{host}" for host in HOSTS])
SESSION = "mcp-session-id"


class Bridge:
    """
    The sessions that are open, each with its transport and its process.
    """

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.open: dict[str, StreamableHTTPServerTransport] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        name = Request(scope).headers.get(SESSION)
        if name is None:
            name = uuid.uuid4().hex
            transport = self.open[name] = StreamableHTTPServerTransport(name, security_settings=SECURITY)
            started = asyncio.Event()
            task = asyncio.create_task(self.relay(name, transport, started))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            await started.wait()
        elif name not in self.open:
            await Response("no such session", status_code=404)(scope, receive, send)
            return
        await self.open[name].handle_request(scope, receive, send)

    async def relay(self, name: str, transport: StreamableHTTPServerTransport, started: asyncio.Event) -> None:
        """
        Pass messages both ways until one side closes.
        """
        command, *arguments = self.command
        process = stdio_client(StdioServerParameters(command=command, args=arguments, env=dict(os.environ)))
        waiting: dict[Any, None] = {}  # Requests of the client without an answer, the oldest first.

        async def up(source: Any, sink: Any) -> None:
            async for message in source:
                if isinstance(message, SessionMessage):
                    if isinstance(message.message, JSONRPCRequest):
                        waiting[message.message.id] = None
                    await sink.send(SessionMessage(message.message))

        async def down(source: Any, sink: Any) -> None:
            async for message in source:
                if not isinstance(message, SessionMessage):
                    continue
                if isinstance(message.message, JSONRPCResponse | JSONRPCError):
                    waiting.pop(message.message.id, None)
                # Over stdio a server does not say which request asked; the newest one did.
                related = next(reversed(waiting), None)
                await sink.send(SessionMessage(message.message, ServerMessageMetadata(related_request_id=related)))

        try:
            async with transport.connect() as (inner, outer), process as (out, into), anyio.create_task_group() as both:
                started.set()
                both.start_soon(up, inner, into)
                await down(out, outer)
                both.cancel_scope.cancel()
        finally:
            started.set()
            self.open.pop(name, None)

    @contextlib.asynccontextmanager
    async def running(self, app: Starlette) -> AsyncIterator[None]:
        yield
        for task in tuple(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def main(port: str, *command: str) -> None:
    bridge = Bridge(list(command))
    app = Starlette(routes=[Mount("/mcp", app=bridge), Mount("/", app=bridge)], lifespan=bridge.running)
    uvicorn.run(app, port=int(port), log_level="error", timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
