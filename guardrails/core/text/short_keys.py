"""
Caches whose keys strangers write: bounded in bytes, not in entries alone.
"""

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Any, Final, TypeVar, cast


KEY_CHARS: Final = 512
"""Of one text: what is longer comes once, and is worked out each time."""

Function = TypeVar("Function", bound=Callable[..., Any])


def cached_if_short(entries: int, chars: int = KEY_CHARS) -> Callable[[Function], Function]:
    """
    Cache up to *entries* results of a function whose first argument is a text, of texts of up to *chars* characters.
    """

    def cached(function: Function) -> Function:
        kept = lru_cache(maxsize=entries)(function)

        def asked(text: str, *more: Any) -> Any:
            return kept(text, *more) if len(text) <= chars else function(text, *more)

        return cast("Function", update_wrapper(asked, function))

    return cached
