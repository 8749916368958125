"""
A check that ends each array and object at its first wrong part, for arguments of which very many parts may be wrong.
"""

from collections.abc import Callable
from typing import Any, Final


_ENDED: Final = frozenset({"dict", "frozenset", "list", "set", "tuple"})
"""Kinds of core schemas that know `fail_fast`."""


def fail_fast(core_schema: Any) -> Callable[..., Any] | None:
    """
    Returns a function that does the work of `validate_python` of a validator of *core_schema*, with fewer errors.
    Returns None if pydantic makes none.
    """
    from pydantic_core import SchemaValidator

    try:
        # Validators that were made before would be taken for the models inside.
        return SchemaValidator(_ending(core_schema), None, False).validate_python
    except Exception:  # noqa: BLE001  # a core schema may hold what only its author knows
        return None


def _ending(node: Any) -> Any:
    if type(node) is dict:
        changed = {key: _ending(each) if key not in _DATA else each for key, each in node.items()}

        return changed | {"fail_fast": True} if node.get("type") in _ENDED else changed

    return [_ending(each) for each in node] if type(node) is list else node


_DATA: Final = frozenset({"default", "expected", "metadata"})
"""Keys whose values are no schemas, even if they look like one."""
