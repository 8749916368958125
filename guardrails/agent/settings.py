"""
The settings that an agent is run with, the way a resumed one finds them again, and the client of its endpoint.
"""

import os

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from guardrails.core.values.errors import GuardrailsError, ResponseFailed, needs
from guardrails.core.values.usage import public
from guardrails.integrations.openai.body import NO_STREAM, in_one_line
from guardrails.integrations.openai.loop import MAX_TOOL_ITERATIONS
from guardrails.processes.sandbox import Name


if TYPE_CHECKING:
    from openai import OpenAI


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
        both = {**settings, **{name: value for name, value in given.items() if value is not None}}
        if not both.get("model"):
            raise AgentError("name a model with `--model`")
        # JSON has no tuples.
        both = {name: tuple(value) if isinstance(value, list) else value for name, value in both.items()}
        return cls(**{name: value for name, value in both.items() if name in cls.__dataclass_fields__})

    def scope_ids(self) -> dict[str, str]:
        """
        Whose the conversation is, by scope. Raises AgentError if an owner is not said as `NAME=ID`.
        """
        for given in self.scopes:
            if "=" not in given:
                raise AgentError(f"`--scope` takes NAME=ID, such as `user=me`, not `{given}`")
        return {name.strip(): own.strip() for name, _, own in (given.partition("=") for given in self.scopes)}

    def anywhere(self) -> Self:
        """
        The same with absolute paths, so that it can be resumed from another folder.
        """
        whole = os.path.realpath
        return replace(
            self,
            policy=whole(self.policy) if Path(self.policy).is_file() else self.policy,
            workspace=whole(self.workspace),
            mcp=self.mcp and whole(self.mcp),
            tools=tuple(map(whole, self.tools)),
        )


@contextmanager
def client_of(base_url: str | None) -> Iterator["OpenAI"]:
    """
    A client of the endpoint *base_url* (None: OpenAI's), with the key that OPENAI_API_KEY holds.

    Raises MissingExtra if openai is not installed, AgentError if a key is needed, or the endpoint fails while the client is in use.
    """
    with needs("openai", "`guardrails run`"):
        import openai
    key = os.environ.get("OPENAI_API_KEY")
    if not key and not base_url and not os.environ.get("OPENAI_BASE_URL"):
        raise AgentError("set OPENAI_API_KEY, or name an endpoint that needs no key with `--base-url`")
    try:
        client = openai.OpenAI(base_url=base_url, api_key=key or "-")
    except Exception as error:
        # Their errors are of many kinds.
        raise AgentError(f"no client (URL, proxy, SSL_CERT_FILE): {in_one_line(str(error), key)}") from error
    try:
        with client:
            yield client
    except openai.APIConnectionError as error:
        asked = f"`{public(base_url or str(client.base_url))}` cannot be reached"
        raise AgentError(f"the endpoint {asked}: {error.__cause__ or error}", "endpoint.unreachable") from error
    except openai.APIStatusError as error:
        # The client leaves out what has no `message`: a page of a proxy, `{"error": "no such model"}`.
        own = error.message != f"Error code: {error.status_code}"
        reason = in_one_line(error.message if own else str(error.body or error.message), key)
        raise AgentError(f"the endpoint refused (HTTP {error.status_code}): {reason}", "endpoint.refused") from error
    except (openai.OpenAIError, ResponseFailed) as error:
        hint = "; if it cannot stream: `--no-stream`" if getattr(error, "code", None) == NO_STREAM else ""
        raise AgentError(f"the endpoint failed: {in_one_line(str(error), key)}{hint}", "endpoint.failed") from error
