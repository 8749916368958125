"""
A learned model: log odds by name, in a plain JSON file that is checked as a whole before anything of it is used.
"""

import math

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import orjson

from guardrails.core.retries.serving import RETRIES
from guardrails.core.retries.trail import Crosses
from guardrails.core.values.errors import ModelError


ENOUGH: Final = 5
"""Tries below which no sentence says more than how many there were."""
CORRECTION_STRENGTH: Final = 10.0
"""
Corrected calls of a tool that weigh as much as the rate of all tools, and of a run as much as no effect of it.

Of 3,031 such calls of public agents the log loss of sessions that were left out is within .001 of its best from 2 to 20; the
loss of sources that were left out is least at 10.
"""


class Count(NamedTuple):
    """
    Tries and how many of them worked; decayed counts are no whole numbers.
    """

    n: float
    s: float

    def plus(self, more: "Count") -> "Count":
        """
        Returns this and *more* together.
        """
        return Count(self.n + more.n, self.s + more.s)

    def posterior(self, mean: float) -> float:
        """
        Returns the share that worked, drawn towards *mean*: the posterior mean of a Beta prior that counts for so many tries.
        """
        return (self.s + mean * CORRECTION_STRENGTH) / (self.n + CORRECTION_STRENGTH)


NONE: Final = Count(0.0, 0.0)


def times(share: float) -> str:
    """
    Returns *share* to the next twentieth, as a person says it: `4 times in 5`, `1 time in 10`, `less than 1 time in 20`.
    """
    worked = round(share * 20)
    if worked in (0, 20):
        return "more than 19 times in 20" if worked else "less than 1 time in 20"
    common = math.gcd(worked, 20)
    return f"{worked // common} {'time' if worked == common else 'times'} in {20 // common}"


VERSION: Final = 4
MAX_BYTES: Final = 8 * 1024 * 1024
MAX_WEIGHT: Final = 20.0
"""Log odds; a weight beyond it comes of a broken fit, and no evidence would ever outweigh it."""
ANY: Final = ""
"""In place of a tool: all tools together."""
DECLARED: Final = (-4.0, 2.0)
"""A tool's `retryable: false` makes a retry e^4 = 55 times as unlikely to work, `true` e^2 = 7 times as likely."""
DECLARED_STRENGTH: Final = 20.0
"""Retries of the tool and error after which a declaration weighs half as much."""
KNOWN: Final = 8_192
"""Log odds that are kept; tools with made-up names must not fill the memory."""


class Crossed(Protocol):
    """
    The situation of a call, in levels that can be crossed.
    """

    @property
    def tool(self) -> str: ...

    def keys(self) -> Crosses: ...


@dataclass(frozen=True)
class RetryModel:
    """
    A valid model: made once, read by any number of threads, replaced as a whole. `parse` reads one, `text_of` writes one.
    """

    intercept: float
    weights: Mapping[str, float]
    tools: Mapping[str, Mapping[str, float]]
    """Weights of a tool's own; those of a tool that is not there are 0."""
    evidence: Mapping[str, Mapping[str, float]]
    """Retries seen, by tool and error type; decayed."""
    corrections: Mapping[str, Mapping[str, Count]]
    """Calls with other arguments that came next, and those that worked, by tool (or `ANY`) and error type; decayed."""
    body: Mapping[str, Any] = field(repr=False)
    """All that the file says."""
    known: dict[Crossed, float] = field(default_factory=dict, repr=False, compare=False)
    """Log odds that were worked out with it."""

    @property
    def name(self) -> str:
        """
        The name of the model in records.
        """
        return str(self.body["sha256"][:12])

    def logit(self, at: Crossed) -> float:
        """
        Returns the log odds of what the model is of, declarations left out.
        """
        if len(self.known) >= KNOWN:
            self.known.clear()
        if at not in self.known:
            names = zip(at.keys(), (self.weights, self.tools.get(at.tool, {})), strict=True)
            self.known[at] = self.intercept + sum(weights.get(key, 0.0) for keys, weights in names for key, _ in keys)
        return self.known[at]

    def probability(self, at: Crossed) -> float:
        """
        Returns how likely that is.
        """
        return logistic(self.logit(at))

    def declared(self, tool: str, error: str, declared: bool | None) -> float:
        """
        Returns the log odds that a tool's *declared* `retryable` adds, before its own failures say otherwise.
        """
        if declared is None:
            return 0.0
        seen = self.evidence.get(tool, {}).get(error, 0.0)
        return DECLARED[declared] * DECLARED_STRENGTH / (DECLARED_STRENGTH + seen)

    def corrections_seen(self, tool: str, error: str) -> float:
        """
        Returns calls of this very tool with other arguments after *error* that were counted.
        """
        return self.corrections.get(tool, {}).get(error, NONE).n

    def correction(self, tool: str, error: str) -> float | None:
        """
        Returns how likely a call of *tool* with other arguments works after *error*: its own share, drawn to that of all
        tools. Returns None if no such call is known.
        """
        own, every = (self.corrections.get(name, {}).get(error, NONE) for name in (tool, ANY))
        usual = every if every.n > 0 else own
        return own.posterior(usual.s / usual.n) if usual.n > 0 else None


def logistic(logit: float) -> float:
    """
    Returns the logistic function, without overflow.
    """
    return (1 + math.tanh(logit / 2)) / 2


def _sum_of(body: Mapping[str, Any]) -> str:
    """
    Returns the hash of *body* without its `sha256`, keys sorted, no spaces.
    """
    from hashlib import sha256  # and with it OpenSSL: 5 ms

    rest = {key: value for key, value in body.items() if key != "sha256"}
    return sha256(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)).hexdigest()


def text_of(body: Mapping[str, Any], kind: str = RETRIES) -> bytes:
    """
    Returns the bytes of the model file of *body*, of a *kind* and with its hash.
    """
    made = {**body, "format": kind, "version": VERSION}
    made["sha256"] = _sum_of(made)
    return orjson.dumps(made, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def parse(text: bytes, kind: str = RETRIES) -> RetryModel:
    """
    Returns the model of a *kind* in the bytes of a file. Raises ModelError saying what is wrong with it, and what to do.
    """
    if len(text) > MAX_BYTES:
        raise ModelError(f"a model file of {len(text):,} bytes (at most {MAX_BYTES:,})")
    try:
        body = orjson.loads(text)
    except ValueError as error:
        raise ModelError(f"not JSON ({error}): the file is cut off or no model") from None
    if not isinstance(body, dict) or body.get("format") != kind:
        raise ModelError(f"no {kind.partition('.')[2].replace('-', ' ')}: `format` is not `{kind}`")
    version = body.get("version")
    if version != VERSION:
        step = "train it again: `guardrails train RECORDS -o FILE`, or upgrade this library"
        raise ModelError(f"a model file of version `{version!r:.20}`, this library reads {VERSION}: {step}")
    if body.get("sha256") != _sum_of(body):
        raise ModelError("the hash does not fit: the file was changed or damaged")
    counts = {tool: {error: Count(*n) for error, n in own.items()} for tool, own in body["corrections"].items()}
    sums = body["intercept"], body["weights"], body["tools"], body["evidence"]
    return RetryModel(*sums, counts, body)
