"""
The names that scopes of a policy may have.
"""

from typing import Final

from guardrails.core.guards import GUARDS
from guardrails.core.values.late_pattern import pattern


_NAME: Final = pattern(r"[a-z][a-z0-9_]{0,31}")
_TAKEN: Final = frozenset({"session", "scopes", "store", "tools", *(cls.name for cls in GUARDS)})


def scope_name(name: str) -> str:
    """
    Returns *name* if it may name a scope: codes begin with it. Raises ValueError.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"a scope is named like `user`: a letter, then letters, digits and `_`, 32 at most, not `{name}`"
        )
    if name in _TAKEN:
        raise ValueError(f"a scope cannot be called `{name}`: codes begin with it, and `{name}` begins others already")
    return name
