"""
Deciding one session's records again, for tests that look at the state at the end too.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from guardrails.core.chain import Chain
from guardrails.core.state import SessionState
from guardrails.offline.replay import exact


def replay(
    chain: Chain, records: Iterable[exact.Record], state: SessionState | None = None, **more: Any
) -> list[exact.Replayed]:
    """
    The calls of *records*, decided again; *state* becomes that of the life of the last record.
    """
    records, lives = [*records], dict[exact.LifeKey, SessionState]()
    made = [*exact.replay(chain, records, lives=lives, **more)]
    if state is not None and records:
        for field in fields(state):
            setattr(state, field.name, getattr(lives[exact.life_key(records[-1])], field.name))
    return made
