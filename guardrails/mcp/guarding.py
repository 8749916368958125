"""
Calls of MCP tools behind sessions, for both ends of a connection: a server that guards its tools, a client that guards its calls.
"""

import asyncio

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.outcome.error_text import error_type_from_text
from guardrails.core.outcome.error_types import diagnosis_of
from guardrails.core.outcome.mcp_results import read_mcp
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import GuardrailsError, needs
from guardrails.core.values.types import ErrorType, Failed
from guardrails.policy.policy import Policy
from guardrails.policy.registry import checked_arguments, missing
from guardrails.session.session import Session

from .answers import UNKNOWN, answered, refused
from .results import described, hints_of
from .runs import Run, Runs


with needs("mcp", "`guardrails.mcp`"):
    from mcp_types import CallToolRequestParams, CallToolResult
    from mcp_types import Tool as McpTool


Send = Callable[[Any], Awaitable[Any]]
"""Makes the call with the arguments that are given, and returns the SDK's result."""
MAX_TOOLS: Final = 10_000
"""Tools whose declarations are kept."""


class _Asks(Exception):  # noqa: N818  what happens
    """
    A tool asks its client for input; the call comes again with that.
    """


class Guarding:
    """
    Sessions by the runs that calls name, and what is known of the tools. *guarded* and *options* as `Sessions` takes them.
    """

    def __init__(self, guarded: Policy | Session, **options: Any) -> None:
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
        What is declared of the tool *name*; *listing* is asked once for one that is not known. None: nothing.
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
        What a server answers that was *asked* for a call of *run*; see `call`. A stranger's session is over with it.
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
        The result of `send(arguments)`, if *session* lets the tool *name* run, with what its envelope has to say; else the
        refusal. What is no tool result, such as a question to the client, is returned as it is. *continuing*: the call carries
        what was asked for, and is the very call that asked.

        Raises what *send* raises, as the host's own failures have forms of their own; those *told* become results.
        """
        tool = Tool(name=name, **({} if declared is None else hints_of(declared)))
        made = _Made(declared, told, [one for one, listed in self._tools.items() if listed is not None])
        if continuing or declared is None:
            # One that continues is no repeat, also if the session does not know what asked, since another process was asked.
            # The names of tools that no server lists are the client's: they are not kept.
            scope = session.scoped({}, [replace(tool, polling=continuing)], passes=(_Asks,))
        else:
            session.declare(tool)
            scope = session.scoped({}, passes=(_Asks,))
        try:
            envelope = await scope.acall(name, dict(arguments or {}), made.by(send))
        except _Asks as question:
            return question.args[0]
        return made.own() if made.was_made and _observes(session) else made.told(envelope)


class _Made:
    """
    One call, and what came of it in the host's form.
    """

    def __init__(self, declared: McpTool | None, told: tuple[type[Exception], ...], listed: list[str]) -> None:
        self._declared = declared
        self._listed = listed
        self._told = told
        self._result: Any = None
        self._value: Any = None
        self._error: Exception | None = None

    def by(self, send: Send) -> Callable[[str, Any], Awaitable[Any]]:
        """
        What a session runs.
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
                kind = diagnosis_of(error, arguments)[0]
                if kind == "not_found" and self._declared is None:
                    kind = "tool_missing"
                return self._explained(name, arguments, Failed(str(error), error_type=kind), kind)
            if _is_question(result):
                raise _Asks(result)
            if not isinstance(result, CallToolResult):
                return "began a task"
            self._value = value = read_mcp(described(result))
            if isinstance(value, Failed):
                return self._explained(name, arguments, value, error_type_from_text(value.message))
            return value

        return execute

    @property
    def was_made(self) -> bool:
        """
        Whether the host has said what came of it.
        """
        return self._error is not None or self._result is not None

    def own(self) -> Any:
        """
        What the host would be given without guards.
        """
        if self._error is not None:
            raise self._error
        return self._result

    def told(self, envelope: Envelope) -> Any:
        """
        What the host is given.
        """
        if self._error is not None and not isinstance(self._error, self._told):
            raise self._error
        if self._result is None:
            return refused(envelope)
        if not isinstance(self._result, CallToolResult):
            return self._result
        if self._result.is_error:
            return refused(envelope, self._result)
        try:
            schema = UNKNOWN if self._declared is None else self._declared.output_schema
            return answered(envelope, self._result, self._value, schema)
        except ValueError:
            return refused(envelope, self._result)

    def _explained(self, name: str, arguments: Any, failed: Failed, kind: ErrorType | None) -> Failed | Envelope:
        """
        A failure with the fields that are wrong, if the server says that arguments do not fit. It is the server that judges
        them: servers take more than their schemas say, such as numbers in text.
        """
        if kind == "tool_missing" and self._declared is None and self._listed:
            return missing(name, self._listed)
        if kind == "validation" and self._declared is not None:
            try:
                fitted = checked_arguments(Tool(name=name, parameters=self._declared.input_schema), arguments)
            except GuardrailsError:
                fitted = arguments
            if isinstance(fitted, Envelope):
                return fitted
        return failed


def _observes(session: Session) -> bool:
    """
    Whether the policy only watches, so that nothing is to change.
    """
    chain = session.policy.chain
    return chain.mode != "enforce" and not any(rule.mode == "enforce" for rule in chain.rules)


def _is_question(result: Any) -> bool:
    """
    Whether *result* asks the client for input: an object of an SDK, or what is on the wire.
    """
    kind = result.get("resultType") if isinstance(result, dict) else getattr(result, "result_type", None)
    return kind == "input_required" or hasattr(result, "input_required")
