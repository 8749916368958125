"""
Repairs a turn that a process left half finished: a call that nobody answered gets an answer that says so.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.state import Pending, SessionState
from guardrails.core.values.types import Outcome, ToolCall


if TYPE_CHECKING:
    from guardrails.integrations.openai.loop import Wire
    from guardrails.integrations.openai.reading import RequestedCall
    from guardrails.session.session import Session


INTERRUPTED: Final = "this call was interrupted: the process that ran it ended. It may or may not have run"
LOOK_FIRST: Final = "Find out whether it took effect before you call it again."


class Repaired(NamedTuple):
    """
    A call that was answered in place of its tool.
    """

    id: str
    tool: str
    admitted: bool
    """Its admission was open: it was running, or about to. False: it was refused, ended, or never asked for."""


def repair(messages: list[Any], wire: "Wire", session: "Session") -> list[Repaired]:
    """
    Answer each call at the end of *messages* that has no result. The amounts that *session* still reserves for it and
    for its sub-agents are settled, as these ended with their process.

    Nothing is executed again. To be called by the process that goes on with the conversation, before it does.
    """
    _close_children(session)
    open_calls = unanswered(messages, wire)
    if not open_calls:
        return []
    answers, repaired = [], []
    for call in open_calls:
        settled = _settle(session, call)
        envelope = Envelope.error("cancelled", INTERRUPTED) if settled is None else settled
        if envelope.status == "error":
            # One that waits for a person has not run.
            envelope.hint(LOOK_FIRST)
        answers.append(wire.result(call, envelope.to_json()))
        repaired.append(Repaired(call.id, call.tool, settled is not None))
    messages.extend(answers)
    return repaired


def unanswered(messages: Iterable[Any], wire: "Wire") -> list["RequestedCall"]:
    """
    The calls of the latest turn that no message answers, in their order.
    """
    waiting: list[RequestedCall] = []
    for message in messages:
        answered = wire.answers(message)
        if answered is not None:
            # The latest one of its id: some servers use ids again.
            found = next((call for call in reversed(waiting) if call.id == answered), None)
            waiting = [call for call in waiting if call is not found]
            continue
        waiting += wire.calls_of(message)
    return waiting


def _close_children(session: "Session") -> None:
    """
    Give back what sub-agents held and did not use; what was open in them stays charged.
    """
    for child_id in session.ledger.read(lambda state, now: list(state.reserved)):
        with session.child(child_id.removeprefix(f"{session.id}/")) as child:
            _close_children(child)


def _settle(session: "Session", call: "RequestedCall") -> Envelope | None:
    def look(state: SessionState, now: int) -> tuple[list[Pending], str]:
        admitted = state.pending.values()
        return [pending for pending in admitted if (pending.id, pending.tool) == (call.id, call.tool)], state.run

    found, run = session.ledger.read(look)
    envelope = None
    for pending in found:
        asked = ToolCall(pending.tool, call.arguments, pending.id, None, pending.sig)
        decision = Decision.again(asked, pending, session=session.id, run=run)
        envelope = session.complete(decision, Outcome(error_type="cancelled", error_message=INTERRUPTED))
    return envelope
