"""
Edits that say that they changed nothing.
"""

import re

from functools import lru_cache
from typing import Final

from guardrails.core.state.entries import Entry
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import ToolCall

from .answers import carried, given_by, said_by


_EDITS: Final = pattern(
    r"(?:^|[_./:-])(?:[Ee]dit|[Rr]eplace|[Pp]atch|[Mm]odify|[Ss]ubstitute|[Rr]ewrite)(?:or)?(?:$|[_A-Z-])|(?:Edit|Replace|Patch)(?:$|[A-Z_])"
)
"""Names of tools that change a text in its place, and do nothing else."""
_OBJECTS: Final = (
    r"(?:replacements?|changes?|occurrences?|matches|substitutions?|edits?|modifications?|lines?|hunks?|places)"
)
_DID: Final = r"(?:made|found|replaced|changed|modified|updated|affected|edited|applied|matched|necessary|needed)"
_IDLE: Final = pattern(
    r"\W*(?:(?:ok|done|success|warning|note|result)\W+)?(?:made |replaced |changed |edited |applied )?(?:no|zero|0) "
    rf"(?:\w+ )?{_OBJECTS}(?: (?:were|was|have been|has been))?(?: {_DID})?(?: (?:in|to|of|for) \S{{1,200}})?\W*"
    rf"|\W*nothing (?:was |to )?(?:{_DID}|change|replace|edit)(?: in \S{{1,200}})?\W*",
    re.IGNORECASE,
)
_COUNTS: Final = pattern(
    r"(?:\w+_)?(?:replac(?:ed|ements?)|chang(?:ed|es?)|modified|modifications?|edited|edits?|substitutions?|occurrences|affected|updated)"
    r"(?:_\w+)?",
    re.IGNORECASE,
)
"""Names of how much was changed."""
_WELL: Final = frozenset({"ok", "success", "done"})


def says_idle(payload: bytes, call: ToolCall) -> bool:
    """
    Whether the success *payload* says that *call*, an edit, changed nothing, and says nothing else.
    """
    value = carried(payload)
    if type(value) is str:
        return _IDLE.fullmatch(value.strip()) is not None
    if type(value) is not dict:
        return False
    counted = {name for name in value if _COUNTS.fullmatch(name)}
    if not counted or not said_by(value, given_by(call)).nothing:
        return False
    return not any(
        member for name, member in value.items() if name in counted or (member is True and name not in _WELL)
    )


def was_idle(entry: Entry) -> bool:
    """
    Whether the call of *entry* was such an edit.
    """
    return entry.empty and not entry.changes and edits(entry.tool)


@lru_cache(maxsize=1024)
def edits(tool: str) -> bool:
    """
    Whether *tool*, by its name, changes a text in its place.
    """
    return _EDITS.search(tool) is not None
