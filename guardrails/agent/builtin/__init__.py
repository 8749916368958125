"""
Tools of an agent: files, a shell, memory, the web, sub-agents, messages; small, bounded, and told as data when they fail.
"""

import os

from collections.abc import Callable, Mapping
from typing import Any, Final

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


DECLARED: Final[Mapping[str, Mapping[str, Any]]] = {
    "read_file": {"read_only": True, "idempotent": True, "paths": ("path",), "timeout": 60},
    "write_file": {"idempotent": True, "paths": ("path",), "timeout": 60},
    "edit_file": {"idempotent": False, "paths": ("path",), "timeout": 60},
    "list_directory": {"read_only": True, "idempotent": True, "paths": ("path",), "timeout": 60},
    # Longer than any time limit of its own, which kills the command; this one only gives up waiting.
    "exec_shell": {"idempotent": False, "commands": ("command",), "timeout": 630},
    "memory_read": {"read_only": True, "idempotent": True, "timeout": 30},
    "memory_write": {"idempotent": True, "timeout": 30},
    "web_fetch": {"read_only": True, "idempotent": True, "timeout": 60},
    "web_search": {"read_only": True, "idempotent": True, "timeout": 60},
    "spawn": {"idempotent": False, "timeout": 1_800},
    "message": {"idempotent": False, "timeout": 30},
}
"""What is declared of each tool; `policies/agent.yaml` says the same."""


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
    registry = Registry()
    for tools in (made.tools for made in sets if isinstance(made, ToolSet)):
        for name, function in tools.items():
            registry.register(function, name=name, **DECLARED[name])
    return registry
