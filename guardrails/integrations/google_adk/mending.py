"""
The calls of a conversation that have no result yet: it comes with the user's next message, or never.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from guardrails.core.values.errors import SessionError, StoreError, needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import BROKEN_OFF

from .results import told


with needs("google-adk", "this adapter"):
    from google.adk.events.event import Event
    from google.genai import types

if TYPE_CHECKING:
    from guardrails.session.session import Session


async def answered(session: "Session", context: Any, message: Any) -> Any:
    """
    *message* with what the model reads of the results that it brings. Returns None if it brings none.
    """
    parts = list(message.parts or [])
    brought = {part.function_response.id for part in parts if part.function_response is not None}
    calls = _calls(context, brought) if brought else {}
    changed = False
    for at, part in enumerate(parts):
        response = part.function_response
        call = None if response is None else calls.get(response.id)
        if call is None or call[1].name != response.name:
            continue
        outcome, arguments = _outcome(response.response or {}), call[1].args or {}
        try:
            envelope = await session.ledger.off_loop(session.complete, response.id, outcome, arguments=arguments)
        except (SessionError, StoreError):
            # The session never knew of it, or it is over: such as a long-running call that told how far it is.
            continue
        told_now = response.model_copy(update={"response": told(envelope)})
        parts[at] = part.model_copy(update={"function_response": told_now})
        changed = True
    return message.model_copy(update={"parts": parts}) if changed else None


async def mend(begun: Collection[str], context: Any) -> None:
    """
    Answer the calls of the ids *begun* in the conversation, those whose run was cancelled before ADK kept their results.
    """
    for event, call in _calls(context, begun).values():
        response = types.FunctionResponse(id=call.id, name=call.name, response=told(BROKEN_OFF))
        said = types.Content(role="user", parts=[types.Part(function_response=response)])
        broken = Event(author=event.author, invocation_id=event.invocation_id, branch=event.branch, content=said)
        await context.session_service.append_event(session=context.session, event=broken)


def _calls(context: Any, keys: Collection[str]) -> dict[str, Any]:
    """
    The calls of the ids *keys* that have no result in the conversation, by id, each with its event.
    """
    events = context.session.events
    results = {response.id for event in events for response in event.get_function_responses()}
    made = ((event, call) for event in events for call in event.get_function_calls())
    return {call.id: (event, call) for event, call in made if call.id in keys and call.id not in results}


def _outcome(response: dict[str, Any]) -> Any:
    if response.keys() == {"error"}:
        return Failed(str(response["error"]))
    return response["result"] if response.keys() == {"result"} else response
