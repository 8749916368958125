"""
What a tool's name says of it, for policies with `by_name: true`: a look, work, or nothing.
"""

from functools import lru_cache
from typing import Final

from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.tool_name import FIRST, WORK, own_name


_LOOKS: Final = """
browse calculate cat check compare count describe diff explain fetch find get glob grep head help inspect list look
lookup ls peek preview read retrieve scan search show snapshot stat status suggest tail validate verify view"""
LOOKS: Final = frozenset(_LOOKS.split())
"""Words of looks, anywhere in a name. `query`, `execute`, `run` and `sql` are on neither list: they do what their arguments say."""
_WORD: Final = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@lru_cache(maxsize=4096)
def look_by_name(tool: str) -> bool | None:
    """
    Returns whether *tool* is a look (True) or work (False), by the words of its own name; None if they do not say.

    A name that begins like a look and goes on like work (`get_next_page`, `find_or_create`) does not say, nor one in which a look
    follows work behind a server's word (`gmail_mark_read`).
    """
    words = [word.lower() for word in _WORD.findall(own_name(tool))]
    looks = not LOOKS.isdisjoint(words)
    if words and (words[0] in WORK or words[0] in FIRST):
        return False
    verbs = [word for word in words[:-1] if word in FIRST or word in LOOKS]
    if WORK.isdisjoint(words) and not (verbs and verbs[0] in FIRST):
        return True if looks else None
    return None if looks else False
