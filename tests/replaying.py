"""
Deciding records again, for tests that look at the state at the end too.
"""

import json

from collections.abc import Iterable, Mapping
from dataclasses import fields

import orjson

from guardrails.core.chain import Chain
from guardrails.core.state import SessionState
from guardrails.offline.replay.exact import Record, Replay, Replayed, Rules, in_order, life_key


def replay(
    chain: Chain,
    records: Iterable[Record],
    state: SessionState | None = None,
    *,
    scopes: Mapping[str, Chain] | None = None,
    others: Mapping[str, Rules] | None = None,
) -> list[Replayed]:
    """
    The calls of *records*, decided again; *state* becomes that of the life of the last record.
    """
    # As a file has them: a sink keeps arguments as bytes of JSON.
    records = [json.loads(json.dumps(one, default=lambda one: orjson.loads(orjson.dumps(one)))) for one in records]
    again = Replay(Rules(chain, scopes or {}), others or {})
    made = [one for one in map(again.live, in_order(records)) if one is not None]
    if state is not None and records:
        for field in fields(state):
            setattr(state, field.name, getattr(again.lives[life_key(records[-1])].state, field.name))
    return made
