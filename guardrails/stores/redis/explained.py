"""
Explains the faults of a server, in words that say how to mend them.
"""

import re

from typing import Final

from guardrails.core.values.errors import StoreError

from .wire import Cut, Refused, Unfit


PASSING: Final = frozenset(
    {"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "MOVED", "ASK", "NOREPLICAS", "UNBLOCKED"}
)
"""Refusals that end by themselves while a server starts, fails over or is busy: tried again as long as there is time."""
COMMANDS: Final = (
    "+ping +select +info +eval +evalsha +time +exists +get +mget +set +getrange +del +hget +hset +hdel +blpop +rpush +pexpire "
    "+zadd +zrem +zcard +zscore +zrangebylex +zremrangebyscore"
)
"""What a user of the server must be allowed, on the keys of a namespace."""
FAILURES: Final = (Cut, Refused, Unfit)
_FORBIDDEN: Final = re.compile("(?i)acl failure|user executing the script|no permissions")
"""What a script is told instead of NOPERM."""
_SAID: Final = {
    "NOAUTH": "wants a user and a password: put them into its URL",
    "WRONGPASS": "does not accept this user and password: correct them in its URL",
    "NOPERM": f"does not let this user do it: `ACL SETUSER NAME ~{{{{NAMESPACE}}}}:* {COMMANDS}`",
    "DENIED": "takes no connections from other machines without a password: give it one, and put it into its URL",
    "READONLY": "is a replica, which takes no writes: give the address of the primary",
    "MASTERDOWN": "is a replica that has lost its primary: give the address of the primary",
    "LOADING": "is still loading its data: try again, or give the store a longer `timeout`",
    "BUSY": "is busy with a script of somebody else: end that by `SCRIPT KILL`",
    "MISCONF": "cannot save to its disk, and takes no writes until it can: see its log",
    "NOREPLICAS": "has fewer replicas than its `min-replicas-to-write`, and takes no writes: see its replicas",
    "OOM": "is full (maxmemory): give it more, or `prune` sessions that are over",
    "CLUSTERDOWN": "is of a cluster that is down: see `CLUSTER INFO`",
    "TRYAGAIN": "is moving these keys to another node: try again",
    "ASK": "is moving these keys to another node: try again",
    "MOVED": "sends to another node of its cluster again and again: see `CLUSTER NODES`",
    "WRONGTYPE": "holds under this namespace the keys of another program: use another `namespace`",
    "NOPROTO": "does not speak the protocol RESP2: use Redis 6 or later, or Valkey",
}


def passing(error: Exception) -> bool:
    """
    Returns whether *error* may be over in a moment.
    """
    return isinstance(error, Cut) or (isinstance(error, Refused) and error.code in PASSING)


def explained(error: Exception, place: str, timeout_s: float, *, unsure: bool = False) -> StoreError:
    """
    Returns the error to raise for *error* at the store *place*: its meaning, and its remedy. If *unsure*, it is not
    known whether the step was kept.
    """
    match error:
        case StoreError():
            return error
        case Unfit():
            return StoreError(f"the store `{place}` {error}")
        case Refused():
            said = _SAID.get("NOPERM" if _FORBIDDEN.search(str(error)) else error.code) or _other(str(error))
        case _:
            said = f"cannot be reached, or did not answer in time ({timeout_s:g} s in all): see that it runs and its address is right"
    if unsure:
        said += "; the step that was under way may have been kept: then more is charged than was used, never less"
    return StoreError(f"the store `{place}` {said} ({error})")


def _other(said: str) -> str:
    if "AUTH" in said and "without any password" in said:
        return "has no password: leave it out of its URL"
    if "max number of clients" in said:
        return "has too many connections: raise its `maxclients`"
    if "DB index" in said or "SELECT is not allowed" in said:
        return "has no such database: use another number in its URL (a cluster has 0 only)"
    if "unknown command" in said or "unknown subcommand" in said:
        return "lacks a command that is needed: use Redis 6 or later, or Valkey"
    return "cannot be used"
