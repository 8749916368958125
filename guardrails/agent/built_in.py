"""
The library's own tools, as an agent at the command line has them.
"""

import hashlib

from collections.abc import Callable
from pathlib import Path

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.policy.tools import Registry
from guardrails.session.session import Session

from .builtin import Root, SearchEndpoint, Shell, Spawn, Web, builtin_tools
from .settings import AgentError, Settings


def built_in_tools(
    settings: Settings,
    session: Session,
    memory: str,
    *,
    agent: Callable[[str, Session], str],
    message: Callable[[str], object],
) -> Registry:
    """
    Those for the workspace of *settings*; sub-agents are run by *agent* and share the budget of *session*.

    Raises AgentError if there is no such folder, or the system cannot hold tools to one.
    """
    search = None if settings.search is None else SearchEndpoint(url=settings.search)
    try:
        return builtin_tools(
            settings.workspace,
            memory=memory,
            web=Web(allow=settings.allow_hosts, search=search),
            spawn=Spawn(session, agent),
            message=message,
            sandbox=settings.sandbox,
            network=settings.network,
        )
    except (OSError, NotImplementedError, ValueError) as error:
        raise AgentError(f"the tools cannot be had in `{settings.workspace}`: {error}; see `--no-builtins`") from None


def confined(settings: Settings) -> tuple[str, str | None]:
    """
    Returns the sandbox that the commands of *settings* run in, for a person. The second value is the reason why they
    are refused, None if they are not.
    """
    try:
        name = Shell(Root(settings.workspace), sandbox=settings.sandbox, network=settings.network).sandbox
    except SandboxUnavailable as error:
        return "no commands", f"{error.code}: {error}"
    return "commands in no sandbox" if name == "none" else f"commands in {name}", None


def memory_file(conversations: str, workspace: str) -> str:
    """
    Returns the file of the notes about *workspace*: beside the conversations, each folder by itself.
    """
    key = hashlib.sha256(workspace.encode(errors="surrogateescape")).hexdigest()[:12]
    return str(Path(conversations).with_suffix(f".memory-{key}.db"))
