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
_WORK: Final = """
ack acknowledge acquire add advance and append apply approval approve archive assign attach buy cancel clear click
commit confirmation consume create decrement delete deploy deposit dequeue detach disable drag drain edit enable
enqueue feedback flush increment input insert invite lock merge mint modify navigate next or publish purchase purge
random rebuild refresh register reindex remove rename reorder replace reset restart restore revert rollback rotate
save send shuffle submit subscribe then toggle undo unlock unsubscribe update upload upsert withdraw write"""
WORK: Final = frozenset(_WORK.split())
"""Words of what is done, or asked of a person, and those that join two things. With one of them in its name no tool is a look."""
_FIRST: Final = """
ask block book charge checkout claim close confirm copy draw drop fill fix go hire hover import install issue kill log
make mark move new notify open order pause pay place play pop post press push put refund reject release reload reply
reserve roll schedule scroll set sign start stop store swap swipe sync take tap transfer type"""
FIRST: Final = frozenset(_FIRST.split())
"""The same, if a name begins with one: elsewhere they are things (`get_order`)."""


def own_name(name: str) -> str:
    """
    Returns the name of a tool without the prefix of a host: `get_x` of `get_x`, `mcp__server__get_x`, `server/get_x`,
    `server.get_x`, `server:get_x` and `server-get_x`.

    A hyphen parts a server from its tool only before words with an underscore, and after words of which none acts.
    """
    own = MARKS.split(name)[-1]
    server, hyphen, rest = own.rpartition("-")
    words = _WORDS.split(server.lower())
    if hyphen and "_" in rest and WORK.isdisjoint(words) and FIRST.isdisjoint(words):
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
