"""
Notices facts that a client does not tell: calls that ended untold, the usage of responses, and the owner of a hidden
sub-agent's calls.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from guardrails.core.state import SessionState
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log
from guardrails.session.session import key_hash

from .told import ENDS, Client, Told, Used
from .transcripts import LONGER_TAIL, tail


if TYPE_CHECKING:
    from guardrails.core.state import Pending
    from guardrails.session.session import Session

LATEST: Final = 32
"""Responses that are looked at: each call is an event, so that those before them were charged already."""
EARLIER_MS: Final = 60_000
"""How long before the first event of a session a response of it may have come."""
MOST_TOKENS: Final = 1_000_000_000
"""What says that a response used more is not believed."""
TOGETHER_MS: Final = 1_000
"""Calls that are made together start so soon after each other. Later, a call that is made again was answered before."""


def hidden_agent(session: "Session", told: Told, client: Client) -> str | None:
    """
    The sub-agent whose event *told* is, of a client that does not say so: that of the call that runs one.
    """
    if not client.HIDING or told.tool in client.HIDING or told.kind not in ("before", "after", "choice", "model"):
        return None

    def look(state: SessionState, _: int) -> "list[Pending]":
        return [one for one in state.pending.values() if one.tool in client.HIDING and one.question is None]

    found = session.ledger.read(look)
    return found[-1].id if found else None


def close_lost(own: "Session", told: Told, client: Client) -> None:
    """
    Give up the calls of *own* that *told* shows to be over, though nobody will tell their end. A person said no, they
    were interrupted, or the client tells no failures. They would be refused for running if they are made again.
    """

    def look(state: SessionState, _: int) -> "list[Pending]":
        return [one for one in state.pending.values() if one.question is None]

    if told.kind in ENDS or (told.kind == "model" and client.HIDING):
        own.ledger.lose(*own.ledger.read(look))
    elif told.kind == "before":
        running = [one for one in own.ledger.read(look) if one.id != told.call_id]
        if running:
            now, lines = own.ledger.time(), tail(told.transcript)
            again = {one.id for one in own.calls.open_calls(told.tool, told.arguments) if now - one.at_ms > TOGETHER_MS}
            for one in running:
                line = _ended(lines, one.id, client)
                if line is not None:
                    # Codex tells no end of a patch. Work that may go on would excuse each repeat behind it; what it gave is
                    # not read here, and a line with its time is like no other.
                    with suppress(SessionError):
                        own.complete(one.id, line.decode(errors="replace"))
                elif one.id in again:
                    own.ledger.lose(one)


def _ended(lines: list[bytes], call_id: str, client: Client) -> bytes | None:
    wanted = call_id.encode(errors="replace")
    return next((line for line in lines if wanted in line and client.ended(line, call_id)), None)


def charge(own: "Session", told: Told, client: Client) -> None:
    """
    Charge the responses of the model that were not charged yet, each once: those of the transcript, or the one that is *told*.
    """
    lines = tail(told.transcript)
    found = client.used(lines, told)
    if not found and lines and sum(map(len, lines)) * 2 < LONGER_TAIL:
        found = client.used(tail(told.transcript, LONGER_TAIL), told)
    if told.kind == "model":
        # It is in the transcript too, if there is one; but not what a hidden sub-agent uses.
        found = [told.used] if told.used is not None and (not lines or told.agent is not None) else []
    if not found:
        return

    def look(state: SessionState, _: int) -> list[Used]:
        since = state.started_ms - EARLIER_MS if state.started_ms >= 0 else own.ledger.time() - EARLIER_MS
        # A copy of another session's file has its responses too.
        fresh = [one for one in found[-LATEST:] if one.at_ms is None or one.at_ms >= since]
        return [one for one in fresh if not state.keys.get(key_hash(one.key))]

    for one in own.ledger.read(look):
        usage = one.usage if _is_sane(one.usage) else None
        try:
            own.charge(model=one.model, usage=usage, key=one.key)
        except SessionError as error:
            log.error("the usage of a response cannot be read: %s", error, extra={"session": own.id})


def _is_sane(value: object, depth: int = 0) -> bool:
    if isinstance(value, dict):
        return depth < 4 and all(_is_sane(one, depth + 1) for one in value.values())
    if isinstance(value, list):
        return depth < 4 and all(_is_sane(one, depth + 1) for one in value)
    return not isinstance(value, (int, float)) or 0 <= value <= MOST_TOKENS
