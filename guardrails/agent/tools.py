"""
Tools that a person gives to an agent: those of a Python file, and those of MCP servers.
"""

import asyncio
import inspect

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import PolicyError, needs
from guardrails.policy.own_file import run_file
from guardrails.policy.tools import Registered, Registry

from .settings import AgentError


def load_tools(file: str) -> Registry:
    """
    The tools of a Python *file*: its `registry`, else the functions in its list `tools`, else its public functions.

    Raises AgentError if it cannot be run or defines no tools.
    """
    try:
        module = run_file(file, "tools")
        public = [one for name, one in inspect.getmembers(module, inspect.isfunction) if not name.startswith("_")]
        functions = getattr(module, "tools", None) or [one for one in public if one.__module__ == module.__name__]
        own = getattr(module, "registry", None)
        registry = own if isinstance(own, Registry) else Registry(functions)
    except ImportError as error:
        raise AgentError(str(error)) from error
    except (TypeError, PolicyError) as error:
        raise AgentError(f"`{file}`: {error}") from None
    if not registry.entries:
        raise AgentError(f"`{file}` defines no tools: write functions, a list `tools` or a `Registry` named `registry`")
    for name, entry in registry.entries.items():
        registry.replace_run(name, partial(_to_its_end, entry))
    return registry


def _to_its_end(entry: Registered, tool: str, arguments: Any) -> Any:
    """
    Returns the result of a tool, an asynchronous one's too, in a loop of its own: the agent is synchronous. A tool that
    would end the process, or cancel itself, has failed.
    """
    try:
        made = entry.run(tool, arguments)
        return asyncio.run(made) if entry.asynchronous else made
    except (SystemExit, asyncio.CancelledError) as error:
        raise RuntimeError(f"`{tool}` ended itself: {error!r}") from None


def replaced(registries: Sequence[Registry]) -> tuple[Registry, ...]:
    """
    *registries* together: a tool of a later one takes the place of one of its name in those before it.
    """
    for place, registry in enumerate(registries):
        for name in registry:
            for earlier in registries[:place]:
                earlier.remove(name)
    return tuple(registries)


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
    The tools of the MCP servers that *file* (TOML or JSON) configures, while the block runs; none without a file. Their
    connections live in a thread of their own.

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
