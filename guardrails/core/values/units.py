"""
Durations, sizes and globs as people write them in a policy, read into plain values.

A duration is `500ms`, `30s`, `10m`, `24h`, `7d`, or a bare number of seconds. A size is `512B`, `64KiB`, `4MiB`,
`1GiB`, or a bare number of bytes. `64KB` is refused: it means 64,000 to some and 65,536 to others.
"""

import math
import re

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fnmatch import translate
from functools import lru_cache
from typing import Annotated, Final

from .names import MARKS, own_name
from .schema import FromText


MILLISECONDS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MAX_DURATION_MS: Final = 36_500 * MILLISECONDS["d"]
"""A hundred years: longer is a slip of the keyboard, and sums must stay far below 64 bits."""

BYTES: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MAX_BYTES: Final = 1 << 50

DURATION_PATTERN: Final = r"^[0-9]{1,15}(\.[0-9]{1,9})?(ms|s|m|h|d)$"
SIZE_PATTERN: Final = r"^[0-9]{1,15}(\.[0-9]{1,9})?(B|KiB|MiB|GiB)$"

_DURATION = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)")
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(B|KiB|MiB|GiB)")
_AMBIGUOUS_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([kKmMgG])[bB]?")
_CLOSED = re.compile(r"\[!?+\]?+[^]]*\]")
_UNCLOSED = re.compile(r"\[")
_SHOWN = 40


def duration_ms(value: object) -> int:
    """
    Returns *value* as whole milliseconds: text with a unit, or a number of seconds.

    Not idempotent, as the answer is in another unit than a bare number is read in: a setting that is validated
    again keeps `duration_s`. Raises ValueError for anything else, for less than nothing, for parts of a millisecond
    and for more than a hundred years.
    """
    exact = _exact(value, _DURATION, MILLISECONDS, 1_000)
    whole, most = "whole milliseconds, ", "between 0s and 36500d, "
    return _within(exact, value, "a duration", "500ms, 30s, 10m, 24h or 7d", whole, MAX_DURATION_MS, most)


def duration_s(value: object) -> float:
    """
    Returns *value* as seconds, exact to the millisecond: any form that `duration_ms` reads, and its own answers
    unchanged.

    Raises ValueError as `duration_ms` does.
    """
    return duration_ms(value) / 1_000


def byte_size(value: object) -> int:
    """
    Returns *value* as a number of bytes: text with a binary unit, or a whole number; its own answers unchanged.

    Raises ValueError for anything else, for parts of a byte and for more than 2^50 bytes.
    """
    if isinstance(value, str) and (ambiguous := _AMBIGUOUS_SIZE.fullmatch(value)):
        unit = f"{ambiguous[2].upper()}iB"
        decimal = int(Decimal(ambiguous[1]).scaleb({"KiB": 3, "MiB": 6, "GiB": 9}[unit]))
        raise ValueError(f"not a size: write {ambiguous[1]}{unit} or {decimal} (bytes), {_got(value)}")
    exact = None if isinstance(value, float) else _exact(value, _SIZE, BYTES, 1)
    whole, most = "whole bytes, ", f"between 0 and {MAX_BYTES} bytes, "
    return _within(exact, value, "a size", "65536, 512B, 64KiB, 4MiB or 1GiB", whole, MAX_BYTES, most)


def _exact(value: object, form: "re.Pattern[str]", units: Mapping[str, int], bare: int) -> Decimal | None:
    if isinstance(value, str):
        found = form.fullmatch(value)
        return Decimal(found[1]) * units[found[2]] if found else None
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return Decimal(str(value)) * bare if number else None


def _within(exact: Decimal | None, value: object, kind: str, forms: str, whole: str, limit: int, most: str) -> int:
    apart = exact is not None and exact != exact.to_integral_value()
    if exact is None or apart or not 0 <= exact <= limit:
        said = f"write {forms}, " if exact is None else f"must be {whole if apart else most}"
        raise ValueError(f"not {kind}: {said}{_got(value)}")
    return int(exact)


Duration = Annotated[
    float,
    FromText(
        duration_s, {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": DURATION_PATTERN}]}
    ),
]
"""A setting in seconds that may be written `30s`; constraints such as `Gt(0)` are in seconds."""

ByteSize = Annotated[
    int,
    FromText(byte_size, {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": SIZE_PATTERN}]}),
]
"""A setting in bytes that may be written `64KiB`; constraints are in bytes."""


def glob(value: object) -> object:
    """
    Returns *value* if it is no text, or a glob that some name can match.

    Raises ValueError for others: an empty one, one whose `[` is never closed, one with an empty range.
    """
    if not isinstance(value, str):
        return value

    if not value:
        raise ValueError("an empty glob matches nothing: write `*` for every name")

    if "[" not in value:
        return value

    if _UNCLOSED.search(_CLOSED.sub("", value)):
        raise ValueError(
            f"a glob with a `[` that is never closed matches no name: close it or write `[[]`, {_got(value)}"
        )

    if "(?!)" in translate(value):
        raise ValueError(f"a glob with an empty range matches no name, {_got(value)}")

    return value


Glob = Annotated[str, FromText(glob, {"type": "string", "minLength": 1})]
"""A pattern of names with `*`, `?` and `[...]` (fnmatch); after `**/` it is one of the tool's own name, see `own_name`."""
_OWN: Final = "**/"


@lru_cache(maxsize=256)
def matcher(globs: tuple[str, ...]) -> Callable[[str], object]:
    """
    Returns a function that finds a name that any of the *globs* matches, and gives None for others. It is one regular
    expression, for the globs may be dozens. Globs that begin with `**/` have one more, for a tool's own name.
    """
    # No own name has what parts it from a prefix: such a glob is one of whole names.
    own = [glob for glob in globs if glob.startswith(_OWN) and MARKS.search(glob, len(_OWN)) is None]
    whole = _any_of(glob for glob in globs if glob not in own)
    if not own:
        return whole
    bare = _any_of(glob.removeprefix(_OWN) for glob in own)
    return lambda name: whole(name) or bare(own_name(name))


def _any_of(globs: Iterable[str]) -> Callable[[str], object]:
    return re.compile("|".join(map(translate, globs)) or "(?!)").match


def _got(value: object) -> str:
    if value is None:
        return "got nothing"

    text = str(value).lower() if isinstance(value, bool) else str(value)

    return f"got `{text[:_SHOWN]}`"
