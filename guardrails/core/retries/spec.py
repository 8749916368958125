"""
The feature specification: one document of edges, windows and label limits.

It drives the online computer (`context`), the labels (`labels`) and the SQL text of the offline extraction. The levels of
all factors of a kind are packed into one *code*, mixed radix, the first factor in the lowest place.
"""

import json

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from .factors import ACTION, CONTEXT, KEYS, Factor, FeatureSpecError, edges_of, factors_of, listed, number_of


__all__ = ["ACTION", "CONTEXT", "KEYS", "Factor", "FeatureSpec", "FeatureSpecError"]

FORMAT: Final = "guardrails.features"
MAX_LOOKBACK: Final = 20
"""Settled calls that a session's state remembers for the features."""
MAX_LABEL_CALLS: Final = 1_000
MAX_LABEL_MS: Final = 86_400_000
MAX_DOCUMENT: Final = 16_384
"""Characters."""

Step = tuple[int, tuple[int, ...], int, int]
"""(place among all factors of its kind, edges, levels before the first edge's, stride) of a factor."""


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
        Returns the specification in a JSON text, or in the mapping that was read from one. Raises FeatureSpecError.
        """
        if not isinstance(document, Mapping):
            document = _read(document)
        known = {"format", "version", "lookback", "label", "context", "action", "delays_ms"}
        if document.get("format") != FORMAT:
            raise FeatureSpecError(f"not a feature specification: `format` is not `{FORMAT}`")
        if set(document) != known:
            odd = sorted(set(document) ^ known)
            raise FeatureSpecError(f"a feature specification has exactly {', '.join(sorted(known))}; see {listed(odd)}")
        label = document["label"]
        if not isinstance(label, Mapping) or set(label) != {"max_calls", "max_ms"}:
            raise FeatureSpecError("`label` has exactly `max_calls` and `max_ms`")
        spec = cls(
            number_of("version", document["version"], 1, 2**15 - 1),
            number_of("lookback", document["lookback"], 1, MAX_LOOKBACK),
            number_of("label.max_calls", label["max_calls"], 1, MAX_LABEL_CALLS),
            number_of("label.max_ms", label["max_ms"], 1, MAX_LABEL_MS),
            factors_of("context", document["context"], CONTEXT),
            action=factors_of("action", document["action"], ACTION),
            delays_ms=edges_of("delays_ms", document["delays_ms"]),
        )
        if spec.delays_ms[0] < 0:
            raise FeatureSpecError("`delays_ms` are not negative")
        return spec

    def document(self) -> dict[str, Any]:
        """
        Returns the JSON value that `parse` reads as this specification.
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
        # Slow to import, and needed only where cells or models are.
        import hashlib

        made = self.document()
        del made["delays_ms"]
        return hashlib.sha256(json.dumps(made, separators=(",", ":")).encode()).hexdigest()[:16]

    @cached_property
    def contexts(self) -> int:
        """
        The number of context codes.
        """
        return self.context[-1].stride * self.context[-1].radix

    @cached_property
    def actions(self) -> int:
        """
        The number of action codes.
        """
        return self.action[-1].stride * self.action[-1].radix

    @cached_property
    def context_steps(self) -> tuple[Step, ...]:
        """
        The steps of packing a context.
        """
        return _steps(CONTEXT, self.context)

    @cached_property
    def action_steps(self) -> tuple[Step, ...]:
        """
        The steps of packing an action.
        """
        return _steps(ACTION, self.action)

    @cached_property
    def by_name(self) -> dict[str, Factor]:
        """
        Every factor of context and action.
        """
        return {factor.name: factor for factor in (*self.context, *self.action)}

    def encode_context(self, levels: Mapping[str, int]) -> int:
        """
        Returns the context code of *levels* by factor. Raises KeyError if one is missing.
        """
        return sum(levels[factor.name] * factor.stride for factor in self.context)

    def decode_context(self, code: int) -> dict[str, int]:
        """
        Returns the level of each context factor. Raises ValueError if the code is unknown.
        """
        return _decode(self.context, code, self.contexts)

    def decode_action(self, code: int) -> dict[str, int]:
        """
        Returns the level of each action factor. Raises ValueError if the code is unknown.
        """
        return _decode(self.action, code, self.actions)


def _decode(factors: Sequence[Factor], code: int, codes: int) -> dict[str, int]:
    if not 0 <= code < codes:
        raise ValueError(f"there is no code {code}: they go from 0 to {codes - 1}")
    return {factor.name: code // factor.stride % factor.radix for factor in factors}


def _steps(known: Mapping[str, bool], factors: Sequence[Factor]) -> tuple[Step, ...]:
    places = list(known)
    return tuple((places.index(factor.name), factor.edges, int(factor.nullable), factor.stride) for factor in factors)


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
