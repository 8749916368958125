"""
What is found about a call before it is decided.
"""

from dataclasses import dataclass, field

from guardrails.core.values.types import Denial, Nudge


Said = tuple[list[Denial], list[Denial | Nudge], list[tuple[str, str]], list[tuple[str, str]]]
"""Denials, what only observes, nudges as (code, hint), failures as (guard, what it raised)."""


@dataclass(slots=True)
class Found:
    """
    What others have to say of a call beside its session's own guards.
    """

    denials: list[Denial] = field(default_factory=list)
    observed: list[Denial | Nudge] = field(default_factory=list)
    nudges: list[tuple[str, str]] = field(default_factory=list)
    """(code, hint)"""
    errors: list[tuple[str, str]] = field(default_factory=list)
    """(guard, what it raised)"""

    def fails(self, name: str, error: Exception, *, deny: bool) -> None:
        """
        Note that the guard *name* raised *error*.
        """
        self.errors.append((name, f"{type(error).__name__}: {error}"))
        if deny:
            self.denials.append(broken(name))


def said(found: Found | None) -> Said:
    """
    The lists of *found*, to be added to.
    """
    return ([], [], [], []) if found is None else (found.denials, found.observed, found.nudges, found.errors)


def broken(name: str) -> Denial:
    """
    The refusal that follows from a guard *name* that raised.
    """
    return Denial(
        code=f"{name}.error",
        message=f"The guard `{name}` failed, so the call was not made.",
        hint="Use another tool, or tell the user.",
        strike=False,
    )
