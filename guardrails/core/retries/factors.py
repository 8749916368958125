"""
Factors: the integers that describe a failure and what was done about it, each put into levels by edges.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from guardrails.core.values.errors import GuardrailsError


MAX_CODE: Final = 2**31
"""Codes stay below: engines add 32-bit integers as 32-bit integers."""
MAX_EDGES: Final = 32
MAX_RUN: Final = 8
"""The last edge of `err_run`, `attempt` and `tool_run` stays below: each level is another column of the SQL."""
_MAX_EDGE: Final = 2**31 - 1

CONTEXT: Final[Mapping[str, bool]] = {
    "attempt": False,
    "err_run": False,
    "fail_share": True,
    "ra": True,
    "tool_run": False,
    "elapsed": True,
    "prev": True,
    "since": True,
}
"""
Factors that are known when a call has failed, and whether one may be unknown (which is level 0). All look back over
`lookback` settled calls of the session, in the order in which they settled.

attempt: earlier calls of the same signature. err_run: failures of the same tool with the same error type immediately
before this one, among the tool's calls, where `unavailable`, `server_error`, `timeout` and `connection` count as one,
since one outage shows as any of them. fail_share: percent of failures among the tool's earlier calls, unknown without
any. ra: ms until the latest time that a Retry-After of the tool has named in the session, unknown where none is left. tool_run: calls of the same tool immediately before this one. elapsed: ms
since the session began. prev: 0 the call before (of any tool) worked, 1 it failed, unknown where this is the first.
since: ms since the first failure of the present `err_run`, 0 where this is it.
"""

ACTION: Final[Mapping[str, bool]] = {"delay": True, "waited": True, "between": False, "reach": True}
"""
Factors of what was done before the same call came again.

delay: ms from the end of the failure to the start of the next call of its signature. waited: delay minus Retry-After,
ms, unknown without one. between: 1 where a state-changing call worked meanwhile, else 0. reach: delay plus `since`, ms
from the first failure of the run. Where a log has no times, delay, waited and reach are unknown.
"""

KEYS: Final = ("tool", "error", "source")
"""Factors that are names, not levels: the tool, the error type, who caused the retry."""


class FeatureSpecError(GuardrailsError, ValueError):
    """
    A feature specification is not valid.
    """


@dataclass(frozen=True, slots=True)
class Factor:
    """
    One factor: its levels are *unknown* (only if *nullable*), up to the first edge, up to the second, ..., above all.
    """

    name: str
    edges: tuple[int, ...]
    nullable: bool
    stride: int
    """The amount that one level adds to the packed code."""

    @property
    def radix(self) -> int:
        """
        The number of levels.
        """
        return len(self.edges) + 1 + self.nullable

    def level(self, value: int | None) -> int:
        """
        Returns the level of *value*; an unknown value of a factor that is never unknown counts as 0.
        """
        if value is None:
            return 0 if self.nullable else bisect_left(self.edges, 0)
        return bisect_left(self.edges, value) + self.nullable

    def shown(self, level: int) -> str:
        """
        Returns the meaning of *level* for a person: `unknown`, `<= 5000`, `> 60000`.
        """
        at = level - self.nullable
        if at < 0:
            return "unknown"
        return f"<= {self.edges[at]}" if at < len(self.edges) else f"> {self.edges[-1]}"


def factors_of(kind: str, said: Any, known: Mapping[str, bool]) -> tuple[Factor, ...]:
    """
    Returns the factors that *said* maps to their edges, of those *known*. Raises FeatureSpecError.
    """
    if not isinstance(said, Mapping) or not said:
        raise FeatureSpecError(f"`{kind}` maps factors to their edges, one at least")
    if odd := [name for name in said if name not in known]:
        raise FeatureSpecError(f"unknown factors of `{kind}`: {listed(odd)}; there are {listed(known)}")
    factors: list[Factor] = []
    stride = 1
    # In the order of the library, whatever the document's: a JSON text may have been written with sorted keys.
    for name in known:
        if name not in said:
            continue
        read = edges_of(f"{kind}.{name}", said[name])
        if name in {"attempt", "err_run", "tool_run"} and not 0 <= read[-1] < MAX_RUN:
            raise FeatureSpecError(f"the last edge of `{name}` is {read[-1]} (from 0 to {MAX_RUN - 1})")
        factors.append(Factor(name, read, known[name], stride))
        stride *= factors[-1].radix
    if stride > MAX_CODE:
        raise FeatureSpecError(f"`{kind}` has {stride:,} codes (at most {MAX_CODE:,}): use fewer factors or edges")
    return tuple(factors)


def edges_of(name: str, said: Any) -> tuple[int, ...]:
    """
    Returns an ascending list of integers. Raises FeatureSpecError.
    """
    if not isinstance(said, Sequence) or isinstance(said, str | bytes) or not 1 <= len(said) <= MAX_EDGES:
        raise FeatureSpecError(f"`{name}` is a list of 1 to {MAX_EDGES} integers")
    edges = tuple(number_of(name, edge, -_MAX_EDGE, _MAX_EDGE) for edge in said)
    if any(low >= high for low, high in pairwise(edges)):
        raise FeatureSpecError(f"`{name}` does not ascend: {list(edges)}")
    return edges


def number_of(name: str, said: Any, least: int, most: int) -> int:
    """
    Returns an integer in bounds. Raises FeatureSpecError.
    """
    if type(said) is not int or not least <= said <= most:
        raise FeatureSpecError(f"`{name}` is an integer from {least} to {most}, not `{said!r:.40}`")
    return said


def listed(names: Iterable[object]) -> str:
    """
    Returns *names* in backticks, for a message.
    """
    return ", ".join(f"`{name!s:.40}`" for name in names)
