"""
What the name of a tool says: the verb that it begins with, and whose tool it is.
"""

from functools import lru_cache
from typing import Final

from guardrails.core.repetition.commands.verbs import TOKEN
from guardrails.core.values.tool_name import own_name


_LOOKS: Final = frozenset({"get", "list", "find", "search", "read", "fetch", "show", "look", "view", "return"})
_WRITES: Final = frozenset(
    {"create", "add", "insert", "write", "put", "set", "save", "update", "edit", "delete", "remove", "move", "upload"}
)
_VERBS: Final = (
    _LOOKS
    | _WRITES
    | {"query", "check", "count", "new", "make", "change", "cancel", "clear", "send", "post", "run", "execute", "exec"}
    | {"call", "do", "start", "stop", "open", "close", "copy", "download", "submit", "use", "is", "has"}
)
"""The first word of a name that says what the tool does, and not whose it is."""
_ALSO_WRITES: Final = frozenset({"append", "unset", "store", "modify", "patch", "replace", "rename"})
"""Verbs that write, if they come first; a server may have the name of one."""
_ALSO_LOOKS: Final = frozenset({"wait"})


@lru_cache(maxsize=1024)
def server_of(tool: str) -> str:
    """
    What the names of the tools of one server begin with; "" if *tool* does not tell.
    """
    for mark in ("__", "/", "."):
        head, found, _ = tool.rpartition(mark)
        if found:
            return head
    head, found, _ = tool.partition("_")
    return head if found and head.lower() not in _VERBS else ""


@lru_cache(maxsize=1024)
def writes(tool: str) -> bool:
    """
    Whether *tool* begins with a verb that writes, and has none that looks: `edit_file`, not `add_and_get`.
    """
    words = [word.lower() for word in TOKEN.findall(own_name(tool))]
    return words[:1] != [] and words[0] in _WRITES | _ALSO_WRITES and (_LOOKS | _ALSO_LOOKS).isdisjoint(words)
