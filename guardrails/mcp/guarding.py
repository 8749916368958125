"""
Calls of MCP tools behind sessions, for each place between a client and a server: in the server, in the client, and in a proxy.
"""

import asyncio
import json
import time

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, Unpack
from uuid import uuid4

from guardrails.core.arguments import foreign_arguments
from guardrails.core.arguments.json_schema import SchemaArguments
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.result.exceptions import failure_of
from guardrails.core.result.kinds import kind_of_text
from guardrails.core.tools.tool import Tool, from_annotations
from guardrails.core.values.errors import GuardrailsError, needs
from guardrails.core.values.types import Failed
from guardrails.hooks.results import mapping
from guardrails.policy.policy import Policy
from guardrails.policy.sessions import SessionOptions, Sessions
from guardrails.policy.tools import checked_arguments
from guardrails.session.session import Session, scoped

from .wire import RUN, UNKNOWN, ServerArguments, answered, is_question, outcome_of, refused


if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

Listed = Mapping[str, Any]
"""A tool as its server lists it, on the wire."""
Listing = Callable[[], Awaitable[Iterable[Listed]]]
Send = Callable[[Any], Awaitable[Any]]
"""Makes the call with the arguments that are given, and returns the result on the wire."""
Told = tuple[type[Exception], ...]
"""Exceptions that become results."""
PROCESS: Final = "process"
"""The run of calls that name none and come from a process of one's own: MCP has no sessions."""
IDLE_S: Final = 1800.0
"""Seconds without a call after which calls that name no run are another run: a server outlives conversations."""
STUCK_S: Final = 60.0
"""
Seconds without a call after which a session goes on whose model only repeated what was refused, or ran away, until its tools were off:
who asks anew takes as long, and nobody else could extend it.
"""
MAX_HELD: Final = 1_000
"""Runs that are told apart by their pauses."""


class Run(NamedTuple):
    """
    The key that tells the calls of one conversation from others; the *name* of a stranger's is None.
    """

    name: str | None
    named: bool
    """By the client or the operator: they say where one ends."""


class Asks(Exception):
    """
    A tool asks its client for input; the call comes again with that.
    """


class Guarding:
    """
    Sessions by the runs that calls name, and what is known of the tools. *guarded* and *options* as `Sessions` takes them.
    """

    def __init__(self, guarded: Policy | Session, **options: Unpack[SessionOptions]) -> None:
        self.sessions = Sessions(guarded, **options)
        self._clock: Callable[[], float] = options.get("clock") or time.time
        self._held: OrderedDict[str, tuple[Session, float]] = OrderedDict()
        """Sessions by their runs, each with the time of its latest call, in seconds."""
        self._tools: dict[str, tuple[Tool, Listed] | None] = {}
        """By name; None: not listed."""

    async def session(self, run: Run) -> Session:
        """
        The session of *run*; a stranger's is new each time, for its caller to end.
        """
        if run.name is None:
            return self.sessions.of()
        now = self._clock()
        session, called_at = self._held.pop(run.name, (None, now))
        # Other processes may have the same store.
        anew = run.name == PROCESS if session is None else not run.named and now - called_at > IDLE_S
        if session is None or anew:
            session = self.sessions.of(f"{run.name}:{uuid4()}" if anew else run.name, run=anew)
        self._held[run.name] = session, now
        if len(self._held) > MAX_HELD:
            self._held.popitem(last=False)
        if now - called_at > STUCK_S:
            await asyncio.to_thread(_go_on, session)
        return session

    def hear(self, listed: Iterable[Listed], held: Mapping[str, str] = MappingProxyType({})) -> None:
        """
        Know the tools that a server *listed*, the first of one name; *held* says why some are held, by their names, listed or not.
        """
        named = {name: {"name": name} for name in held} | {one["name"]: one for one in [*listed][::-1]}
        for name, one in named.items():
            spec = foreign_arguments(name, one["inputSchema"], ServerArguments) if one.get("inputSchema") else None
            hints = from_annotations(mapping(one.get("annotations")))
            self._tools[name] = Tool(name=name, parameters=spec, held=held.get(name, ""), **hints), one

    def forget(self) -> None:
        """
        Know no tools until they are listed again: their server says that they have changed.
        """
        self._tools = {}

    async def known(self, name: str, listing: Listing) -> tuple[Tool, Listed | None]:
        """
        Returns the tool *name* as it is declared and as it is listed; *listing* is asked once for an unknown one, and each
        time for one that is held: somebody may have allowed it.
        """
        known = self._tools.get(name)
        if name not in self._tools or (known is not None and known[0].held):
            # What is held is so whatever its server lists.
            self.hear(())
            # Hints are not worth a call: whether the tool is there, its server says.
            with suppress(Exception):
                self.hear(await listing())
                self._tools.setdefault(name, None)
        return self._tools.get(name) or (Tool(name=name), None)

    async def serve(self, asked: Mapping[str, Any], run: Run, listing: Listing, send: Send, **more: Any) -> Any:
        """
        Returns a server's answer to a call of *run*; see `call`. A stranger's session is over with it.
        """
        session = await self.session(run)
        try:
            return await self.call(session, asked, listing, send, **more)
        finally:
            if run.name is None:
                self.sessions.end(session)

    async def call(self, session: Session, asked: Listed, listing: Listing, send: Send, *, told: Told = ()) -> Any:
        """
        The result of `send(arguments)`, if *session* lets the call run that is *asked* for by its parameters on the wire, with
        what its envelope has to say; else the refusal. An answer that is no tool result, such as a question to the client, is
        returned unchanged. The call that carries the answer to that question is the very call that asked.

        Raises what *send* raises but for what is *told*, as the host's own failures have forms of their own.
        """
        tool, listed = await self.known(asked["name"], listing)
        scope = scope_of(session, tool, asked, listed=listed is not None)
        given: Any = None
        value: Any = None
        raised: Exception | None = None

        async def execute(_: str, fitted: Any) -> Any:
            nonlocal given, value, raised
            given = raised = None
            try:
                given = await send(fitted)
            except Exception as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    # Its time is up, or nobody waits for it any more: that says more.
                    raise
                raised = error
                value = Failed(str(error), error_type=failure_of(error, fitted).error_type or "other")
            else:
                if is_question(given):
                    raise Asks
                value = outcome_of(given) if _is_result(given) else "began a task"
            return _explained(tool, fitted, value) if isinstance(value, Failed) else value

        try:
            envelope = await scope.acall(tool.name, asked.get("arguments") or {}, execute)
        except Asks:
            return given
        watched = watches(session.ledger.policy)
        if raised is not None and (watched or not isinstance(raised, told)):
            raise raised
        if given is None:
            return refused(envelope)
        if watched or not _is_result(given):
            return given
        if given.get("isError") or not envelope.ok:
            return refused(envelope, given)
        return answered(envelope, given, value, UNKNOWN if listed is None else listed.get("outputSchema"))


def _explained(tool: Tool, arguments: Any, failed: Failed) -> Failed | Envelope:
    """
    Returns a failure as the server tells it, with the fields that are wrong if it says that arguments do not fit.
    """
    if tool.parameters is None or (failed.error_type or kind_of_text(failed.message)) != "validation":
        return failed
    strict = SchemaArguments(tool.parameters.schema())
    fitted = checked_arguments(replace(tool, parameters=strict), arguments)
    return fitted if isinstance(fitted, Envelope) else failed


class GuardedCalls:
    """
    *client* with calls behind a session of *guarded*, a policy or the session itself; all else is the client's own.

    *run* names the session; without one it is forgotten when the client is left. *options* are those of `Policy.session`.
    """

    def __init__(
        self, client: Any, guarded: Policy | Session, *, run: object = None, **options: Unpack[SessionOptions]
    ) -> None:
        self._client = client
        self._guarding = Guarding(guarded, **options)
        self._named = run is not None
        self.guarded_by: Session = self._guarding.sessions.of(run)
        """The session."""

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> Any:
        try:
            return await self._client.__aexit__(*raised)
        finally:
            if not self._named:
                self._guarding.sessions.end(self.guarded_by)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def _call(self, name: str, arguments: Any, send: Callable[..., Any], options: dict[str, Any]) -> Any:
        """
        The result of `send(arguments, options)`, with *options* that tell the server the session, if that lets the call run.
        """
        options = {**options, "meta": {**(options.get("meta") or {}), RUN: self.guarded_by.id}}
        asked = {"name": name, "arguments": arguments, "inputResponses": options.get("input_responses")}
        asked["requestState"] = options.get("request_state")
        return await self._guarding.call(self.guarded_by, asked, self._listed, lambda fitted: send(fitted, options))

    async def _listed(self) -> list[Listed]:
        raise NotImplementedError


def watches(policy: Policy) -> bool:
    """
    Whether *policy* decides and records, and changes nothing.
    """
    chain = policy.chain
    return chain.mode != "enforce" and not any(rule.mode == "enforce" for rule in chain.rules)


def run_of(meta: Mapping[str, Any] | None, token: "AccessToken | None", *, request: Any = None) -> Run:
    """
    Returns the run that a call belongs to. It is the run that its client names in *meta*, apart for each *token* that
    authenticates. Without a name, all calls of a token are one run. Without either it is the transport's session, or
    the process if the client has it for itself.

    Strangers over HTTP (*request*) who name none are not one conversation: the results of one are none of another's.
    """
    named = (meta or {}).get(RUN)
    if token is not None:
        with needs("mcp", "`guardrails.mcp`"):
            from mcp.server.auth.provider import principal_components
        return Run(json.dumps([*principal_components(token), named]), named=named is not None)
    if named is not None:
        return Run(str(named), named=True)
    return Run(PROCESS if request is None else request.headers.get("mcp-session-id"), named=False)


def scope_of(session: Session, tool: Tool, asked: Mapping[str, Any], *, listed: bool) -> Session:
    """
    Returns *session* as a call of *tool* sees it that is *asked* for.
    """
    if asked.get("inputResponses") is not None or asked.get("requestState") is not None:
        # It is the very call that asked its client for something, and no repeat.
        return scoped(session, {}, [replace(tool, repeats="allow")], passes=(Asks,))
    if not listed:
        # The names of tools that no server lists are the client's: they are not kept.
        return scoped(session, {}, [tool], passes=(Asks,))
    session.calls.declare(tool)
    return scoped(session, {}, passes=(Asks,))


def _go_on(session: Session) -> None:
    with suppress(GuardrailsError):  # what is wrong with the store, the call hears of
        if (session.exhausted or "").startswith(("denials.", "growth.")):
            session.extend()


def _is_result(given: Any) -> bool:
    return isinstance(given, Mapping) and "content" in given
