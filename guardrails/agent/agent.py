"""
An agent of the command line: what it is run with, its client and its tools; one conversation, started or taken up again, and run
until the model answers.
"""

import asyncio
import hashlib
import inspect
import os

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast

from guardrails.core.values.errors import GuardrailsError, PolicyError, ResponseFailed, SandboxUnavailable, needs
from guardrails.core.values.logs import log
from guardrails.core.values.usage import public
from guardrails.integrations.openai import run
from guardrails.integrations.openai.loop import MAX_TOOL_ITERATIONS, LoopResult
from guardrails.integrations.openai.wires import NO_STREAM, WIRES, in_one_line
from guardrails.offline.figures import plural
from guardrails.otel import of_process
from guardrails.policy.policy import Policy
from guardrails.policy.tools import Registered, Registry, Run, run_file
from guardrails.processes.sandbox import Name
from guardrails.session.session import Session
from guardrails.session.steps import current_session

from .builtin import Root, Shell, Spawn, Web, builtin_tools
from .conversations import Conversation, Conversations, Repaired
from .view import View, status_line


if TYPE_CHECKING:
    from openai import OpenAI


INSTRUCTIONS: Final = (
    "You are an agent. Work on the user's task with your tools, step by step, until it is done; then answer in plain text, "
    "without a tool call. A call that was refused or failed gives a JSON object with a `status`: do what its hint says; do not "
    "repeat it unchanged. A last line that begins with `[guardrails]` says more of a result. Your workspace is the folder {workspace}."
)
GO_ON: Final = "Go on with the task: its limits were raised."


# What it is run with


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
        raise AgentError(f"the endpoint {asked}: {error.__cause__ or error}", "endpoint.failed") from error
    except openai.APIStatusError as error:
        # The client leaves out what has no `message`: a page of a proxy, `{"error": "no such model"}`.
        own = error.message != f"Error code: {error.status_code}"
        reason = in_one_line(error.message if own else str(error.body or error.message), key)
        raise AgentError(f"the endpoint refused (HTTP {error.status_code}): {reason}", "endpoint.failed") from error
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
    except (TypeError, PolicyError) as error:
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
def mcp_tools(file: str, say: Callable[[str], object]) -> Iterator[Registry]:
    """
    The tools of the MCP servers that *file* (TOML or JSON) configures, while the block runs. Their
    connections live in a thread of their own, where each call is waited for.

    A server that cannot be reached is told to *say*, and tried again when it is called. Raises AgentError if the file
    cannot be read, MissingExtra without the extra, PolicyError for mistakes in it.
    """
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


# One conversation


Prepared = tuple[Settings, Policy, Registry]
"""The parts that are needed before a conversation is touched, so that no mistake leaves one behind: a person's own tools are last."""


def prepare(settings: Settings) -> Prepared:
    """
    Load the policy and the tools. Raises PolicyError or AgentError with all that is wrong.
    """
    if not Path(settings.workspace).is_dir():
        raise AgentError(f"cannot work in `{settings.workspace}`: it is no folder")
    policy = Policy.load(settings.policy, envelope="quiet")
    if policy.files is not None and policy.files.within(settings.workspace):
        # The agent could write it: what it is held to is what was there when it began.
        policy.files = None
    return settings, policy, together(map(load_tools, settings.tools))


class Agent:
    """
    The conversation *chat* with its session, tools and view; made by `started`, or of one that was resumed.
    """

    def __init__(
        self, chats: Conversations, chat: Conversation, prepared: Prepared, view: View, client: "OpenAI", records: str
    ) -> None:
        self.settings, policy, tools = prepared
        self.chat, self.view, self._client = chat, view, client
        self.repaired: list[Repaired] = []
        self._shell: Shell | None = None
        self._over = False
        self._telemetry = of_process()
        asks: dict[str, Any] = {"approver": view.approves, "on_decision": view.decided, "telemetry": self._telemetry}
        self.session = policy.session(
            chat.id, store=chats.store, records=records, scopes=self.settings.scope_ids(), **asks
        )
        if self.settings.builtins:
            tools = together((self._builtin(chats, tools), tools))
        self._tools = tools
        view.status, chat.watch = self.status, view.message

    def _builtin(self, chats: Conversations, own: Registry) -> Registry:
        settings = self.settings
        if "exec_shell" not in own.entries:
            self._shell = Shell(Root(settings.workspace), sandbox=settings.sandbox, network=settings.network)
        # The notes about each workspace by itself, beside the conversations.
        workspace = hashlib.sha256(settings.workspace.encode(errors="surrogateescape")).hexdigest()[:12]
        return builtin_tools(
            settings.workspace,
            memory=Path(chats.path).with_suffix(f".memory-{workspace}.db"),
            shell=self._shell or False,
            web=Web(allow=settings.allow_hosts, search=settings.search),
            spawn=Spawn(lambda: cast("Session", current_session()), self._sub_agent),
            message=lambda text: self.view.say(f"   message: {text}"),
        )

    def begin(self) -> None:
        """
        Say what is run, with what, and what of it cannot be had.
        """
        settings, commands = self.settings, ""
        if self._shell is not None:
            try:
                commands = f", commands in {self._shell.sandbox or 'no sandbox'}"
            except SandboxUnavailable as error:
                commands, hint = ", no commands", "see `guardrails doctor` and `--sandbox none`"
                self.view.say(f"   note: exec_shell is refused, {error.code}: {error}; {hint}")
        if Path(settings.policy).is_relative_to(settings.workspace):
            self.view.say("   note: the policy lies in the workspace: the agent can change it for the next `--resume`")
        tools = plural(len(self._tools.entries), "tool")
        self.view.say(f"conversation {self.chat.id}: {settings.model}, policy {settings.policy}, {tools}{commands}")

    def status(self) -> str:
        """
        Returns the used part of the budget, and the part that is left.
        """
        ledger = self.session.ledger
        return status_line(ledger.progress, ledger.cost_usd, ledger.unpriced, self.view.denied)

    def extend(self, amounts: Mapping[str, Any]) -> None:
        """
        Raise the session's limits by *amounts*, or those of its scopes (`user.max_calls`); none forgives refused turns and
        blown growth caps. Logged and recorded.

        Raises SessionError for what is no limit, or one that the policy does not set.
        """
        split = {name: name.rpartition(".") for name in amounts}
        for scope in dict.fromkeys(whose for whose, _, _ in split.values()) or [""]:
            more: dict[str, Any] = {own: amounts[name] for name, (whose, _, own) in split.items() if whose == scope}
            self.session.extend(scope=scope or None, **more)
        raised = ", ".join(f"{name} by {amount}" for name, amount in amounts.items()) or "refused turns forgiven"
        log.info("limits raised", extra={"session": self.session.id, "amounts": dict(amounts)})
        self.view.say(f"limits raised: {raised}; {self.status()}")

    def take_up(self, task: str | None, *, extended: bool) -> None:
        """
        Answer what a killed process left open, and say to the model what is to be done now. If nothing is to be done,
        `run` gives the answer that there is.

        Raises AgentError if there is more to be done and the session is exhausted.
        """
        self.repaired = self.chat.repair(self.session)
        for call in self.repaired:
            self.view.say(f"   {call.tool} ({call.id}) was interrupted; it is not run again")
        last: dict[str, Any] = self.chat[-1] if self.chat else {}
        if task is None and (last.get("role") != "assistant" or any(WIRES[self.chat.wire].calls_of(last))):
            return
        if task is None and not extended:
            self._over = True
            self.view.say("it has its answer: to go on, give it another task, or raise a limit")
            return
        if task is not None:
            self.session.ledger.go_on()
        cause = self.session.exhausted
        if cause is not None:
            raise AgentError(f"the session is exhausted ({cause}): go on with `{how_to_go_on(cause)}`")
        self.chat.append({"role": "user", "content": GO_ON if task is None else task})

    def run(self) -> LoopResult:
        """
        Let the model work until it answers. Raises what the client raises; the conversation is kept.
        """
        if self._over:
            code, answer = self.session.exhausted, text_in(self.chat[-1])
            return LoopResult(answer, "forced" if code else "answered", code, None, 0, 0, self.chat, self.session)
        telemetry, around = self._telemetry, {name.lower(): value for name, value in os.environ.items()}
        with nullcontext() if telemetry is None else telemetry.running(self.session.id, around), self.session:
            return self._ask(self.session, self.chat, on_text=self.view.text)

    def _ask(self, session: Session, messages: list[Any], **more: Any) -> LoopResult:
        settings = self.settings
        more |= {"wire": self.chat.wire, "stream": settings.stream, "max_tool_iterations": settings.max_iterations}
        return run(self._client, session, model=settings.model, messages=messages, tools=self._tools, **more)

    def _sub_agent(self, task: str, session: Session) -> str:
        """
        Work on *task* within *session*, in a conversation of its own that is not kept.
        """
        return self._ask(session, opening(self.settings, task)).answer


def started(chats: Conversations, settings: Settings, task: str) -> Conversation:
    """
    A new conversation of an agent about *task*.
    """
    origin = {**asdict(settings), "task": task[:200]}
    return chats.start(wire=settings.wire, messages=opening(settings, task), settings=origin)


def opening(settings: Settings, task: str) -> list[dict[str, Any]]:
    """
    The first messages of a conversation about *task*.
    """
    instructions = {"role": "system", "content": INSTRUCTIONS.format(workspace=settings.workspace)}
    return [instructions, {"role": "user", "content": task}]


def text_in(message: Mapping[str, Any]) -> str:
    """
    The text of a message of either wire.
    """
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return "".join(str(part.get("text") or "") for part in parts)


def how_to_go_on(cause: str | None) -> str:
    """
    The option, or the task, that lets a conversation go on which *cause* has ended.
    """
    *scope, guard, name = f"..{cause or ''}".split(".")[-3:]
    if guard == "loop":
        return '"go on"'
    if guard != "budget" or (name == "unpriced" and not any(scope)):
        return "--forgive"
    # Of a scope only a limit can be raised, which forgives it too.
    limit, amount = ("max_cost_usd", "0") if name == "unpriced" else (name, "AMOUNT")
    return f"--extend {'.'.join([*filter(None, scope), limit])}={amount}"
