"""
Tools that a person defines in a Python file.
"""

import asyncio
import inspect

from collections.abc import Sequence
from functools import partial
from typing import Any

from guardrails.core.values.errors import PolicyError
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
    except ImportError as error:
        raise AgentError(str(error)) from error
    own = getattr(module, "registry", None)
    if isinstance(own, Registry):
        return _waited_for(own)
    public = [one for name, one in inspect.getmembers(module, inspect.isfunction) if not name.startswith("_")]
    functions = getattr(module, "tools", None) or [one for one in public if one.__module__ == module.__name__]
    registry = Registry()
    try:
        for function in functions:
            registry.register(function)
    except (TypeError, PolicyError) as error:
        raise AgentError(f"`{file}`: {error}") from None
    if not registry.entries:
        raise AgentError(f"`{file}` defines no tools: write functions, a list `tools` or a `Registry` named `registry`")
    return _waited_for(registry)


def replaced(registries: Sequence[Registry]) -> tuple[Registry, ...]:
    """
    *registries* together: a tool of a later one takes the place of one of its name in those before it.
    """
    for place, registry in enumerate(registries):
        for name in registry:
            for earlier in registries[:place]:
                earlier.remove(name)
    return tuple(registries)


def _waited_for(registry: Registry) -> Registry:
    """
    Returns *registry* with its tools run to their end. An asynchronous tool runs in a loop of its own, as the agent is
    synchronous. A tool that would end the process, or cancel itself, has failed.
    """
    for name, entry in registry.entries.items():
        registry.replace_run(name, partial(_to_its_end, entry))
    return registry


def _to_its_end(entry: Registered, tool: str, arguments: Any) -> Any:
    try:
        made = entry.run(tool, arguments)
        return asyncio.run(made) if entry.asynchronous else made
    except (SystemExit, asyncio.CancelledError) as error:
        raise RuntimeError(f"`{tool}` ended itself: {error!r}") from None
