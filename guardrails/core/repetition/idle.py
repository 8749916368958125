"""
Edits that say that they changed nothing.
"""

import re

from functools import lru_cache
from typing import Final

from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import ToolCall

from .answers import carried, given_by, said_by


_EDITS: Final = pattern(
    r"(?:^|[_./:-])(?:[Ee]dit|[Rr]eplace|[Pp]atch|[Mm]odify|[Ss]ubstitute|[Rr]ewrite|[Uu]pdate)(?:or)?(?:$|[_A-Z-])"
    r"|(?:Edit|Replace|Patch)(?:$|[A-Z_])"
)
"""Names of tools that change a text in its place, and do nothing else."""
_OBJECTS: Final = (
    r"(?:replacements?|changes?|occurrences?|matches|substitutions?|edits?|modifications?|lines?|hunks?|places)"
)
_DONE: Final = r"(?:made|replaced|changed|modified|updated|affected|edited|applied|written|substituted)"
_DID: Final = rf"(?:{_DONE}|found|matched|necessary|needed)"
_BEEN: Final = r"(?:(?:is|are|was|were|has been|have been|did|remains?|left) )?"
_WHERE: Final = r"(?: (?:in|to|of|for)(?: the| this)?(?: file)?(?: [^\s;,]{1,200})?)?"
_IDLE: Final = pattern(
    rf"\W*(?:(?:ok|done|success|warning|note|result)\W+)?(?:{_DONE} )?(?:no|zero|0) "
    rf"(?:(?:\w+ )?{_OBJECTS}(?: {_BEEN}{_DID})?|\w+ {_BEEN}{_DONE}){_WHERE}\W*"
    rf"|\W*nothing {_BEEN}(?:to )?(?:{_DID}|change|replace|edit|update){_WHERE}\W*"
    rf"|\W*(?:the )?(?:file |text |string )?(?:[^\s;,]{{1,200}} )?{_BEEN}(?:not (?:be )?{_DID}|not change|unchanged|unmodified"
    rf"|(?:already )?up[ -]to[ -]date){_WHERE}\W*",
    re.IGNORECASE,
)
_LONGEST: Final = 100
"""Characters of a field that may be one of these."""
_COUNTS: Final = pattern(
    r"(?:\w+_)?(?:replac(?:ed|ements?)|chang(?:ed|es?)|modified|modifications?|edited|edits?|substitutions?|occurrences|affected|updated"
    r"|applied|matched|written)(?:_\w+)?",
    re.IGNORECASE,
)
"""Names of how much was changed."""
_WELL: Final = frozenset({"ok", "success", "done"})


def says_idle(payload: bytes, call: ToolCall) -> bool:
    """
    Returns whether the success *payload* says that *call*, an edit, changed nothing, and says nothing else.
    """
    value = carried(payload)
    if type(value) is str:
        return _IDLE.fullmatch(value.strip()) is not None
    if type(value) is not dict:
        return False
    counted = {name for name in value if len(name) <= _LONGEST and _COUNTS.fullmatch(name)}
    if not counted or not said_by(value, given_by(call)).nothing:
        return False
    return not any(
        member for name, member in value.items() if name in counted or (member is True and name not in _WELL)
    )


@lru_cache(maxsize=1024)
def edits(tool: str) -> bool:
    """
    Returns whether *tool*, by its name, changes a text in its place.
    """
    return _EDITS.search(tool) is not None
