"""
What a tool's name says of it, for policies with `by_name: true`: a look, work, or nothing.
"""

from functools import lru_cache
from typing import Final

from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.tool_name import own_name


WORK: Final = frozenset(
    {"add", "append", "apply", "approve", "ask", "assign", "book", "buy", "cancel", "click", "close", "confirm", "copy"}
    | {
        "create",
        "delete",
        "deploy",
        "deposit",
        "drop",
        "edit",
        "go",
        "insert",
        "install",
        "invite",
        "kill",
        "log",
        "make",
    }
    | {
        "mark",
        "merge",
        "modify",
        "move",
        "next",
        "open",
        "pay",
        "play",
        "post",
        "press",
        "publish",
        "push",
        "put",
        "remove",
    }
    | {"rename", "replace", "reply", "reset", "restart", "roll", "save", "schedule", "scroll", "select", "send", "set"}
    | {
        "start",
        "stop",
        "store",
        "submit",
        "swipe",
        "tap",
        "toggle",
        "transfer",
        "type",
        "undo",
        "update",
        "upload",
        "upsert",
    }
    | {"write", "input", "confirmation", "approval", "feedback"}
)
"""Words of what is done, or asked of a person. One of them anywhere in a name outweighs all looks."""
LOOKS: Final = frozenset(
    {
        "browse",
        "calculate",
        "cat",
        "check",
        "compare",
        "count",
        "describe",
        "diff",
        "explain",
        "fetch",
        "find",
        "get",
        "glob",
    }
    | {"grep", "head", "help", "inspect", "list", "load", "look", "lookup", "ls", "peek", "preview", "read", "resolve"}
    | {
        "retrieve",
        "scan",
        "search",
        "select",
        "show",
        "snapshot",
        "stat",
        "status",
        "suggest",
        "tail",
        "validate",
        "verify",
        "view",
    }
)
"""Words of looks. `query`, `execute`, `run` and `sql` are neither: they do what their arguments say."""
_WORD: Final = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@lru_cache(maxsize=4096)
def look_by_name(tool: str) -> bool | None:
    """
    Returns whether *tool* is a look (True) or work (False), by the words of its own name; None if they do not say.
    """
    words = {word.lower() for word in _WORD.findall(own_name(tool))}
    if not WORK.isdisjoint(words):
        return False
    return True if not LOOKS.isdisjoint(words) else None
