"""
The tools of MCP servers for an agent that is synchronous: their connections live in a thread of their own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.policy.tools import Registry

from .settings import AgentError


class _Waiting(Registry):
    """
    A registry whose asynchronous tools run behind *portal*, and are waited for here.
    """

    def __init__(self, portal: Any) -> None:
        super().__init__()
        self._portal = portal

    def add(self, tool: Tool, execute: Callable[[str, Any], Any]) -> None:
        """
        See `Registry.add`.
        """
        super().add(tool, partial(self._portal.call, execute))


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
    with needs("mcp", "`guardrails run --mcp`"):
        from anyio.from_thread import start_blocking_portal

        from guardrails.mcp import McpTools, read_servers
        from guardrails.mcp.pins import pins_file

    try:
        servers = read_servers(file)
    except OSError as error:
        raise AgentError(f"cannot read `{file}`: {error.strerror}") from None
    with start_blocking_portal() as portal:
        made = McpTools(servers, _Waiting(portal), pins=pins_file())
        with portal.wrap_async_context_manager(made) as connected:
            for name, problem in connected.problems.items():
                say(f"   note: the MCP server `{name}` cannot be used: {problem}")
            for name, reason in connected.held.items():
                say(f"   note: `{name}` is held: {reason}; see `guardrails mcp pins`")
            yield (connected.registry,)
