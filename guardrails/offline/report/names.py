"""
Reads the name of a tool: it may say that the tool reads, or that a call of it is to happen once.
"""

from typing import Final

from guardrails.core.text.short_keys import cached_if_short


READS: Final = frozenset(
    {
        *("get", "list", "find", "search", "read", "look", "lookup", "view", "show", "fetch", "query", "describe"),
        *("grep", "glob", "ls", "cat", "count", "check"),
    }
)
"""First words of a name that say that nothing is changed."""
ONCE: Final = frozenset(
    "book buy charge deposit issue mint order pay publish purchase refund reply send submit transfer withdraw".split()  # noqa: SIM905
)
"""First words of a name that say that a second time is too much: a payment, a message."""


@cached_if_short(512)
def named_to_read(tool: str) -> bool:
    """
    Returns whether the first word is one of `READS`; a prefix for the tool's server does not count.
    """
    return not READS.isdisjoint(words(tool)[:1])


def named_once(tool: str) -> bool:
    """
    Returns whether the first word is one of `ONCE`.
    """
    return not ONCE.isdisjoint(words(tool)[:1])


def words(tool: str) -> list[str]:
    """
    Returns the words of a name in lower case: `fs__readFile` is `read`, `file`.
    """
    name = tool.rsplit("/", 1)[-1].rsplit("__", 1)[-1]
    spaced = "".join(
        f" {c}" if c.isupper() and not name[at - 1 : at].isupper() else " " if c in "_-. " else c
        for at, c in enumerate(name)
    )
    return spaced.lower().split()
