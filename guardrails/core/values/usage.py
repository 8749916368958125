"""
The usage of a model response, and its cost: at the policy's own prices, else at those of `genai-prices`, else unknown.

The package `genai-prices` (extra `prices`; MIT) bundles the list prices of some 2,300 models, dated where they changed. It
is imported with the first response that the policy has no price for, and never asks the network.
"""

import re

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, Self

from .errors import SessionError, install
from .logs import warn_once
from .schema import Ge
from .types import MICRO, micro_dollars


_MOST: Final = 10**12
"""A response of more tokens is a mistake: it would end a session for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """
    Prices of one model in USD per million tokens, which is micro-dollars per token.
    """

    input_mtok: Annotated[float, Ge(0)]
    output_mtok: Annotated[float, Ge(0)] = 0.0
    cache_read_mtok: Annotated[float, Ge(0)] | None = None
    """Of input tokens read from a cache; None: as other input."""
    cache_write_mtok: Annotated[float, Ge(0)] | None = None
    """Of input tokens written to a cache; None: as other input."""
    cache_write_1h_mtok: Annotated[float, Ge(0)] | None = None
    """Of those that are kept for an hour; None: as other tokens written to a cache."""


_SUMS: Final = {
    "input": "prompt_tokens input_tokens prompt_token_count input_token_count",
    "output": "completion_tokens output_tokens candidates_token_count output_token_count",
    "total": "total_tokens total_token_count",
    # Google counts these beside its input and its output.
    "more_input": "tool_use_prompt_token_count",
    "more_output": "thoughts_token_count",
    # Anthropic, Bedrock, agent-framework: beside the input, unless the total says that they are among it.
    "read": "cache_read_input_tokens cache_read_input_token_count",
    "written": "cache_creation_input_tokens cache_write_input_tokens cache_creation_input_token_count",
}
"""
The counts of a usage and their names, of chat.completions first; of Responses, Anthropic and most frameworks; of Google; of
agent-framework. A mapping may write each name `camelCase`.
"""
_PARTS: Final = {
    "prompt_tokens_details input_tokens_details input_token_details cache_creation": {
        "cached": f"""{_SUMS["read"]} cached_tokens cache_read cached_prompt_tokens cache_read_tokens
            prompt_cache_hit_tokens cached_content_token_count""",
        "cache_write": f"{_SUMS['written']} cache_write_tokens cache_creation_tokens cache_creation",
        "cache_write_1h": "ephemeral_1h_input_tokens",
        "cache_write_5m": "ephemeral_5m_input_tokens",
        "input_audio": "input_audio_tokens audio_tokens audio AUDIO",
    },
    "completion_tokens_details output_tokens_details output_token_details candidates_tokens_details": {
        "reasoning": """reasoning_tokens reasoning output_reasoning_tokens reasoning_output_token_count
            thoughts_token_count""",
        "output_audio": "output_audio_tokens audio_tokens audio AUDIO",
    },
}
"""The parts of the input and of the output, which are told beside these or in one of the members named before."""
_ANSWERS: Final = ("usage", "usage_metadata", "usage_details")
"""Members that answers have, and no usage."""


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
    cache_write_1h: int = 0
    """Of the tokens written to a cache, those that are kept for an hour."""
    cost: int | None = None
    """Micro-dollars that the response itself tells."""
    known: bool = True
    """The response says in numbers how much was used. If not, it was not free."""

    @property
    def total(self) -> int:
        return self.input + self.output

    @property
    def recorded(self) -> dict[str, int]:
        """
        The usage as the record of a charge tells it.
        """
        return {"tokens": self.total, **{f"{name}_tokens": getattr(self, name) for name in self._fields[:7]}}

    def fitted(self) -> Self:
        """
        Returns the usage with no more tokens from and for a cache than its input has.
        """
        cached = min(self.cached, self.input)
        written = min(self.cache_write, self.input - cached)
        return self._replace(cached=cached, cache_write=written, cache_write_1h=min(self.cache_write_1h, written))


def read_usage(usage: object) -> Usage:
    """
    Returns the usage of a model response as a client or a framework says it, an object or a mapping. None says nothing.

    It is that of chat.completions, Responses, Anthropic, Google, Bedrock, LiteLLM, LangChain, pydantic-ai, openai-agents,
    agent-framework, strands or crewai. Raises SessionError for what cannot be one: text, a number, a list, or the answer itself.
    """
    if isinstance(usage, Usage):
        return usage
    answer = any(_get(usage, name) is not None for name in _ANSWERS)
    if answer or isinstance(usage, (str, bytes, int, float, list, tuple)):
        shown = type(usage).__name__
        raise SessionError(f"`usage` is what a client's answer says was used (`response.usage`), not `{shown}`")
    inputs, outputs, total, more_in, more_out, read, written = (_count([usage], names) for names in _SUMS.values())
    inputs, outputs, total = _sum(inputs, more_in), _sum(outputs, more_out), total or 0
    beside = 0 if _get(usage, "prompt_tokens") is not None else (read or 0) + (written or 0)
    if beside and not 0 < total < (inputs or 0) + (outputs or 0) + beside:
        inputs = (inputs or 0) + beside
    if inputs is None:
        inputs = 0 if outputs is None else max(0, total - outputs)
    # Of a sum, what nobody tells apart (reasoning that the completion leaves out) counts as what costs more.
    output = max(outputs or 0, total - inputs)
    return Usage(inputs, output, **_parts(usage), cost=_own_cost(usage), known=_is_known(usage))


def _sum(one: int | None, more: int | None) -> int | None:
    return one if more is None else (one or 0) + more


def _parts(usage: object) -> dict[str, int]:
    """
    Returns the tokens that are among the input and the output of *usage*.
    """
    parts: dict[str, int] = {}
    for members, names in _PARTS.items():
        places = [usage, *filter(None, (_get(usage, member) for member in members.split()))]
        # LiteLLM tells the hour one deeper than others do.
        places += filter(None, [_get(place, "cache_creation_token_details") for place in places])
        parts |= {part: _count(places, words) or 0 for part, words in names.items()}
    written = parts.pop("cache_write_5m") + parts["cache_write_1h"]
    return {**parts, "cache_write": parts["cache_write"] or written}


def _is_known(usage: object) -> bool:
    """
    Returns whether *usage* says in numbers how much was used. A sum over no request, or over one that nobody measured, does not.
    """
    names = f"{_SUMS['input']} {_SUMS['output']} {_SUMS['total']}".split()
    values = [value for name in names if (value := _get(usage, name)) is not None]
    no_request = not any(values) and 0 in (_get(usage, "requests"), _get(usage, "successful_requests"))
    return bool(values) and all(map(_is_count, values)) and not no_request and not _get(usage, "unmeasured_requests")


def _own_cost(usage: object) -> int | None:
    """
    Returns the micro-dollars that *usage* itself tells, as OpenRouter, Perplexity and LiteLLM write them.
    """
    cost = _get(usage, "cost")
    for usd in (cost, _get(cost, "total_cost"), _get(usage, "total_cost")):
        if isinstance(usd, int | float | Decimal) and not isinstance(usd, bool) and 0 <= usd <= _MOST // MICRO:
            return micro_dollars(float(usd))
    return None


def _count(places: Iterable[Any], names: str) -> int | None:
    """
    Returns the first number above 0 that one of *places* says by one of *names*, else 0. Returns None if none says a number.
    """
    words = names.split()
    counts = [
        value for place in places for name in words if (value := _get(place, name)) is not None and _is_count(value)
    ]
    return next((int(count) for count in counts if count), 0) if counts else None


def _is_count(value: object) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and 0 <= value <= _MOST  # type: ignore[operator]


def _get(source: Any, name: str) -> Any:
    if isinstance(source, Mapping):
        return source[name] if name in source else source.get(_camel(name))
    if isinstance(source, list):
        # Google's parts by modality.
        return sum(_count([part], "token_count") or 0 for part in source if _get(part, "modality") == name)
    return getattr(source, name, None)


@cache
def _camel(name: str) -> str:
    return re.sub("_(.)", lambda found: found[1].upper(), name)


def own_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """
    Returns the price of *model*. Returns None if *prices* has none.

    *prices* maps model names or globs to prices; an exact name stands above a glob, then the first glob that matches.
    """
    return prices.get(model) or next((price for name, price in prices.items() if fnmatchcase(model, name)), None)


def cost_of(usage: Usage, price: Price) -> int:
    """
    Returns the micro-dollars of one response at *price*.
    """
    usage, plain = usage.fitted(), price.input_mtok
    read = plain if price.cache_read_mtok is None else price.cache_read_mtok
    write = plain if price.cache_write_mtok is None else price.cache_write_mtok
    parts = (
        (plain, usage.input - usage.cached - usage.cache_write),
        (read, usage.cached),
        (write, usage.cache_write - usage.cache_write_1h),
        (write if price.cache_write_1h_mtok is None else price.cache_write_1h_mtok, usage.cache_write_1h),
        (price.output_mtok, usage.output),
    )
    return _whole(sum((Decimal(str(each)) * tokens for each, tokens in parts), Decimal(0)))


def _whole(micro: Decimal) -> int:
    return int(micro.to_integral_value(ROUND_HALF_EVEN))


class Priced(NamedTuple):
    """
    The cost of one model response, and its source.
    """

    cost: int | None
    """Micro-dollars; None: nobody knows, which is never free."""
    by: str | None = None
    """`policy`, `caller`, `response`, or the name and version of the list: `genai-prices 0.2.3`. None: unknown."""
    model: str | None = None
    """The entry of that list: `openai/gpt-5-mini`."""
    unknown: str = ""
    """Why nobody knows."""

    @property
    def cost_usd(self) -> float | None:
        return None if self.cost is None else self.cost / MICRO

    @property
    def recorded(self) -> dict[str, object]:
        """
        The fields that the record of a charge has of it.
        """
        return {"cost": self.cost, "priced_by": self.by, "priced_as": self.model}


def price_of(usage: Usage, model: str, own: Mapping[str, Price], provider: str | None, at_ms: int) -> Priced:
    """
    Returns the cost of *usage* at the *own* prices of a policy, else at the listed ones, else as the response itself tells.

    The *provider* is an id, for example `openai` or `azure`, or the URL of the endpoint. If the URL belongs to no known
    provider, the name of the *model* alone decides. The time *at_ms* matters because prices change. If the price is
    unknown, the log says so once for each model.
    """
    price = own_price(model, own)
    if price is not None and (usage.known or not any(astuple(price))):
        # What costs nothing need not be counted.
        return Priced(cost_of(usage, price), "policy")
    priced = Priced(None, unknown="the response did not say what it used")
    if usage.known:
        priced = listed_price(usage, model, provider, at_ms)
    if priced.cost is None and usage.cost is not None:
        return Priced(usage.cost, "response")
    if priced.cost is None:
        hint = "; set its price in the policy's `prices:`" if usage.known else ""
        message = (
            f"no price is known for a response of `{model}` ({priced.unknown}), so no cost limit can be held{hint}"
        )
        warn_once(f"price {model} {usage.known}", "%s", message)
    return priced


def listed_price(usage: Usage, model: str, provider: str | None, at_ms: int) -> Priced:
    """
    Returns the cost of *usage* as listed for the time *at_ms*, or why it is not known. Raises nothing.
    """
    try:
        return _listed_price(usage, model, provider, at_ms)
    except Exception as error:  # noqa: BLE001  another's code and data never fail a response that was paid for
        hint = f": {install('prices')}" if isinstance(error, ImportError) else ""
        return Priced(None, unknown=f"genai-prices failed: {type(error).__name__}: {error}{hint}")


def _listed_price(usage: Usage, model: str, provider: str | None, at_ms: int) -> Priced:
    from genai_prices import __version__, data_snapshot

    # Whoever runs its `UpdatePrices` has another list from then on. It remembers what it has looked up.
    snapshot, version = data_snapshot.get_snapshot(), f"genai-prices {__version__}"
    if snapshot.from_auto_update:
        version += f" updated {snapshot.timestamp:%Y-%m-%dT%H:%M}"
    named = provider is not None and "://" not in provider
    # To the list, `litellm` is whoever the name of the model begins with.
    for way in ((provider, None),) if named else ((None, provider), (None, None), ("litellm", None)):
        with suppress(LookupError):
            listed, entry = snapshot.find_provider_model(model, None, *way)
            break
    else:
        return Priced(None, unknown=f"{version} does not list it" + (f" for `{provider}`" if named else ""))
    # A price is known with any clock.
    at = datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms >= 0 else datetime.max.replace(tzinfo=UTC)
    name, price = f"{listed.id}/{entry.id}", entry.get_prices(at)
    if (usage.input and price.input_mtok is None) or (usage.output and price.output_mtok is None):
        # It would take these tokens for free because it says nothing of them.
        return Priced(None, unknown=f"{version} does not price `{name}` by the token")
    return Priced(_whole(_usd(usage, listed, entry, at) * MICRO), version, name)


_LISTED: Final = (
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "output_reasoning_tokens"),
    *("input_audio_tokens", "output_audio_tokens", "cache_write_1h_tokens"),
)
"""The names by which the list counts the fields of `Usage`."""
_APART: Final = ("cache_write_1h_tokens", "cache_read_tokens", "cache_write_tokens", "output_reasoning_tokens")
"""Those that it may not tell apart together with others (cached audio, say); left out in turn, they count as the dearer ones."""


def _usd(usage: Usage, provider: Any, model: Any, at: datetime) -> Decimal:
    """
    USD by the list's own rules.
    """
    from genai_prices import Usage as Counts

    counts = {name: count for name, count in zip(_LISTED, usage.fitted(), strict=False) if count}
    for name in (*_APART, ""):
        try:
            return Decimal(model.calc_price(Counts(**counts), provider, genai_request_timestamp=at).total_price)
        except ValueError:
            counts.pop(name, None)
    raise LookupError(f"no price for {', '.join(counts)} together")


def public(provider: str | None) -> str | None:
    """
    Returns *provider* for a record: of a URL no user, no password and no query, which may be keys.
    """
    return provider and re.sub(r"(?s)^(.*?://)(?:[^/?#]*@)?([^?#]*).*", r"\1\2", provider)
