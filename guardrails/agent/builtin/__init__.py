"""
Tools of an agent: files, a shell, memory, the web, sub-agents, messages; small, bounded, and told as data when they fail.
"""

import os

from collections.abc import Callable
from typing import Final

from guardrails.policy.policy import Policy
from guardrails.policy.tools import Registry
from guardrails.processes.sandbox import Name

from .failure import ToolSet
from .files import Files as Files
from .files import Root as Root
from .memory import Memory as Memory
from .shell import Shell as Shell
from .spawn import Outbox as Outbox
from .spawn import Spawn as Spawn
from .web import Web as Web


DECLARATIONS: Final = ("read_only", "idempotent", "paths", "commands", "timeout")
"""The fields of a tool that `policies/agent.yaml` declares."""


def builtin_tools(
    workspace: str | os.PathLike[str],
    *,
    memory: str | os.PathLike[str] | None = None,
    shell: Shell | bool = True,
    web: Web | bool = True,
    spawn: Spawn | None = None,
    message: Callable[[str], object] | None = None,
    sandbox: Name = "auto",
    network: bool = False,
) -> Registry:
    """
    The tools of an agent that works in the folder *workspace*.

    *memory* is the file of its notes; without one it has none. A `Shell` or `Web` of one's own has other time limits,
    addresses or a search endpoint; False leaves it out. Tools for *spawn* and *message* are there if they are given.

    *sandbox* (`auto`, `bwrap`, `read-only`, `none`) confines commands, which reach the *network* only if they are let;
    see `Shell`. With `none` they may do what this process may.

    Put guards before them: `Policy.load("agent")` has those for commands, paths and budgets. Raises OSError if there is
    no such folder.
    """
    root = Root(workspace)
    sets: list[ToolSet | bool | None] = [
        Files(root),
        Shell(root, sandbox=sandbox, network=network) if shell is True else shell,
        None if memory is None else Memory(memory),
        Web() if web is True else web,
        spawn,
        None if message is None else Outbox(message),
    ]
    registry, chain = Registry(), Policy.load("agent").chain
    for tools in (made.tools for made in sets if isinstance(made, ToolSet)):
        for name, function in tools.items():
            declared = chain.plan(name).tool
            registry.register(function, name=name, **{field: getattr(declared, field) for field in DECLARATIONS})
    return registry
