"""
The tools of MCP servers for an agent that is synchronous: their connections live in a thread of their own.
"""

import asyncio
import threading

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from guardrails.core.tools.tool import Tool
from guardrails.policy.tools import Registry

from .settings import AgentError


class _Waiting(Registry):
    """
    A registry whose asynchronous tools run in *loop*, and are waited for here.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop

    def add(self, tool: Tool, execute: Callable[[str, Any], Any]) -> None:
        """
        See `Registry.add`.
        """

        def waited_for(name: str, arguments: Any) -> Any:
            running = asyncio.run_coroutine_threadsafe(execute(name, arguments), self._loop)
            try:
                return running.result()
            finally:
                # Whoever waited is interrupted: so is the call.
                running.cancel()

        super().add(tool, waited_for)


@contextmanager
def mcp_tools(file: str | None, say: Callable[[str], object]) -> Iterator[tuple[Registry, ...]]:
    """
    The tools of the MCP servers that *file* (TOML or JSON) configures, while the block runs; none without a file.

    A server that cannot be reached is told to *say*, and tried again when it is called. Raises AgentError if the file
    cannot be read, MissingExtra without the extra, PolicyError for mistakes in it.
    """
    if file is None:
        yield ()
        return
    from guardrails.mcp import read_servers

    try:
        servers = read_servers(file)
    except OSError as error:
        raise AgentError(f"cannot read `{file}`: {error.strerror}") from None
    from guardrails.mcp import McpTools
    from guardrails.mcp.pins import pins_file

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="guardrails mcp", daemon=True)
    thread.start()
    try:
        connected = McpTools(servers, _Waiting(loop), pins=pins_file())
        asyncio.run_coroutine_threadsafe(connected.__aenter__(), loop).result()
        try:
            for name, problem in connected.problems.items():
                say(f"   note: the MCP server `{name}` cannot be used: {problem}")
            for name, reason in connected.held.items():
                say(f"   note: `{name}` is held: {reason}; see `guardrails mcp pins`")
            yield (connected.registry,)
        finally:
            asyncio.run_coroutine_threadsafe(connected.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
