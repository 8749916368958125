"""
The settings that an agent is run with, and the way a resumed one finds them again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

from guardrails.core.values.errors import GuardrailsError
from guardrails.integrations.openai.loop import MAX_TOOL_ITERATIONS
from guardrails.processes.sandbox import Name


class AgentError(GuardrailsError):
    """
    An agent cannot be started or go on; the message says what it needs, *code* what failed.
    """

    def __init__(self, message: str, code: str = "agent_error") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    Kept beside the conversation, but for the key, which stays in the environment.
    """

    model: str
    base_url: str | None = None
    """None: OpenAI's own endpoint, or that of OPENAI_BASE_URL."""
    policy: str = "agent"
    """A file, or the name of a shipped policy."""
    wire: Literal["chat", "responses"] = "chat"
    workspace: str = "."
    tools: tuple[str, ...] = ()
    """Python files that define tools."""
    mcp: str | None = None
    """A file that configures MCP servers."""
    builtins: bool = True
    """The library's own tools: files, a shell, memory, the web, sub-agents, messages."""
    sandbox: Name = "auto"
    """The sandbox of commands: all but `none` are bubblewrap, and `read-only` leaves the workspace as it is."""
    network: bool = False
    """Commands may use the network."""
    search: str | None = None
    """The search service, a URL with `{query}`."""
    allow_hosts: tuple[str, ...] = ()
    """Private hosts and networks that may be fetched from."""
    stream: bool = True
    """The model's text is asked for as it comes."""
    max_iterations: int = MAX_TOOL_ITERATIONS
    scopes: tuple[str, ...] = ()
    """Whose the conversation is, `NAME=ID` for each scope of the policy."""

    @classmethod
    def merged(cls, settings: Mapping[str, Any], given: Mapping[str, Any]) -> Self:
        """
        Returns the settings that were kept; those *given* now replace them. Raises AgentError if no model is named.
        """
        known = {field.name for field in fields(cls)}
        both = {**settings, **{name: value for name, value in given.items() if value is not None}}
        if not both.get("model"):
            raise AgentError("name a model with `--model`")
        for name in ("tools", "allow_hosts", "scopes"):
            both[name] = tuple(both.get(name) or ())
        return cls(**{name: value for name, value in both.items() if name in known})

    def scope_ids(self) -> dict[str, str]:
        """
        Whose the conversation is, by scope. Raises AgentError if an owner is not said as `NAME=ID`.
        """
        ids = {}
        for given in self.scopes:
            name, equals, own = given.partition("=")
            if not equals:
                raise AgentError(f"`--scope` takes NAME=ID, such as `user=me`, not `{given}`")
            ids[name.strip()] = own.strip()
        return ids

    def anywhere(self) -> Self:
        """
        The same with absolute paths, so that it can be resumed from another folder.
        """

        def whole(path: str) -> str:
            return str(Path(path).resolve())

        return replace(
            self,
            policy=whole(self.policy) if Path(self.policy).is_file() else self.policy,
            workspace=whole(self.workspace),
            mcp=self.mcp and whole(self.mcp),
            tools=tuple(map(whole, self.tools)),
        )
