"""
The usage of a model response, and its cost: at the policy's own prices, else at those of `genai-prices`, else unknown.

The package `genai-prices` (extra `prices`; MIT) bundles the list prices of some 2,300 models, dated where they changed. It
is imported with the first response that the policy has no price for, and never asks the network.
"""

import re

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
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


_WHOLE: Final = {
    **dict.fromkeys(("prompt_tokens", "input_tokens", "prompt_token_count", "input_token_count"), "input"),
    **dict.fromkeys(("completion_tokens", "output_tokens", "candidates_token_count", "output_token_count"), "output"),
    **dict.fromkeys(("total_tokens", "total_token_count"), "total"),
    # Google counts these beside its input and its output.
    "tool_use_prompt_token_count": "tool_use",
    "thoughts_token_count": "thoughts",
}
"""What a count is of, by its name."""
_PARTS: Final = (
    *(("cache_write_1h", "_1h_"), ("cache_write_5m", "_5m_"), ("", "miss")),
    *(("output_audio", each, "audio") for each in ("output", "completion", "candidates")),
    *(("input_audio", "audio"), ("reasoning", "reasoning")),
    *(("cache_write", "cache", "creat"), ("cache_write", "cache", "write"), ("cached", "cache")),
)
"""What another is of, by the words in its name and in those of the members that it is in: the first that fits."""
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
    numbers = {re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name[1:]).lower(): value for name, value in _numbers(usage)}
    if {"", *_ANSWERS}.intersection(name.partition(".")[0] for name in numbers) or isinstance(usage, list | tuple):
        shown = type(usage).__name__
        raise SessionError(f"`usage` is what a client's answer says was used (`response.usage`), not `{shown}`")
    n: dict[str, int] = defaultdict(int)
    for name, value in numbers.items():
        if "token" in name and _is_count(value):
            of = _WHOLE.get(name) or next((of for of, *words in _PARTS if all(map(name.__contains__, words))), "")
            n[of], count = max(n[of], int(value)), int(value)
            n["extra"] += count if re.match(r"cache_\w+_input_token", name) else 0
    inputs, outputs, total = n["input"] + n["tool_use"], n["output"] + n["thoughts"], n["total"]
    # Anthropic and Bedrock count these beside the input, unless the total says that they are among it.
    if n["extra"] and "prompt_tokens" not in numbers and not 0 < total < inputs + outputs + n["extra"]:
        inputs += n["extra"]
    inputs = max(0, total - outputs) if outputs and not inputs else inputs
    n["cache_write"] = n["cache_write"] or n["cache_write_5m"] + n["cache_write_1h"]
    n["reasoning"] = n["reasoning"] or n["thoughts"]
    parts = {part: n[part] for part in Usage._fields[2:8]}
    # Of a sum, what nobody tells apart (reasoning that the completion leaves out) counts as what costs more.
    return Usage(inputs, max(outputs, total - inputs), **parts, cost=_own_cost(numbers), known=_is_known(numbers))


def _numbers(value: Any, name: str = "", depth: int = 3) -> Iterator[tuple[str, Any]]:
    """
    Returns what *value* tells, each under its name behind those of the members that it is in: `.details.cached_tokens`.
    """
    if isinstance(value, str | bytes | int | float | Decimal):
        yield name, value
    elif isinstance(value, list | tuple):
        # Google's parts by modality.
        for part in value if depth else ():
            yield from _numbers(part, f"{name}.{_members(part).get('modality')}", depth - 1)
    elif depth:
        for key, member in _members(value).items():
            yield from _numbers(member, f"{name}.{key}", depth - 1)


def _members(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "model_dump"):
        return dict(value)
    # Where an object keeps nothing in the open (protocol buffers), its class says what there is.
    names = [name for name in getattr(value, "__dict__", ()) if name[0] != "_"]
    return {name: getattr(value, name, None) for name in names or dir(value) if name[0] != "_"}


def _is_count(value: object) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and 0 <= value <= _MOST  # type: ignore[operator]


def _is_known(numbers: Mapping[str, Any]) -> bool:
    """
    Returns whether a usage says in numbers how much was used. A sum over no request, or over one that nobody measured, does not.
    """
    sums = [value for name, value in numbers.items() if _WHOLE.get(name) in ("input", "output", "total")]
    no_request = not any(sums) and 0 in (numbers.get("requests"), numbers.get("successful_requests"))
    return bool(sums) and all(map(_is_count, sums)) and not no_request and not numbers.get("unmeasured_requests")


def _own_cost(numbers: Mapping[str, Any]) -> int | None:
    """
    Returns the micro-dollars that a usage itself tells, as OpenRouter, Perplexity and LiteLLM write them.
    """
    for usd in map(numbers.get, ("cost", "cost.total_cost", "total_cost")):
        if isinstance(usd, int | float | Decimal) and not isinstance(usd, bool) and 0 <= usd <= _MOST // MICRO:
            return micro_dollars(float(usd))
    return None


def own_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """
    Returns the price of *model*. Returns None if *prices* has none.

    *prices* maps model names or globs to prices; an exact name stands above a glob, then the first glob that matches.
    """
    return prices.get(model) or next((price for name, price in prices.items() if fnmatchcase(model or "", name)), None)


def cost_of(usage: Usage, price: Price) -> int:
    """
    Returns the micro-dollars of one response at *price*.
    """
    usage, plain = usage.fitted(), price.input_mtok
    read, write = (plain if one is None else one for one in (price.cache_read_mtok, price.cache_write_mtok))
    hour = write if price.cache_write_1h_mtok is None else price.cache_write_1h_mtok
    rates = (plain, read, write, hour, price.output_mtok)
    rest, once = usage.input - usage.cached - usage.cache_write, usage.cache_write - usage.cache_write_1h
    tokens = (rest, usage.cached, once, usage.cache_write_1h, usage.output)
    return _whole(sum((Decimal(str(rate)) * n for rate, n in zip(rates, tokens, strict=True)), Decimal(0)))


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
        try:
            priced = listed_price(usage, model, provider, at_ms)
        except Exception as error:  # another's code and data never fail a response that was paid for
            hint = f": {install('prices')}" if isinstance(error, ImportError) else ""
            priced = Priced(None, unknown=f"genai-prices failed: {type(error).__name__}: {error}{hint}")
    if priced.cost is None and usage.cost is not None:
        return Priced(usage.cost, "response")
    if priced.cost is None:
        hint = "; set its price in the policy's `prices:`" if usage.known else ""
        message = f"no price is known for a response of `{model}` ({priced.unknown})"
        warn_once(f"price {model} {usage.known}", "%s, so no cost limit can be held%s", message, hint)
    return priced


def listed_price(usage: Usage, model: str, provider: str | None, at_ms: int) -> Priced:
    """
    Returns the cost of *usage* as listed for the time *at_ms*, or why it is not known. What the list raises is raised.
    """
    from genai_prices import __version__, data_snapshot

    # It remembers what it has looked up.
    snapshot, version = data_snapshot.get_snapshot(), f"genai-prices {__version__}"
    named = provider is not None and "://" not in provider
    # To the list, `litellm` is whoever the name of the model begins with.
    for way in ((provider, None),) if named else ((None, provider), (None, None), ("litellm", None)):
        with suppress(LookupError):
            listed, entry = snapshot.find_provider_model(model, None, *way)
            break
    else:
        return Priced(None, unknown=f"{version} does not list it" + (f" for `{provider}`" if named else ""))
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    name, price = f"{listed.id}/{entry.id}", entry.get_prices(at)
    if (usage.input and price.input_mtok is None) or (usage.output and price.output_mtok is None):
        # It would take these tokens for free because it says nothing of them.
        return Priced(None, unknown=f"{version} does not price `{name}` by the token")
    return Priced(_whole(_usd(usage, listed, entry, at) * MICRO), version, name)


_LISTED: Final = """input_tokens output_tokens cache_read_tokens cache_write_tokens output_reasoning_tokens input_audio_tokens
    output_audio_tokens cache_write_1h_tokens""".split()  # noqa: SIM905
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
