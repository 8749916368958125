"""
One event of a coding CLI in, exactly one JSON object out.
"""

import json
import os

from typing import Final

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.logs import log
from guardrails.core.values.session_id import session_name
from guardrails.policy.compiled.loading import load_compiled
from guardrails.policy.policy import Policy
from guardrails.stores.sqlite import SqliteStore

from .events import answer
from .options import Options


NOTHING: Final = b"{}"


def respond(data: bytes, options: Options, *, once: str = "") -> bytes:
    """
    What a hook that reads *data* writes: one JSON object, without a newline. Never raises; what fails here is answered as the
    policy's `on_error` says.

    *once* names this event: the same name is the same event, answered twice because the first answer did not come in time.
    """
    try:
        event = json.loads(data)
        policy, store, records = _room(options)
        scopes = {name: own for name, own in (("user", options.user), ("tenant", options.tenant)) if own}
        session = policy.session(
            session_name(event["session_id"]),
            store=store,
            records=records,
            scopes={name: own for name, own in scopes.items() if name in policy.scopes},
        )
        said = answer(session, event, asks=True)
        if records is not None:
            session.close()
        return NOTHING if options.observe else json.dumps(said).encode()
    except PolicyError as error:
        log.error("the policy cannot be used: %s", error)
    except Exception as error:  # noqa: BLE001
        log.error("a hook failed: %r", error)
    return NOTHING


_rooms: dict[Options, tuple[Policy, SqliteStore, str | None]] = {}


def _room(options: Options) -> tuple[Policy, SqliteStore, str | None]:
    found = _rooms.get(options)
    if found is None:
        path = options.store_path
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
        found = _rooms[options] = _policy(options), SqliteStore(path), options.records_path
    return found


def _policy(options: Options) -> Policy:
    return load_compiled(options.policy, mode="observe" if options.observe else None)
