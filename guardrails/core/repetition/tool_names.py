"""
The facts in the name of a tool: the verb that it begins with, and whose tool it is.
"""

from functools import lru_cache
from typing import Final

from guardrails.core.tools.tool import Tool
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.tool_name import TOKEN, own_name


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
_EDITS: Final = pattern(
    r"(?:^|[_./:-])(?:[Ee]dit|[Rr]eplace|[Pp]atch|[Mm]odify|[Ss]ubstitute|[Rr]ewrite|[Uu]pdate)(?:or)?(?:$|[_A-Z-])"
    r"|(?:Edit|Replace|Patch)(?:$|[A-Z_])"
)
"""Names of tools that change a text in its place, and do nothing else."""
_SENDS: Final = frozenset(
    {"send", "submit", "publish", "pay", "buy", "purchase", "book", "transfer", "refund", "withdraw", "reply"}
    | {"charge", "notify", "invite", "deploy"}
)
"""Verbs of what is done anew each time, if they come first."""
_DONE: Final = pattern(
    "(?:make|place|issue|do|request|execute)_(?:order|payment|booking|reservation|refund|transfer|purchase)"
)
"""The same with a verb that says it by its object only."""
_MAKES: Final = frozenset(
    {
        "create",
        "add",
        "make",
        "new",
        "insert",
        "start",
        "launch",
        "open",
        "enable",
        "book",
        "reserve",
        "attach",
        "mkdir",
    }
)
_UNMAKES: Final = frozenset(
    {"delete", "remove", "destroy", "drop", "stop", "terminate", "close", "disable", "cancel", "release", "detach"}
    | {"rmdir"}
)
_TOLD: Final = frozenset({"status", "details", "history", "info", "summary", "count", "preview", "estimate", "quote"})
"""Nouns of what is looked at: `book_details`, `transfer_status`."""


@lru_cache(maxsize=1024)
def server_of(tool: str) -> str:
    """
    Returns the prefix that the names of the tools of one server share; "" if *tool* does not tell.
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
    Returns whether *tool* begins with a verb that writes, and has none that looks: `edit_file`, not `add_and_get`.
    """
    words = _words(tool)
    return words[:1] != [] and words[0] in _WRITES | _ALSO_WRITES and (_LOOKS | _ALSO_LOOKS).isdisjoint(words)


@lru_cache(maxsize=1024)
def edits(tool: str) -> bool:
    """
    Returns whether *tool*, by its name, changes a text in its place.
    """
    return _EDITS.search(tool) is not None


@lru_cache(maxsize=1024)
def undoes(tool: str, other: str) -> bool:
    """
    Returns whether *tool*, by its verb, undoes what *other* makes: `delete_branch` and `create_branch`, `unlock` and
    `lock`.
    """
    verb, made = (next(iter(_words(name)), "") for name in (tool, other))
    return (verb in _UNMAKES and made in _MAKES) or (made != "" and verb == f"un{made}")


def once(tool: Tool) -> bool:
    """
    Returns whether a call of *tool* that may have happened is not to be made again unseen: by its declaration, else by
    its name.

    That it is no look may be a guess by its name too; one that begins like a look, `get_next_page`, is still tried again.
    """
    if tool.read_only or tool.stable or tool.idempotent:
        return False
    return tool.idempotent is False or _acts(tool.name, declared=tool.read_only is False)


@lru_cache(maxsize=1024)
def _acts(tool: str, *, declared: bool) -> bool:
    words = _words(tool)
    if declared:
        return words[:1] == [] or words[0] not in _LOOKS | _ALSO_LOOKS
    sends = words[:1] != [] and (words[0] in _SENDS or _DONE.fullmatch("_".join(words[:2])))
    return writes(tool) or (bool(sends) and (_LOOKS | _TOLD).isdisjoint(words))


def _words(tool: str) -> list[str]:
    return [word.lower() for word in TOKEN.findall(own_name(tool))]
