"""
Values of any kind, drawn fast, and what must hold of a call that is given them.
"""

import copy
import datetime as dt
import json
import math
import random
import uuid

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson

from guardrails import Budget, Duplicates, Policy, Retryable, Summary, Tool, Truncate, Validation
from guardrails.core.values.types import STATUSES
from guardrails.sinks import MemorySink
from guardrails.stores.memory import MemoryStore


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "nights": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
POLICY = Policy(
    [Budget(max_calls=10), Duplicates(window=5), Validation(), Retryable(), Summary(), Truncate(max_bytes=2_000)],
    tools=[Tool(name="book", parameters=SCHEMA), Tool(name="free")],
)
ALPHABET = 'abc{}[]":,\\0129 \n\t\x00\x7fäß\u200f\u05d0文字\ud800\udfff\U0001f600'
NAMES = ("city", "nights", "query", "1", "", "status", "retryable", "id")


class Odd:
    """
    An object that has no form in JSON, and does not like to be looked at.
    """

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Circle(dict[str, Any]):
    """
    A mapping that holds itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self["self"] = self


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def text(rng: random.Random) -> str:
    return "".join(rng.choices(ALPHABET, k=rng.randrange(12)))


LEAVES: tuple[Callable[[random.Random], Any], ...] = (
    text,
    text,
    lambda rng: rng.choice((None, True, False, 0, 1, -1, 1.0, -0.0, math.nan, math.inf, 2**63, 2**64 + 1, 10**400)),
    lambda rng: rng.randrange(-(2**70), 2**70),
    lambda rng: rng.random() * 10 ** rng.randrange(-300, 300),
    lambda rng: rng.randbytes(rng.randrange(20)),
    lambda rng: rng.choice((Decimal("1e400"), Decimal("NaN"), Decimal("0.1"), 1j, ..., int, print, Odd())),
    lambda rng: dt.datetime.fromtimestamp(rng.randrange(2**32), dt.UTC),
    lambda rng: rng.choice((dt.date(1, 1, 1), dt.time(1), dt.timedelta(days=-1))),
    lambda rng: uuid.UUID(int=rng.getrandbits(128)),
    lambda rng: {rng.randrange(3), text(rng)},
    lambda rng: frozenset((text(rng),)),
    lambda rng: range(rng.randrange(4)),
    lambda rng: iter([text(rng)]),
)


def value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.random()
    if depth < 4 and kind < 0.2:
        return {key(rng): value(rng, depth + 1) for _ in range(rng.randrange(4))}
    if depth < 4 and kind < 0.35:
        made = [value(rng, depth + 1) for _ in range(rng.randrange(4))]
        return made if kind < 0.3 else tuple(made)
    return rng.choice(LEAVES)(rng)


def key(rng: random.Random) -> Any:
    return rng.choice(NAMES) if rng.random() < 0.6 else rng.choice((text(rng), 1, None, 1.5, True, (1, "a"), b"b"))


def arguments(rng: random.Random) -> Any:
    """
    What a model or a program may give as arguments: mappings mostly, JSON text, and what is neither.
    """
    kind = rng.random()
    if kind < 0.5:
        return {key(rng): value(rng, 1) for _ in range(rng.randrange(5))}
    if kind < 0.7:
        return {"city": text(rng), "nights": rng.randrange(-1, 3), **({"more": value(rng)} if kind < 0.6 else {})}
    if kind < 0.95:
        made = json.dumps({"city": text(rng), text(rng): [rng.randrange(9), None, text(rng)]})
        if kind > 0.85:
            at = rng.randrange(len(made))
            made = made[:at] + rng.choice(("", rng.choice(ALPHABET), "1e999", "NaN")) + made[at + 1 :]
        return made if kind < 0.9 else made.encode(errors="surrogatepass")
    if kind < 0.9505:
        return rng.choice((Circle(), deep(3_000), "[" * 5_000, {"a": deep(2_100)}))
    return value(rng)


def hold(given: Any, result: Any) -> None:
    """
    What must be true of a call, whatever it is given and whatever its tool gives back.
    """
    sink = MemorySink()
    session = POLICY.session("s", records=sink, store=MemoryStore())
    for tool in ("book", "free"):
        ran: list[Any] = []

        def execute(_: str, got: Any, ran: list[Any] = ran) -> Any:
            ran.append(got)
            return result

        alike = _copied(given)
        envelope = session.call(tool, given, execute)
        assert envelope.status in STATUSES
        assert json.loads(envelope.to_json())["status"] == envelope.status
        assert len(ran) == (envelope.status not in ("validation_error", "denied", "duplicate_call_blocked"))
        if tool == "book" and ran:
            assert isinstance(ran[0]["city"], str)
            assert len(ran[0]["city"]) <= 40
        again = session.decide(tool, alike).call.sig
        assert again is None or again == _signature(sink, tool)
    session.close()
    for record in sink.records:
        assert json.loads(orjson.dumps(record))


def _signature(sink: MemorySink, tool: str) -> int | None:
    found: int | None = next(
        record["sig"] for record in sink.records if record["event"] == "call" and record["tool"] == tool
    )
    return found


def _copied(given: Any) -> Any:
    try:
        return copy.deepcopy(given)
    except Exception:
        return given
