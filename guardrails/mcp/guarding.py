"""
Calls of MCP tools behind sessions, for both ends of a connection: a server that guards its tools, a client that guards its calls.
"""

import asyncio

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Unpack

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.result.exceptions import failure_of
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.policy.policy import Policy
from guardrails.policy.sessions import SessionOptions
from guardrails.session.session import Session, scoped

from .answers import UNKNOWN, answered, refused, says_nothing
from .outcomes import explained, is_question, outcome_of
from .results import from_wire, hints_of, on_wire
from .runs import Run, Runs, watches


with needs("mcp", "`guardrails.mcp`"):
    from mcp_types import CallToolRequestParams, CallToolResult
    from mcp_types import Tool as McpTool


Send = Callable[[Any], Awaitable[Any]]
"""Makes the call with the arguments that are given, and returns the SDK's result."""
MAX_TOOLS: Final = 10_000
"""Tools whose declarations are kept."""


class _Asks(Exception):
    """
    A tool asks its client for input; the call comes again with that.
    """


class Guarding:
    """
    Sessions by the runs that calls name, and what is known of the tools. *guarded* and *options* as `Sessions` takes them.
    """

    def __init__(self, guarded: Policy | Session, **options: Unpack[SessionOptions]) -> None:
        self.runs = Runs(guarded, **options)
        self._tools: dict[str, McpTool | None] = {}
        """By name; None: not listed."""

    def hear(self, listed: Iterable[McpTool]) -> None:
        """
        Know the tools that a server *listed*.
        """
        self._tools.update((tool.name, tool) for tool in listed)
        while len(self._tools) > MAX_TOOLS:
            del self._tools[next(iter(self._tools))]

    async def known(self, name: str, listing: Callable[[], Awaitable[Iterable[McpTool]]]) -> McpTool | None:
        """
        Returns the declaration of the tool *name*; *listing* is asked once for an unknown one. None: nothing.
        """
        if name not in self._tools:
            try:
                self.hear(await listing())
            except Exception:  # noqa: BLE001  hints are not worth a call: whether it is there, its server says
                return None
            self._tools.setdefault(name, None)
        return self._tools[name]

    async def serve(
        self,
        asked: CallToolRequestParams,
        run: Run,
        listing: Callable[[], Awaitable[Iterable[McpTool]]],
        send: Send,
        *,
        told: tuple[type[Exception], ...] = (),
    ) -> Any:
        """
        Returns a server's answer that was *asked* for a call of *run*; see `call`. A stranger's session is over with
        it.
        """
        declared = await self.known(asked.name, listing)
        continuing = asked.input_responses is not None or asked.request_state is not None
        session = self.runs.session(run)
        try:
            return await self.call(
                session, asked.name, asked.arguments, send, declared=declared, continuing=continuing, told=told
            )
        finally:
            if run.name is None:
                self.runs.sessions.end(session)

    async def call(
        self,
        session: Session,
        name: str,
        arguments: Mapping[str, Any] | None,
        send: Send,
        *,
        declared: McpTool | None = None,
        continuing: bool = False,
        told: tuple[type[Exception], ...] = (),
    ) -> Any:
        """
        The result of `send(arguments)`, if *session* lets the tool *name* run, with what its envelope has to say; else
        the refusal. An answer that is no tool result, such as a question to the client, is returned unchanged. With
        *continuing* the call carries the answer to that question, and is the very call that asked.

        Raises what *send* raises, as the host's own failures have forms of their own; those *told* become results.
        """
        tool = Tool(name=name, **({} if declared is None else hints_of(declared)))
        made = _Made(declared, told, [one for one, listed in self._tools.items() if listed is not None])
        if continuing or declared is None:
            # One that continues is no repeat, also if the session does not know what asked, since another process was asked.
            # The names of tools that no server lists are the client's: they are not kept.
            scope = scoped(
                session, {}, [replace(tool, repeats="allow" if continuing else tool.repeats)], passes=(_Asks,)
            )
        else:
            session.calls.declare(tool)
            scope = scoped(session, {}, passes=(_Asks,))
        try:
            envelope = await scope.acall(name, dict(arguments or {}), made.by(send))
        except _Asks as question:
            return question.args[0]
        return made.own() if made.was_made and watches(session.ledger.policy) else made.told(envelope)


class _Made:
    """
    One call, and what came of it in the host's form.
    """

    def __init__(self, declared: McpTool | None, told: tuple[type[Exception], ...], listed: list[str]) -> None:
        self._declared = declared
        self._schema = None if declared is None else declared.input_schema
        self._listed = listed
        self._told = told
        self._result: Any = None
        self._value: Any = None
        self._error: Exception | None = None

    def by(self, send: Send) -> Callable[[str, Any], Awaitable[Any]]:
        """
        Returns the function that a session runs.
        """

        async def execute(name: str, arguments: Any) -> Any:
            self._result = self._error = None
            try:
                self._result = result = await send(arguments)
            except Exception as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    # Its time is up, or nobody waits for it any more: that says more.
                    raise
                self._error = error
                kind = failure_of(error, arguments).error_type or "other"
                if kind == "not_found" and self._declared is None:
                    kind = "tool_missing"
                failed = Failed(str(error), error_type=kind)
                return explained(name, arguments, failed, kind, schema=self._schema, listed=self._listed)
            if is_question(result):
                raise _Asks(result)
            if not isinstance(result, CallToolResult):
                return "began a task"
            wire = on_wire(result)
            self._value = value = outcome_of(name, arguments, wire, schema=self._schema, listed=self._listed)
            return value

        return execute

    @property
    def was_made(self) -> bool:
        """
        Returns whether the host has said what came of it.
        """
        return self._error is not None or self._result is not None

    def own(self) -> Any:
        """
        Returns the value that the host would be given without guards.
        """
        if self._error is not None:
            raise self._error
        return self._result

    def told(self, envelope: Envelope) -> Any:
        """
        Returns the value that the host is given.
        """
        if self._error is not None and not isinstance(self._error, self._told):
            raise self._error
        if self._result is None:
            return from_wire(refused(envelope))
        if not isinstance(self._result, CallToolResult):
            return self._result
        if not self._result.is_error:
            if says_nothing(envelope, self._value):
                return self._result
            schema = UNKNOWN if self._declared is None else self._declared.output_schema
            with suppress(ValueError):
                return from_wire(answered(envelope, on_wire(self._result), self._value, schema))
        return from_wire(refused(envelope, on_wire(self._result)))
