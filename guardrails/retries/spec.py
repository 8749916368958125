"""
The feature specification: which small integers describe a failure and what was done about it.

One document of edges, windows and label limits drives the online computer (`context`), the labels (`labels`) and the SQL
text of the offline extraction. A *factor* is one integer by its name, put into a *level* by edges; the levels of all
factors of a kind are packed into one *code*, mixed radix, the first factor in the lowest place.
"""

import hashlib
import json

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from ..errors import GuardrailsError


FORMAT: Final = "guardrails.features"
MAX_CODE: Final = 2**31
"""Codes stay below: engines add 32-bit integers as 32-bit integers."""
MAX_LOOKBACK: Final = 20
"""Settled calls that a session's state remembers for the features."""
MAX_LABEL_CALLS: Final = 1_000
MAX_LABEL_MS: Final = 86_400_000
MAX_EDGES: Final = 32
MAX_RUN: Final = 8
"""Largest last edge of `err_run` and `attempt`, and of `tool_run`: each is that many more columns of the SQL."""
MAX_DOCUMENT: Final = 16_384
"""Characters."""
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
before this one, among the tool's calls; at most one more than its last edge. fail_share: percent of failures among the tool's earlier calls, unknown without
any. ra: the Retry-After of the failure, ms. tool_run: calls of the same tool immediately before this one. elapsed: ms
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
    One factor: its levels are *unknown* (only where *nullable*), up to the first edge, up to the second, ..., above all.
    """

    name: str
    edges: tuple[int, ...]
    nullable: bool
    stride: int
    """What one level adds to the packed code."""

    @property
    def radix(self) -> int:
        """
        How many levels there are.
        """
        return len(self.edges) + 1 + self.nullable

    def level(self, value: int | None) -> int:
        """
        The level of *value*; an unknown value of a factor that is never unknown counts as 0.
        """
        if value is None:
            return 0 if self.nullable else bisect_left(self.edges, 0)
        return bisect_left(self.edges, value) + self.nullable

    def shown(self, level: int) -> str:
        """
        What *level* means, for a person: `unknown`, `<= 5000`, `> 60000`.
        """
        at = level - self.nullable
        if at < 0:
            return "unknown"
        return f"<= {self.edges[at]}" if at < len(self.edges) else f"> {self.edges[-1]}"


Step = tuple[str, tuple[int, ...], int, int]
"""(name, edges, levels before the first edge's, stride) of a factor."""


@dataclass(frozen=True, eq=False)
class FeatureSpec:
    """
    A valid specification. `FeatureSpec.parse(text)` reads one; `document()` is what it was read from.
    """

    version: int
    lookback: int
    max_calls: int
    """A retry that comes after more settled calls of its session is none: the failure is unlabelled."""
    max_ms: int
    """The same in milliseconds from the failure's end to the retry's start."""
    context: tuple[Factor, ...]
    action: tuple[Factor, ...]
    delays_ms: tuple[int, ...]
    """Candidate waits that a decision compares, ascending."""

    @classmethod
    def parse(cls, document: str | bytes | Mapping[str, Any]) -> "FeatureSpec":
        """
        The specification in a JSON text, or in the mapping that was read from one. Raises FeatureSpecError.
        """
        if not isinstance(document, Mapping):
            document = _read(document)
        known = {"format", "version", "lookback", "label", "context", "action", "delays_ms"}
        if document.get("format") != FORMAT:
            raise FeatureSpecError(f"not a feature specification: `format` is not `{FORMAT}`")
        if set(document) != known:
            odd = sorted(set(document) ^ known)
            raise FeatureSpecError(f"a feature specification has exactly {', '.join(sorted(known))}; see {_list(odd)}")
        label = document["label"]
        if not isinstance(label, Mapping) or set(label) != {"max_calls", "max_ms"}:
            raise FeatureSpecError("`label` has exactly `max_calls` and `max_ms`")
        spec = cls(
            _number("version", document["version"], 1, 2**15 - 1),
            _number("lookback", document["lookback"], 1, MAX_LOOKBACK),
            _number("label.max_calls", label["max_calls"], 1, MAX_LABEL_CALLS),
            _number("label.max_ms", label["max_ms"], 1, MAX_LABEL_MS),
            _factors("context", document["context"], CONTEXT),
            _factors("action", document["action"], ACTION),
            _edges("delays_ms", document["delays_ms"]),
        )
        if spec.delays_ms[0] < 0:
            raise FeatureSpecError("`delays_ms` are not negative")
        return spec

    def document(self) -> dict[str, Any]:
        """
        The JSON value that `parse` reads as this specification.
        """
        return {
            "format": FORMAT,
            "version": self.version,
            "lookback": self.lookback,
            "label": {"max_calls": self.max_calls, "max_ms": self.max_ms},
            "context": {factor.name: list(factor.edges) for factor in self.context},
            "action": {factor.name: list(factor.edges) for factor in self.action},
            "delays_ms": list(self.delays_ms),
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureSpec) and self.document() == other.document()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.digest, self.delays_ms))

    @cached_property
    def digest(self) -> str:
        """
        The first 16 hexadecimal digits of the SHA-256 of what the cells depend on: all but *delays_ms*.
        """
        made = self.document()
        del made["delays_ms"]
        return hashlib.sha256(json.dumps(made, separators=(",", ":")).encode()).hexdigest()[:16]

    @cached_property
    def contexts(self) -> int:
        """
        How many context codes there are.
        """
        return self.context[-1].stride * self.context[-1].radix

    @cached_property
    def actions(self) -> int:
        """
        How many action codes there are.
        """
        return self.action[-1].stride * self.action[-1].radix

    @cached_property
    def run(self) -> int:
        """
        How many failures `err_run` and `since` look back over.
        """
        return self.by_name["err_run"].edges[-1] + 1 if "err_run" in self.by_name else 1

    @cached_property
    def context_steps(self) -> tuple[Step, ...]:
        """
        What packing a context goes through.
        """
        return tuple((factor.name, factor.edges, int(factor.nullable), factor.stride) for factor in self.context)

    @cached_property
    def action_steps(self) -> tuple[Step, ...]:
        """
        What packing an action goes through.
        """
        return tuple((factor.name, factor.edges, int(factor.nullable), factor.stride) for factor in self.action)

    @cached_property
    def by_name(self) -> dict[str, Factor]:
        """
        Every factor of context and action.
        """
        return {factor.name: factor for factor in (*self.context, *self.action)}

    def encode_context(self, levels: Mapping[str, int]) -> int:
        """
        The context code of *levels* by factor. Raises KeyError where one is missing.
        """
        return sum(levels[factor.name] * factor.stride for factor in self.context)

    def decode_context(self, code: int) -> dict[str, int]:
        """
        The level of each context factor. Raises ValueError where there is no such code.
        """
        return _decode(self.context, code, self.contexts)

    def encode_action(self, levels: Mapping[str, int]) -> int:
        """
        The action code of *levels* by factor. Raises KeyError where one is missing.
        """
        return sum(levels[factor.name] * factor.stride for factor in self.action)

    def decode_action(self, code: int) -> dict[str, int]:
        """
        The level of each action factor. Raises ValueError where there is no such code.
        """
        return _decode(self.action, code, self.actions)


def _decode(factors: Sequence[Factor], code: int, codes: int) -> dict[str, int]:
    if not 0 <= code < codes:
        raise ValueError(f"there is no code {code}: they go from 0 to {codes - 1}")
    return {factor.name: code // factor.stride % factor.radix for factor in factors}


def _read(text: str | bytes) -> Mapping[str, Any]:
    if len(text) > MAX_DOCUMENT:
        raise FeatureSpecError(f"a feature specification of {len(text)} characters (at most {MAX_DOCUMENT})")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FeatureSpecError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise FeatureSpecError("a feature specification is a JSON object")
    return document


def _factors(kind: str, said: Any, known: Mapping[str, bool]) -> tuple[Factor, ...]:
    if not isinstance(said, Mapping) or not said:
        raise FeatureSpecError(f"`{kind}` maps factors to their edges, one at least")
    if odd := [name for name in said if name not in known]:
        raise FeatureSpecError(f"unknown factors of `{kind}`: {_list(odd)}; there are {_list(known)}")
    factors: list[Factor] = []
    stride = 1
    for name, edges in said.items():
        read = _edges(f"{kind}.{name}", edges)
        if name in {"attempt", "err_run", "tool_run"} and not 0 <= read[-1] < MAX_RUN:
            raise FeatureSpecError(f"the last edge of `{name}` is {read[-1]} (from 0 to {MAX_RUN - 1})")
        factors.append(Factor(name, read, known[name], stride))
        stride *= factors[-1].radix
    if stride > MAX_CODE:
        raise FeatureSpecError(f"`{kind}` has {stride:,} codes (at most {MAX_CODE:,}): use fewer factors or edges")
    return tuple(factors)


def _edges(name: str, said: Any) -> tuple[int, ...]:
    if not isinstance(said, Sequence) or isinstance(said, str | bytes) or not 1 <= len(said) <= MAX_EDGES:
        raise FeatureSpecError(f"`{name}` is a list of 1 to {MAX_EDGES} integers")
    edges = tuple(_number(name, edge, -_MAX_EDGE, _MAX_EDGE) for edge in said)
    if any(low >= high for low, high in pairwise(edges)):
        raise FeatureSpecError(f"`{name}` does not ascend: {list(edges)}")
    return edges


def _number(name: str, said: Any, least: int, most: int) -> int:
    if type(said) is not int or not least <= said <= most:
        raise FeatureSpecError(f"`{name}` is an integer from {least} to {most}, not `{said!r:.40}`")
    return said


def _list(names: Any) -> str:
    return ", ".join(f"`{name!s:.40}`" for name in names)
