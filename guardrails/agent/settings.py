"""
What an agent is run with: settings that a resumed one finds again, the client of its endpoint, and the tools that a person
gives it, those of a Python file and those of MCP servers.
"""

import asyncio
import inspect
import os

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from guardrails.core.values.errors import GuardrailsError, PolicyError, ResponseFailed, needs
from guardrails.core.values.usage import public
from guardrails.integrations.openai.loop import MAX_TOOL_ITERATIONS
from guardrails.integrations.openai.wires import NO_STREAM, in_one_line
from guardrails.policy.tools import Registered, Registry, Run, run_file
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
        Returns the settings that were kept; those *given* now replace them. Paths are absolute, so that they can be resumed
        from another folder. Raises AgentError if no model is named.
        """
        both = {"workspace": ".", **settings, **{name: value for name, value in given.items() if value is not None}}
        if not both.get("model"):
            raise AgentError("name a model with `--model`")
        for name in ("workspace", "mcp", *(("policy",) if Path(both.get("policy", "")).is_file() else ())):
            both[name] = both.get(name) and os.path.realpath(both[name])
        both["tools"] = map(os.path.realpath, both.get("tools", ()))
        # JSON has no tuples.
        both |= {name: tuple(both.get(name, ())) for name in ("tools", "allow_hosts", "scopes")}
        return cls(**{name: value for name, value in both.items() if name in cls.__dataclass_fields__})

    def scope_ids(self) -> dict[str, str]:
        """
        Whose the conversation is, by scope. Raises AgentError if an owner is not said as `NAME=ID`.
        """
        for given in self.scopes:
            if "=" not in given:
                raise AgentError(f"`--scope` takes NAME=ID, such as `user=me`, not `{given}`")
        return {name.strip(): own.strip() for name, _, own in (given.partition("=") for given in self.scopes)}


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


# Tools of a person


def load_tools(file: str) -> Registry:
    """
    The tools of a Python *file*: its `registry`, else the functions in its list `tools`, else its public functions.

    Raises AgentError if it cannot be run or defines no tools.
    """
    try:
        module = run_file(file, "tools")
        public = [one for name, one in inspect.getmembers(module, inspect.isfunction) if not name.startswith("_")]
        functions = getattr(module, "tools", None) or [one for one in public if one.__module__ == module.__name__]
        registry = getattr(module, "registry", None) or Registry(functions)
    except (ImportError, TypeError, PolicyError) as error:
        raise AgentError(f"`{file}`: {error}") from error
    if not registry.entries:
        raise AgentError(f"`{file}` defines no tools: write functions, a list `tools` or a `Registry` named `registry`")
    return synchronous(registry, lambda entry: partial(_to_its_end, entry))


def synchronous(registry: Registry, run: Callable[[Registered], Run]) -> Registry:
    """
    The same *registry*, each tool of which runs by `run(tool)`, that waits.
    """
    entries = registry.entries.items()
    registry.entries = {name: replace(entry, run=run(entry), asynchronous=False) for name, entry in entries}
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


def together(registries: Iterable[Registry]) -> Registry:
    """
    The tools of all *registries*: one of a later one takes the place of one of its name in those before it.
    """
    made = Registry()
    entries = [entry for registry in registries for entry in registry.entries.items()]
    made.entries = dict(sorted(entries, key=itemgetter(0)))
    return made


@contextmanager
def mcp_tools(file: str | None, say: Callable[[str], object]) -> Iterator[Registry]:
    """
    The tools of the MCP servers that *file* (TOML or JSON) configures, while the block runs; none without a file. Their
    connections live in a thread of their own, where each call is waited for.

    A server that cannot be reached is told to *say*, and tried again when it is called. Raises AgentError if the file
    cannot be read, MissingExtra without the extra, PolicyError for mistakes in it.
    """
    if file is None:
        yield Registry()
        return
    with needs("mcp", "`guardrails run --mcp`"):
        from anyio.from_thread import start_blocking_portal

        from guardrails.mcp import McpTools, read_servers
        from guardrails.mcp.pins import pins_file

    try:
        tools = McpTools(read_servers(file), pins=pins_file())
    except OSError as error:
        raise AgentError(f"cannot read `{file}`: {error.strerror}") from None
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(tools) as connected:
        for name, problem in connected.problems.items():
            say(f"   note: the MCP server `{name}` cannot be used: {problem}")
        for name, reason in connected.held.items():
            say(f"   note: `{name}` is held: {reason}; see `guardrails mcp pins`")
        yield synchronous(connected.registry, lambda entry: partial(portal.call, entry.run))
