"""
One run of an app behind a session: the loops of its agents, and the calls that ADK makes past a model's request.
"""

from collections import Counter
from contextlib import suppress
from typing import Any, Final

from guardrails.core.arguments import foreign_arguments
from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError, StoreError, needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import share_of
from guardrails.session.session import Session, scoped

from .loop import Loop
from .results import CHILDREN, ENDS, OUTPUT, PASSES, TRANSFER, is_free, later, read, shown


with needs("google-adk", "this adapter"):
    from google.adk.tools.base_tool import BaseTool

MAX_HANDED: Final = 5
"""Times in one run that an agent may hand over to the same other, before its final answer is asked for."""
HANDED_CODE: Final = "loop.hand_overs"


class Run:
    """
    One run in a *session*.
    """

    def __init__(self, session: Session) -> None:
        self.session = scoped(session, {}, passes=PASSES)
        self.raised: dict[str, Envelope] = {}
        """By the ids of calls: what reads a failure that error callbacks hear of first."""
        self.asked = False
        """A message of the user's began it, and not the result of a call."""
        self.begun: set[str] = set()
        """Ids of calls that began and do not wait for a result."""
        self.thread: tuple[str, str, str] | None = None
        """ADK's session: its app, its user and its id."""
        self.broken = False
        """The run was cancelled in the midst of a call."""
        self._loops: dict[tuple[str, str | None], Loop] = {}
        self._handed: Counter[tuple[str, str]] = Counter()
        """How often one agent has handed over to another."""
        self._decided: dict[str, Decision] = {}
        self._known: dict[str, tuple[Any, Tool]] = {}

    @classmethod
    def child(cls, session: Session, share: float) -> "Run":
        """
        The run of an agent that a call of *session* runs, which gives back what it did not use at the call's end.
        """
        children = CHILDREN.get(None)
        if children is None:
            return cls(session)
        child = share_of(session, share=share)
        if child is None:
            return cls(session)
        children.append(child)
        return cls(child)

    def begin(self, context: Any, request: Any) -> Loop:
        """
        The loop of the agent of *context*, which makes *request*.
        """
        where = _where(context)
        loop = self._loops.get(where)
        if loop is None or loop.ended:
            loop = self._loops[where] = Loop(self.session, first=self.asked and not self._loops)
        loop.request = request
        return loop

    def loop(self, context: Any) -> Loop | None:
        """
        The loop of the agent of *context*. Returns None if the model was not asked by it.
        """
        return self._loops.get(_where(context))

    def declare(self, request: Any) -> dict[str, Tool]:
        """
        Let the session know the tools of *request*, with what the model may pass; they are given back by name.
        """
        told: dict[str, Tool] = {}
        for offered in request.config.tools or ():
            for one in getattr(offered, "function_declarations", None) or ():
                if one.name in ENDS:
                    continue
                known = self._known.get(one.name)
                if known is None or known[0] != one:
                    known = self._known[one.name] = one, _tool(one)
                told[one.name] = known[1]
        self.session.calls.declare(*told.values())
        return told

    def refuses(self, context: Any) -> bool:
        """
        Returns whether no call of the agent of *context* is run, since its final answer was asked for.
        """
        loop = self.loop(context)
        return loop is not None and loop.asking.off

    async def refusal(self, tool: str, arguments: Any, context: Any) -> Envelope:
        """
        Returns the refusal that a call reads after the final answer was asked for.
        """
        loop = self._loops[_where(context)]
        return await self.session.ledger.off_loop(loop.asking.refusal, tool, arguments, id=context.function_call_id)

    async def before(self, tool: BaseTool, arguments: Any, context: Any) -> Envelope | None:
        """
        The refusal of a call that is not made by a guarded tool. Returns None if it may run.
        """
        if tool.name in ENDS or getattr(context.node, "tool", None) is tool:
            # The latter is a step of a workflow, which no model asked for.
            return None
        loop = self.loop(context)
        if tool.name == TRANSFER and loop is not None:
            handed = context.agent_name, str(arguments.get("agent_name"))
            self._handed[handed] += 1
            loop.asking.final.force(HANDED_CODE if self._handed[handed] > MAX_HANDED else None)
        if self.refuses(context):
            return await self.refusal(tool.name, arguments, context)
        if is_free(tool):
            return None
        confirmation = context.tool_confirmation
        if confirmation is not None and not confirmation.confirmed:
            # A person said no: it is the host's to tell the model.
            with suppress(SessionError, StoreError):
                await self.session.ledger.off_loop(self.session.calls.release, context.function_call_id)
            return None
        decide = self.session.decide
        made = await self.session.ledger.off_loop(decide, tool.name, arguments, id=context.function_call_id, claim=True)
        if made.envelope is None:
            self._decided[context.function_call_id] = made
        return made.envelope

    async def after(self, tool: BaseTool, context: Any, result: Any) -> Any:
        """
        Returns the text that the model reads of the *result* of a call. Returns None if that is for ADK to say.
        """
        made = self._decided.pop(context.function_call_id, None)
        loop = self.loop(context)
        if tool.name == OUTPUT and loop is not None:
            loop.output(valid=context.actions.set_model_response is not None)
        if made is None:
            return None
        if later(tool, context, result):
            await self.session.ledger.off_loop(self.session.calls.suspend, made)
            return None
        return shown(result, await self.session.ledger.off_loop(self.session.complete, made, read(result)), context)

    async def failed(self, tool: BaseTool, context: Any, error: BaseException) -> Envelope | None:
        """
        Returns the envelope that the model reads of *error*. Returns None if it is cancelled.
        """
        made = self._decided.pop(context.function_call_id, None)
        if made is None:
            return self.raised.pop(context.function_call_id, None)
        outcome: object = Failed(str(error), error_type="tool_missing") if type(tool) is BaseTool else error
        return await self.session.ledger.off_loop(self.session.complete, made, outcome)

    def end(self) -> None:
        """
        Let requests that came to nothing hold nothing.
        """
        for loop in self._loops.values():
            loop.asking.failed()


def _where(context: Any) -> tuple[str, str | None]:
    return context.agent_name, context.branch


def _tool(declaration: Any) -> Tool:
    schema = declaration.parameters_json_schema
    if schema is None and declaration.parameters is not None:
        schema = declaration.parameters.json_schema.model_dump(mode="json", exclude_none=True, by_alias=True)
    parameters = None if schema is None else foreign_arguments(declaration.name, schema)
    return Tool(name=declaration.name, description=declaration.description or "", parameters=parameters)
