"""
What a model response used, and what that costs at the caller's own prices.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from .bounds import Ge
from .errors import SessionError


_INPUT: Final = ("prompt_tokens", "input_tokens")
_OUTPUT: Final = ("completion_tokens", "output_tokens")
_TOTAL: Final = ("total_tokens",)
_MOST: Final = 10**12
"""A response of more tokens is a mistake: it would end a session for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """
    Prices of one model in USD per million tokens, which is micro-dollars per token.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True, "revalidate_instances": "always"}

    input_mtok: Annotated[float, Ge(0)]
    output_mtok: Annotated[float, Ge(0)] = 0.0
    cache_read_mtok: Annotated[float, Ge(0)] | None = None
    """Of input tokens read from a cache; None: as other input."""

    @property
    def free(self) -> bool:
        """
        Whether any response costs nothing, whatever it used.
        """
        return not (self.input_mtok or self.output_mtok or self.cache_read_mtok)


class Usage(NamedTuple):
    """
    Tokens of one model response; those after *output* are among the first two.
    """

    input: int
    """All input tokens, cached ones included."""
    output: int
    cached: int = 0
    """Input tokens that were read from a cache."""
    cache_write: int = 0
    """Input tokens that were written to a cache."""
    reasoning: int = 0
    """Output tokens that nobody reads."""
    input_audio: int = 0
    output_audio: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output

    @property
    def recorded(self) -> dict[str, int]:
        """
        What the record of a charge says of it.
        """
        return {
            "tokens": self.total,
            "input_tokens": self.input,
            "output_tokens": self.output,
            "cached_tokens": self.cached,
            "cache_write_tokens": self.cache_write,
            "reasoning_tokens": self.reasoning,
            "input_audio_tokens": self.input_audio,
            "output_audio_tokens": self.output_audio,
        }


def read_usage(usage: object) -> Usage:
    """
    The usage of a chat.completions or Responses answer, as the client's object or as a mapping; None used nothing.

    Raises SessionError for what cannot be one: text, a number, a list, or the answer itself.
    """
    if usage is None:
        return Usage(0, 0)
    if isinstance(usage, Usage):
        return usage
    if isinstance(usage, (str, bytes, int, float, list, tuple)) or _get(usage, "usage") is not None:
        shown = type(usage).__name__
        raise SessionError(f"`usage` is what a client's answer says was used (`response.usage`), not `{shown}`")
    read = _get(usage, "prompt_tokens_details") or _get(usage, "input_tokens_details")
    written = _get(usage, "completion_tokens_details") or _get(usage, "output_tokens_details")
    asked, said, total = _told(usage, *_INPUT), _told(usage, *_OUTPUT), _count(usage, *_TOTAL)
    # Of a sum that is all there is, what nobody tells apart counts as what costs more.
    output = max(0, total - (asked or 0)) if said is None else said
    return Usage(
        max(0, total - output) if asked is None else asked,
        output,
        _count(read, "cached_tokens"),
        _count(read, "cache_write_tokens"),
        _count(written, "reasoning_tokens"),
        input_audio=_count(read, "audio_tokens"),
        output_audio=_count(written, "audio_tokens"),
    )


def tells(usage: object) -> bool:
    """
    Whether *usage* says how many tokens were used: what does not, or not in numbers, was not free.
    """
    if isinstance(usage, Usage):
        return True
    said = [value for name in (*_INPUT, *_OUTPUT, *_TOTAL) if (value := _get(usage, name)) is not None]
    return bool(said) and all(map(_is_count, said))


def cost_of(usage: Usage, model: str, prices: Mapping[str, Price]) -> int | None:
    """
    Micro-dollars of one response at the *prices* that `own_price` reads; None where no price is known for *model*.
    """
    price = own_price(model, prices)
    if price is None:
        return None
    cached = min(usage.cached, usage.input)
    cache_read = price.input_mtok if price.cache_read_mtok is None else price.cache_read_mtok
    exact = (
        Decimal(str(price.input_mtok)) * (usage.input - cached)
        + Decimal(str(cache_read)) * cached
        + Decimal(str(price.output_mtok)) * usage.output
    )
    return int(exact.to_integral_value(ROUND_HALF_EVEN))


def own_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """
    The price of *model*; None: *prices* has none.

    *prices* maps model names or globs to prices; an exact name stands above a glob, then the first glob that matches.
    """
    price = prices.get(model)
    if price is None:
        price = next((found for pattern, found in prices.items() if fnmatchcase(model, pattern)), None)
    return price


def _get(source: object, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def _count(source: object, *names: str) -> int:
    return _told(source, *names) or 0


def _told(source: object, *names: str) -> int | None:
    """
    The first number of tokens among *names*; None: there is none.
    """
    for name in names:
        value = _get(source, name)
        if _is_count(value):
            return int(value)
    return None


def _is_count(value: object) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and 0 <= value <= _MOST  # type: ignore[operator]
