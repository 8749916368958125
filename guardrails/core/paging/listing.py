"""
One listing of a result: what it tells of its pages, and what its signs say together.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from guardrails.core.values.late_pattern import pattern

from .names import Kind, sayable


MAX_SHOWN: Final = 96
"""Characters of a value that a hint repeats."""
NARROW: Final = "Ask for a smaller part: a range, a filter or a page."
ON: Final = "ask for the next part"
_SHOWABLE: Final = pattern(r"[A-Za-z0-9_.:/?&=%+~@,|$-]+")
"""No space and no quote: what a hint repeats of a tool's text can be no sentence."""
ADDRESS: Final = pattern(r"https?://|/|\?|\.\.")


def go_on(name: str, value: Any) -> tuple[int, str]:
    """
    Returns how to go on from a place that a result names: its value is repeated if it is short and can be no sentence.
    """
    if not name:
        return 1, f"There is more: {ON}."
    name = sayable(name)
    text = str(value) if isinstance(value, (str, int)) else ""
    is_shown = len(text) <= MAX_SHOWN and _SHOWABLE.fullmatch(text)
    what = "link" if ADDRESS.match(text) else "cursor"
    if not name:
        return 1, f"There is more: call again with the {what} `{text}`." if is_shown else f"There is more: {ON}."
    return 0, f"There is more: call again with the {what} in `{name}`{f': `{text}`' if is_shown else ''}."


@dataclass(slots=True)
class Fact:
    """
    One member of a result that may speak of pages.
    """

    kind: Kind
    name: str
    """Where it stands, as a hint can say it; "" if it cannot."""
    value: Any
    found: bool
    """Stands in a place that is for pages alone; once judged: or beside matches."""
    sure: bool = False
    """Stands in a place that is for pages alone."""
    paged: bool = False
    """Stands in such a place, or beside matches that are named so or counted."""


@dataclass(slots=True)
class Listing:
    """
    The facts that a result tells of one listing; its parts may stand in several places.
    """

    facts: list[Fact] = field(default_factory=list)
    rows: Any = None
    """The matches: a list."""
    rows_name: str = ""
    named: bool = False
    """By one of the usual names."""
    lists: dict[str, int] = field(default_factory=dict)
    """Lists by other names, and their lengths."""
    others: list[int] = field(default_factory=list)
    """Whole numbers by other names."""
    money: bool = False
    thing: bool = False
    more: list[tuple[int, str]] = field(default_factory=list)
    """How to go on; the lower the number, the more helpful."""
    broken: str | None = None
    """How to go on if the search did not come to its end, which is no matter of pages."""
    ends: bool = False
    """No page follows."""
    whole: bool = False
    """Nothing is missing."""
    doubt: bool = False
    later: bool = False
    """It is not the first part."""
    mark: Fact | None = None
    """A place that may be the end."""
    total: int | None = None

    @property
    def complete(self) -> bool | None:
        """
        Whether this is all; None if its signs contradict each other, or cannot be read.
        """
        if self.broken is not None:
            return None if self.whole else False
        if self.more:
            return None if self.ends or self.whole else False
        if self.doubt or (self.mark is not None and not self.ends and not self.whole):
            return None
        return True

    @property
    def how(self) -> str | None:
        """
        The way to go on.
        """
        if not self.more:
            return self.broken
        rank, text = min(self.more)
        return text if self.mark is None or rank < 2 else go_on(self.mark.name, self.mark.value)[1]
