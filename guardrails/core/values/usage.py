"""
The usage of a model response, and its cost: at the policy's own prices, else at those of `genai-prices`, else unknown.

The package `genai-prices` (extra `prices`; MIT) bundles the list prices of some 2,300 models, dated where they changed. It
is imported with the first response that the policy has no price for, and never asks the network.
"""

import re

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Any, Final, NamedTuple

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

    @property
    def free(self) -> bool:
        """
        Whether any response costs nothing, for any usage.
        """
        cache = self.cache_read_mtok or self.cache_write_mtok or self.cache_write_1h_mtok
        return not (self.input_mtok or self.output_mtok or cache)


_SIDES: Final = (
    # chat.completions, LiteLLM, crewai's UsageMetrics, DeepSeek.
    (("prompt_tokens",), ("completion_tokens",)),
    # Responses, openai-agents, Anthropic, LangChain's usage_metadata, pydantic-ai, Bedrock, strands, the Claude Agent SDK.
    (("input_tokens",), ("output_tokens",)),
    # Google, as its client's object and as its JSON.
    (("prompt_token_count", "tool_use_prompt_token_count"), ("candidates_token_count", "thoughts_token_count")),
    # agent-framework.
    (("input_token_count",), ("output_token_count",)),
)
"""The parts of the input, and of the output, by dialect. Each name may be written `camelCase` too; `a.b` is `b` in `a`."""
_TOTAL: Final = ("total_tokens", "total_token_count")
_READ: Final = ("cache_read_input_tokens", "cache_read_input_token_count")
_WRITTEN: Final = ("cache_creation_input_tokens", "cache_write_input_tokens", "cache_creation_input_token_count")
"""Tokens read from a cache, and written to it. They are not among the input, unless the total says that they are, or it is a *prompt*."""
_KEPT_1H: Final = (
    "cache_creation.ephemeral_1h_input_tokens",
    "input_token_details.ephemeral_1h_input_tokens",
    "prompt_tokens_details.cache_creation_token_details.ephemeral_1h_input_tokens",
)
_KEPT_5M: Final = "input_token_details.ephemeral_5m_input_tokens"
_PARTS: Final = {
    "cached": f"""{" ".join(_READ)} prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens
        input_token_details.cache_read input_token_details.cached_tokens cached_prompt_tokens cache_read_tokens
        prompt_cache_hit_tokens cached_content_token_count""",
    "cache_write": f"""{" ".join(_WRITTEN)} prompt_tokens_details.cache_write_tokens
        prompt_tokens_details.cache_creation_tokens input_tokens_details.cache_write_tokens
        input_token_details.cache_creation cache_creation_tokens cache_write_tokens""",
    "reasoning": """completion_tokens_details.reasoning_tokens output_tokens_details.reasoning_tokens
        output_token_details.reasoning reasoning_tokens output_reasoning_tokens reasoning_output_token_count
        thoughts_token_count""",
    "input_audio": """prompt_tokens_details.audio_tokens input_tokens_details.audio_tokens input_token_details.audio
        input_token_details.audio_tokens input_audio_tokens prompt_tokens_details.AUDIO""",
    "output_audio": """completion_tokens_details.audio_tokens output_tokens_details.audio_tokens output_token_details.audio
        output_token_details.audio_tokens output_audio_tokens candidates_tokens_details.AUDIO""",
}
"""Where the parts of both are, of which the first that counts something is taken."""
_COSTS: Final = ("cost", "cost.total_cost", "total_cost")
"""Where a response tells its own cost, in USD: OpenRouter, Perplexity, LiteLLM."""
_ANSWERS: Final = ("usage", "usage_metadata", "usage_details")
"""Members that answers have, and no usage."""
_REQUESTS: Final = ("requests", "successful_requests")
"""How many requests a sum is of: one of none says nothing."""


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

    @property
    def total(self) -> int:
        return self.input + self.output

    @property
    def recorded(self) -> dict[str, int]:
        """
        The usage as the record of a charge tells it.
        """
        return {"tokens": self.total, **{f"{name}_tokens": getattr(self, name) for name in self._fields[:7]}}


def read_usage(usage: object) -> Usage:
    """
    Returns the usage of a model response as a client or a framework says it, an object or a mapping; None used nothing.

    It is that of chat.completions, Responses, Anthropic, Google, Bedrock, LiteLLM, LangChain, pydantic-ai, openai-agents,
    agent-framework, strands or crewai. Raises SessionError for what cannot be one: text, a number, a list, or the answer itself.
    """
    if usage is None:
        return Usage(0, 0)
    if isinstance(usage, Usage):
        return usage
    answer = any(_get(usage, name) is not None for name in _ANSWERS)
    if answer or isinstance(usage, (str, bytes, int, float, list, tuple)):
        shown = type(usage).__name__
        raise SessionError(f"`usage` is what a client's answer says was used (`response.usage`), not `{shown}`")
    inputs, outputs = _sides(usage)
    asked, said, total = _sum(usage, inputs), _sum(usage, outputs), _first(usage, _TOTAL)
    beside = 0 if inputs == _SIDES[0][0] else _first(usage, _READ) + _first(usage, _WRITTEN)
    if beside and not (total and total < (asked or 0) + (said or 0) + beside):
        asked = (asked or 0) + beside
    # Of a sum, what nobody tells apart (reasoning that the completion leaves out) counts as what costs more.
    output = said if said is not None and asked is None else max(said or 0, total - (asked or 0))
    parts, hour = {name: _first(usage, paths.split()) for name, paths in _PARTS.items()}, _first(usage, _KEPT_1H)
    parts["cache_write"] = parts["cache_write"] or _first(usage, (_KEPT_5M,)) + hour
    whole = max(0, total - output) if asked is None else asked
    return Usage(whole, output, **parts, cache_write_1h=hour, cost=_cost(usage))


def tells(usage: object) -> bool:
    """
    Returns whether *usage* says how many tokens were used. A response that does not say it in numbers was not free.
    """
    if isinstance(usage, Usage):
        return True
    inputs, outputs = _sides(usage)
    said = [value for name in (*inputs, *outputs, *_TOTAL) if (value := _get(usage, name)) is not None]
    if not said or _get(usage, "unmeasured_requests"):
        return _cost(usage) is not None
    if not any(said) and any(_get(usage, name) == 0 for name in _REQUESTS):
        return False
    return all(map(_is_count, said))


def cost_of(usage: Usage, model: str, prices: Mapping[str, Price]) -> int | None:
    """
    Returns the micro-dollars of one response at the *prices* that `own_price` reads. Returns None if no price is known
    for *model*.
    """
    price = own_price(model, prices)
    if price is None:
        return None
    cached = min(usage.cached, usage.input)
    written = min(usage.cache_write, usage.input - cached)
    hour = min(usage.cache_write_1h, written)
    write = price.input_mtok if price.cache_write_mtok is None else price.cache_write_mtok
    parts = (
        (price.input_mtok, usage.input - cached - written),
        (price.input_mtok if price.cache_read_mtok is None else price.cache_read_mtok, cached),
        (write, written - hour),
        (write if price.cache_write_1h_mtok is None else price.cache_write_1h_mtok, hour),
        (price.output_mtok, usage.output),
    )
    exact = sum((Decimal(str(each)) * tokens for each, tokens in parts), Decimal(0))
    return int(exact.to_integral_value(ROUND_HALF_EVEN))


def own_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """
    Returns the price of *model*. Returns None if *prices* has none.

    *prices* maps model names or globs to prices; an exact name stands above a glob, then the first glob that matches.
    """
    return prices.get(model) or next((price for name, price in prices.items() if fnmatchcase(model, name)), None)


def _get(source: object, name: str) -> Any:
    if source is None:
        return None
    if isinstance(source, Mapping):
        return source[name] if name in source else source.get(_camel(name))
    value = getattr(source, name, None)
    return getattr(source, _camel(name), None) if value is None else value


@cache
def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _sides(usage: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    Returns the names of the parts of the input and of the output in the first dialect in which *usage* says one of them.
    """
    return next(
        (side for side in _SIDES if any(_get(usage, name) is not None for name in (*side[0], *side[1]))), ((), ())
    )


def _sum(usage: object, names: tuple[str, ...]) -> int | None:
    """
    Returns the tokens of all *names*. Returns None if none of them says a number.
    """
    told = [count for name in names if (count := _count(usage, name)) is not None]
    return sum(told) if told else None


def _first(usage: object, paths: Iterable[str]) -> int:
    """
    Returns the first number above 0 at one of *paths*.
    """
    for path in paths:
        found: Any = usage
        for name in path.split("."):
            if isinstance(found, list):
                found = sum(_count(one, "token_count") or 0 for one in found if _get(one, "modality") == name)
            else:
                found = _get(found, name)
        if found and _is_count(found):
            return int(found)
    return 0


def _cost(usage: object) -> int | None:
    """
    Returns the micro-dollars that *usage* itself tells, if it does.
    """
    for path in _COSTS:
        name, _, inner = path.partition(".")
        value = _get(_get(usage, name), inner) if inner else _get(usage, name)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and 0 <= value <= _MOST // 10**6:
            return micro_dollars(float(value))
    return None


def _count(source: object, name: str) -> int | None:
    value = _get(source, name)
    return int(value) if _is_count(value) else None


def _is_count(value: object) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and 0 <= value <= _MOST  # type: ignore[operator]


INSTALL: Final = f"install the extra: {install('prices')}"


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
    untold: bool = False
    """The response did not say what it used."""

    @property
    def cost_usd(self) -> float | None:
        return None if self.cost is None else self.cost / MICRO

    @property
    def recorded(self) -> dict[str, object]:
        """
        The fields that the record of a charge has of it.
        """
        return {"cost": self.cost, "priced_by": self.by, "priced_as": self.model}


_Listed = tuple[Any, Any, str]
"""A model as `genai-prices` lists it: its provider, itself, and the version of the list."""


def listed_price(usage: Usage, model: str, provider: str | None, at_ms: int) -> Priced:
    """
    Returns the cost of *usage* as listed for the time *at_ms*, or why it is not known. Raises nothing.
    """
    try:
        from genai_prices import data_snapshot
    except ImportError as error:
        lacks = error.name == "genai_prices"
        return Priced(None, unknown=INSTALL if lacks else f"genai-prices cannot be imported: {error}")
    try:
        # Whoever runs its `UpdatePrices` has another list from then on. It remembers what it has looked up.
        listed = _look_up(data_snapshot.get_snapshot(), model, provider)
        return Priced(None, unknown=listed) if isinstance(listed, str) else _listed_cost(usage, listed, at_ms)
    except Exception as error:  # noqa: BLE001  another's code and data never fail a response that was paid for
        return Priced(None, unknown=f"genai-prices failed: {type(error).__name__}: {error}")


def price_of(usage: Usage | None, model: str, own: Mapping[str, Price], provider: str | None, at_ms: int) -> Priced:
    """
    Returns the cost of *usage* (None: the response did not say) at the *own* prices of a policy, else at the listed
    ones.

    The *provider* is an id, for example `openai` or `azure`, or the URL of the endpoint. If the URL belongs to no known
    provider, the name of the *model* alone decides. The time *at_ms* matters because prices change. If the price is
    unknown, the log says so once for each model.
    """
    if usage is None:
        price = own_price(model, own)
        if price is not None and price.free:
            return Priced(0, "policy")
        warn_once(
            f"usage {model}",
            "a response of %s did not say what it used: it is counted as unpriced, so no cost limit can be held",
            _told(model),
        )
        return Priced(None, unknown="the response did not say what it used", untold=True)
    cost = cost_of(usage, model, own)
    if cost is not None:
        return Priced(cost, "policy")
    priced = listed_price(usage, model, provider, at_ms)
    if priced.cost is None and usage.cost is not None:
        return Priced(usage.cost, "response")
    if priced.cost is None:
        warn_once(
            f"price {model}",
            "no price is known for %s (%s): its responses are counted as unpriced, so no cost limit can be held; "
            "set its price in the policy's `prices:`",
            _told(model),
            priced.unknown,
        )
    return priced


def _told(model: str) -> str:
    return f"`{model}`" if model else "a model without a name"


def public(provider: str | None) -> str | None:
    """
    Returns *provider* for a record: of a URL no user, no password and no query, which may be keys.
    """
    if provider is None or "://" not in provider:
        return provider
    scheme, _, rest = provider.partition("://")
    place, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"


def _look_up(snapshot: Any, model: str, provider: str | None) -> _Listed | str:
    from genai_prices import __version__

    version = f"genai-prices {__version__}"
    if snapshot.from_auto_update:
        version += f" updated {snapshot.timestamp:%Y-%m-%dT%H:%M}"
    by_url = provider is not None and "://" in provider
    ways: list[tuple[str, str | None, str | None]] = [
        (model, None if by_url else provider, provider if by_url else None)
    ]
    if by_url:
        ways.append((model, None, None))
    if (provider is None or by_url) and (prefixed := re.fullmatch(r"([\w-]+)/(.+)", model)):
        ways.append((prefixed[2], prefixed[1], None))
    for name, provider_id, url in ways:
        try:
            found, info = snapshot.find_provider_model(name, None, provider_id, url)
        except LookupError:
            continue
        return found, info, version
    return f"{version} does not list it" + ("" if provider is None or by_url else f" for `{provider}`")


def _listed_cost(usage: Usage, listed: _Listed, at_ms: int) -> Priced:
    provider, model, version = listed
    # A price is known with any clock.
    at = datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms >= 0 else datetime.max.replace(tzinfo=UTC)
    name, price = f"{provider.id}/{model.id}", model.get_prices(at)
    if (usage.input and price.input_mtok is None) or (usage.output and price.output_mtok is None):
        # It would take these tokens for free because it says nothing of them.
        return Priced(None, unknown=f"{version} does not price `{name}` by the token")
    exact = _full(usage, provider, model, at) * MICRO
    return Priced(int(exact.to_integral_value(ROUND_HALF_EVEN)), version, name)


def _full(usage: Usage, provider: Any, model: Any, at: datetime) -> Decimal:
    """
    USD by the list's own rules. Tokens that it cannot tell apart (cached audio, say) count as the dearer ones.
    """
    from genai_prices import Usage as Counts

    cached = min(usage.cached, usage.input)
    counts = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": cached,
        "cache_write_tokens": min(usage.cache_write, usage.input - cached),
        "cache_write_1h_tokens": min(usage.cache_write_1h, usage.cache_write, usage.input - cached),
        "output_reasoning_tokens": min(usage.reasoning, usage.output),
        "input_audio_tokens": min(usage.input_audio, usage.input),
        "output_audio_tokens": min(usage.output_audio, usage.output),
    }
    given = {name: count for name, count in counts.items() if count}
    for left_out in (
        (),
        ("cache_write_1h_tokens",),
        ("cache_write_1h_tokens", "cache_read_tokens"),
        ("cache_write_1h_tokens", "cache_read_tokens", "cache_write_tokens", "output_reasoning_tokens"),
    ):
        kept = {name: count for name, count in given.items() if name not in left_out}
        try:
            made = model.calc_price(Counts(**kept), provider, genai_request_timestamp=at)
        except ValueError:
            continue
        return Decimal(made.total_price)
    raise LookupError(f"no price for {', '.join(given)} together")
