"""
Names: of sessions and of what they belong to, checked before anything is done with them; of tools, and what is in them.
"""

import re

from functools import lru_cache
from typing import Final

from xxhash import xxh3_128_hexdigest

from .caches import pattern
from .errors import SessionError


MAX_BYTES: Final = 256
SCOPES: Final = "/"
"""The beginning of the keys of scopes in a store; no session's id begins so."""
_UNSAFE: Final = pattern(
    r"\.\.|[/\\\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""
What leads out of a folder, and characters that change how other text is shown, or show nothing: two such names look the same. Words of some
scripts and pictures are spelt with the joiners among them (U+200C, U+200D).
"""


def checked_id(name: str, what: str = "a session id") -> str:
    """
    Returns *name*, if it may name a session; *what* is the thing that is named here by the same rules.

    Raises SessionError if it is empty, longer than 256 bytes, or text that is not valid Unicode. It must not hold `..`,
    a path separator, NUL, a control character, a mark of direction or another invisible mark.
    """
    if not isinstance(name, str):
        raise SessionError(f"{what} is text, not {type(name).__name__}")
    size = len(name.encode(errors="replace"))
    if size > MAX_BYTES or not name.strip():
        raise SessionError(f"{what} must not be empty; it has at most {MAX_BYTES} bytes, not {size}")
    if _UNSAFE.search(name):
        raise SessionError(f"{what} must not hold `..`, `/`, `\\`, control characters or others that are not seen")
    return name


def session_name(given: object) -> str:
    """
    Returns the name of the session of a host's thread, run or user *given*: its text, if it may name a session. All
    else becomes what is left of it, `~` and a hash of the whole, so that two threads never share a session.
    """
    text = given if isinstance(given, str) else str(given)
    try:
        return checked_id(text)
    except SessionError:
        from hashlib import blake2b  # and with it OpenSSL: 5 ms

        clean = "".join(char if char.isascii() and (char.isalnum() or char in "-_:@") else "_" for char in text[:64])
        return f"{clean}~{blake2b(text.encode(errors='surrogatepass'), digest_size=16).hexdigest()}"


def scope_key(scope: str, checked: str) -> str:
    """
    Returns the key under which a store keeps the shared use of the sessions of *scope* with the *checked* id.
    """
    return f"{SCOPES}{scope}/{checked}"


def whose(key: str) -> str:
    """
    Returns the session, or the scope, whose state a store keeps by *key*, in words.
    """
    scope, _, own = key.removeprefix(SCOPES).partition("/")
    return f"the scope `{scope}` of `{own}`" if key.startswith(SCOPES) else f"`{key}`"


# Tools

MAX_CHARS: Final = 512
_EDGE: Final = 230
TOKEN: Final = pattern(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])")
"""A word within a name: `list` and `Queues` of `listQueues`."""
MARKS: Final = pattern(r"__|[/.:]")
"""Marks between a host's prefix and a tool's own name."""
_VERBS: Final = (
    """ack acknowledge acquire add advance and append apply approval approve archive assign attach buy cancel clear click
commit confirmation consume create decrement delete deploy deposit dequeue detach disable drag drain edit enable
enqueue feedback flush increment input insert invite lock merge mint modify navigate next or publish purchase purge
random rebuild refresh register reindex remove rename reorder replace reset restart restore revert rollback rotate
save send shuffle submit subscribe then toggle undo unlock unsubscribe update upload upsert withdraw write""",
    """ask block book charge checkout claim close confirm copy draw drop fill fix go hire hover import install issue kill log
make mark move new notify open order pause pay place play pop post press push put refund reject release reload reply
reserve roll schedule scroll set sign start stop store swap swipe sync take tap transfer type""",
    """browse calculate cat check compare count describe diff explain fetch find get glob grep head help inspect list look
lookup ls peek preview read retrieve scan search show snapshot stat status suggest tail validate verify view""",
)
WORK, FIRST, LOOKS = (frozenset(words.split()) for words in _VERBS)
"""
Words of work, or asked of a person, and those that join two things: with one of them in its name no tool is a look. Words of
work if a name begins with one: elsewhere they are things (`get_order`). Words of looks, anywhere in a name. `query`, `execute`, `run` and
`sql` are nowhere: they do what their arguments say.
"""


def own_name(name: str) -> str:
    """
    Returns the name of a tool without the prefix of a host: `get_x` of `get_x`, `mcp__server__get_x`, `server/get_x`,
    `server.get_x`, `server:get_x` and `server-get_x`.

    A hyphen parts a server from its tool only before words with an underscore, and after words of which none acts.
    """
    own = MARKS.split(name)[-1]
    server, hyphen, rest = own.rpartition("-")
    words = re.split("[-_]", server.lower())
    return rest if hyphen and "_" in rest and (WORK | FIRST).isdisjoint(words) else own


def bounded_name(name: str) -> str:
    """
    Returns *name* as a session keeps it: one of more than 512 characters by its ends, which rules match, and a hash of
    the whole.

    Providers take 64 characters, MCP 128. A longer text is no tool's name, and would be kept in states and caches.
    """
    if len(name) <= MAX_CHARS:
        return name

    return f"{name[:_EDGE]}~{xxh3_128_hexdigest(name.encode(errors='surrogatepass'))}~{name[-_EDGE:]}"


@lru_cache(maxsize=4096)
def look_by_name(tool: str) -> bool | None:
    """
    Returns whether *tool* is a look (True) or work (False), by the words of its own name; None if they do not say.

    A name that begins like a look and goes on like work (`get_next_page`, `find_or_create`) does not say, nor one in which a look
    follows work behind a server's word (`gmail_mark_read`).
    """
    words = [word.lower() for word in TOKEN.findall(own_name(tool))]
    looks, works = (not verbs.isdisjoint(words) for verbs in (LOOKS, WORK))
    if words and (words[0] in WORK or words[0] in FIRST):
        return False
    verb = next((word for word in words[:-1] if word in FIRST or word in LOOKS), "")
    if not works and verb not in FIRST:
        return True if looks else None
    return None if looks else False
