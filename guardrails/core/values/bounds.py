"""
Bounds of settings: marks in `Annotated`, read by pydantic as those of annotated_types whose names they have.

They are the library's own because the import of annotated_types takes longer than that of all the guards.
"""

import operator

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final


class Bound:
    """
    A mark that holds a value to *limit*.
    """

    # The protocol GroupedMetadata of annotated_types: a mark that is read as those it yields.
    __is_annotated_types_grouped_metadata__: Final = True
    fits: ClassVar[Callable[[Any, Any], bool]]

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def holds(self, value: Any) -> bool:
        """
        Returns whether *value* keeps to it.
        """
        return bool(type(self).fits(value, self.limit))

    def __iter__(self) -> Iterator[Any]:
        import annotated_types

        yield getattr(annotated_types, type(self).__name__)(self.limit)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bound) and (type(other), other.limit) == (type(self), self.limit)

    def __hash__(self) -> int:
        return hash((type(self), self.limit))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.limit})"


class Ge(Bound):
    """
    At least *limit*.
    """

    fits = operator.ge


class Gt(Bound):
    """
    More than *limit*.
    """

    fits = operator.gt


class Le(Bound):
    """
    At most *limit*.
    """

    fits = operator.le


class MinLen(Bound):
    """
    *limit* characters or elements at least.
    """

    def holds(self, value: Any) -> bool:
        return len(value) >= self.limit


class MaxLen(Bound):
    """
    *limit* characters or elements at most.
    """

    def holds(self, value: Any) -> bool:
        return len(value) <= self.limit
