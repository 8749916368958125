"""
Servers as the SDK's transports reach them: one that is started here, and one over streamable HTTP.
"""

import errno
import os
import shutil

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from guardrails.core.values.errors import needs
from guardrails.core.values.version import __version__


with needs("mcp", "`guardrails.mcp`"):
    import httpx2

    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import CONNECTION_CLOSED


Streams = AbstractAsyncContextManager[Any]
MAX_BYTES: Final = 256 * 1024 * 1024
"""Of one event."""
CONNECT_S: Final = 30.0
WHOLE_GROUP: Final = ("/bin/sh", "-c", '"$@"; kill -KILL 0', "sh")
"""Runs a command to its end, and ends all that it has started with it: the SDK gives it a process group of its own."""


def near_server(words: Sequence[str], environment: Mapping[str, str], folder: str | None = None) -> Streams:
    """
    The streams of the program of *words*, with a few variables of ours (PATH, HOME, ...) and those of *environment*. It is ended with all that
    it has started.

    Raises FileNotFoundError if there is no such program.
    """
    named = words[0] if Path(words[0]).name == words[0] else str(Path(folder or ".", words[0]))
    if shutil.which(named, path=environment.get("PATH")) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), words[0])
    command, *arguments = (*WHOLE_GROUP, *words) if os.name == "posix" else words
    return stdio_client(StdioServerParameters(command=command, args=arguments, env=dict(environment), cwd=folder))


class _Transport(httpx2.AsyncHTTPTransport):
    """
    Answers a request to a server that cannot be reached, so that the conversation goes on.
    """

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await super().handle_async_request(request)
        except httpx2.TransportError as error:
            message = f"the server cannot be reached: {error or type(error).__name__}"
            failed = {"jsonrpc": "2.0", "id": None, "error": {"code": CONNECTION_CLOSED, "message": message}}
            return httpx2.Response(502, json=failed)


@asynccontextmanager
async def remote_server(url: str, headers: Mapping[str, str]) -> AsyncIterator[Any]:
    """
    The streams of the server at *url*, which is shown *headers*, the last of each name. An answer may take any time: how long is for the policy to say.
    """
    shown = {"user-agent": f"guardrails-mcp/{__version__}", **{name.lower(): one for name, one in headers.items()}}
    timeout = httpx2.Timeout(CONNECT_S, read=None)
    async with (
        httpx2.AsyncClient(headers=shown, timeout=timeout, transport=_Transport()) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_BYTES) as streams,
    ):
        yield streams
