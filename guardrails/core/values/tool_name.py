"""
The parts of a tool's name: its own name, the prefix of a host, and the words within a name.
"""

from typing import Final

from xxhash import xxh3_128_hexdigest

from .late_pattern import pattern


MAX_CHARS: Final = 512
_EDGE: Final = 230
TOKEN: Final = pattern(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])")
"""A word within a name: `list` and `Queues` of `listQueues`."""
MARKS: Final = pattern(r"__|[/.:]")
"""Marks between a host's prefix and a tool's own name."""
_WORDS: Final = pattern(r"[-_]")
_ACTS: Final = frozenset(
    {"ack", "acquire", "add", "append", "apply", "approve", "archive", "assign", "auto", "batch", "book", "bulk", "buy"}
    | {"cancel", "change", "claim", "clear", "close", "consume", "copy", "create", "delete", "disable", "do", "draw"}
    | {"drop", "edit", "empty", "enable", "exec", "execute", "fix", "flush", "force", "generate", "insert", "kill"}
    | {"lock", "make", "mark", "merge", "modify", "move", "new", "open", "or", "and", "patch", "pay", "pop", "post"}
    | {"publish", "purge", "push", "put", "refresh", "register", "release", "remove", "rename", "replace", "reserve"}
    | {"reset", "restart", "restore", "revert", "rotate", "run", "save", "sell", "send", "set", "start", "stop"}
    | {"store", "submit", "subscribe", "swap", "sync", "take", "then", "toggle", "transfer", "trigger", "un", "unlock"}
    | {"unset", "unsubscribe", "update", "upload", "upsert", "use", "withdraw", "write"}
)
"""Words that no server is called by: before a hyphen they belong to the tool, as in `mark-read_all`."""


def own_name(name: str) -> str:
    """
    Returns the name of a tool without the prefix of a host: `get_x` of `get_x`, `mcp__server__get_x`, `server/get_x`,
    `server.get_x`, `server:get_x` and `server-get_x`.

    A hyphen parts a server from its tool only before words with an underscore, and after words of which none acts.
    """
    own = MARKS.split(name)[-1]
    server, hyphen, rest = own.rpartition("-")
    if hyphen and "_" in rest and _ACTS.isdisjoint(_WORDS.split(server.lower())):
        return rest
    return own


def bounded_name(name: str) -> str:
    """
    Returns *name* as a session keeps it: one of more than 512 characters by its ends, which rules match, and a hash of
    the whole.

    Providers take 64 characters, MCP 128. A longer text is no tool's name, and would be kept in states and caches.
    """
    if len(name) <= MAX_CHARS:
        return name

    return f"{name[:_EDGE]}~{xxh3_128_hexdigest(name.encode(errors='surrogatepass'))}~{name[-_EDGE:]}"
