"""
The usage of a model response, and its cost at the caller's own prices.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, NamedTuple

from .errors import SessionError
from .schema import Ge
from .types import micro_dollars


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


class _Form(NamedTuple):
    """
    The names under which a usage of one dialect keeps its figures; `a.b` is `b` in `a`.
    """

    input: tuple[str, ...]
    """Parts, which are summed."""
    output: tuple[str, ...]
    total: str
    cached: tuple[str, ...]
    """Of this and all below the first that counts something is taken."""
    cache_write: tuple[str, ...]
    reasoning: tuple[str, ...]
    input_audio: tuple[str, ...]
    output_audio: tuple[str, ...]
    read_beside: tuple[str, ...]
    """Tokens read from a cache, and written to it, that are not among the input, unless the total says that they are."""
    written_beside: tuple[str, ...]

    @classmethod
    def of(cls, **names: str) -> "_Form":
        parts = {field: tuple(names.get(field, "").split()) for field in cls._fields}
        return cls(**{**parts, "total": names["total"]})  # type: ignore[arg-type]


_FORMS: Final = (
    # chat.completions, LiteLLM, crewai's UsageMetrics, DeepSeek.
    _Form.of(
        input="prompt_tokens",
        output="completion_tokens",
        total="total_tokens",
        cached="prompt_tokens_details.cached_tokens cached_prompt_tokens cache_read_input_tokens prompt_cache_hit_tokens",
        cache_write="prompt_tokens_details.cache_write_tokens prompt_tokens_details.cache_creation_tokens"
        " cache_creation_tokens cache_creation_input_tokens",
        reasoning="completion_tokens_details.reasoning_tokens reasoning_tokens",
        input_audio="prompt_tokens_details.audio_tokens",
        output_audio="completion_tokens_details.audio_tokens",
    ),
    # Responses, openai-agents, Anthropic, LangChain's usage_metadata, pydantic-ai.
    _Form.of(
        input="input_tokens",
        output="output_tokens",
        total="total_tokens",
        cached="input_tokens_details.cached_tokens input_token_details.cache_read input_token_details.cached_tokens"
        " cache_read_tokens",
        cache_write="input_tokens_details.cache_write_tokens input_token_details.cache_creation cache_write_tokens",
        reasoning="output_tokens_details.reasoning_tokens output_token_details.reasoning output_reasoning_tokens",
        input_audio="input_tokens_details.audio_tokens input_token_details.audio input_token_details.audio_tokens"
        " input_audio_tokens",
        output_audio="output_tokens_details.audio_tokens output_token_details.audio output_token_details.audio_tokens"
        " output_audio_tokens",
        read_beside="cache_read_input_tokens",
        written_beside="cache_creation_input_tokens",
    ),
    # Google, as its client's object and as its JSON.
    _Form.of(
        input="prompt_token_count tool_use_prompt_token_count",
        output="candidates_token_count thoughts_token_count",
        total="total_token_count",
        cached="cached_content_token_count",
        reasoning="thoughts_token_count",
        input_audio="prompt_tokens_details.AUDIO",
        output_audio="candidates_tokens_details.AUDIO",
    ),
    _Form.of(
        input="promptTokenCount toolUsePromptTokenCount",
        output="candidatesTokenCount thoughtsTokenCount",
        total="totalTokenCount",
        cached="cachedContentTokenCount",
        reasoning="thoughtsTokenCount",
        input_audio="promptTokensDetails.AUDIO",
        output_audio="candidatesTokensDetails.AUDIO",
    ),
    # Bedrock, strands, the models' usage of the Claude Agent SDK.
    _Form.of(
        input="inputTokens",
        output="outputTokens",
        total="totalTokens",
        read_beside="cacheReadInputTokens",
        written_beside="cacheWriteInputTokens cacheCreationInputTokens",
    ),
    # agent-framework.
    _Form.of(
        input="input_token_count",
        output="output_token_count",
        total="total_token_count",
        reasoning="reasoning_output_token_count",
        read_beside="cache_read_input_token_count",
        written_beside="cache_creation_input_token_count",
    ),
)
_KEPT_5M: Final = ("input_token_details.ephemeral_5m_input_tokens",)
_KEPT_1H: Final = (
    "cache_creation.ephemeral_1h_input_tokens",
    "input_token_details.ephemeral_1h_input_tokens",
    "prompt_tokens_details.cache_creation_token_details.ephemeral_1h_input_tokens",
)
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
    form = _form_of(usage)
    cost, hour = _cost(usage), _first(usage, _KEPT_1H)
    if form is None:
        return Usage(0, 0, cost=cost)
    asked, said, total = _sum(usage, form.input), _sum(usage, form.output), _count(usage, form.total) or 0
    read, written = _first(usage, form.read_beside), _first(usage, form.written_beside)
    beside = read + written
    if beside and not (total and total < (asked or 0) + (said or 0) + beside):
        asked = (asked or 0) + beside
    # Of a sum, what nobody tells apart (reasoning that the completion leaves out) counts as what costs more.
    output = said if said is not None and asked is None else max(said or 0, total - (asked or 0))
    return Usage(
        max(0, total - output) if asked is None else asked,
        output,
        read or _first(usage, form.cached),
        written or _first(usage, form.cache_write) or _first(usage, _KEPT_5M) + hour,
        _first(usage, form.reasoning),
        input_audio=_first(usage, form.input_audio),
        output_audio=_first(usage, form.output_audio),
        cache_write_1h=hour,
        cost=cost,
    )


def tells(usage: object) -> bool:
    """
    Returns whether *usage* says how many tokens were used. A response that does not say it in numbers was not free.
    """
    if isinstance(usage, Usage):
        return True
    form = _form_of(usage)
    if form is None or _get(usage, "unmeasured_requests"):
        return _cost(usage) is not None
    said = [value for name in (*form.input, *form.output, form.total) if (value := _get(usage, name)) is not None]
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
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def _form_of(usage: object) -> _Form | None:
    """
    Returns the first form that *usage* says a part of, else the one of which it says the total, or None.
    """
    for form in _FORMS:
        if any(_get(usage, name) is not None for name in (*form.input, *form.output)):
            return form
    return next((form for form in _FORMS if _get(usage, form.total) is not None), None)


def _sum(usage: object, names: tuple[str, ...]) -> int | None:
    """
    Returns the tokens of all *names*. Returns None if none of them says a number.
    """
    told = [count for name in names if (count := _count(usage, name)) is not None]
    return sum(told) if told else None


def _first(usage: object, paths: tuple[str, ...]) -> int:
    """
    Returns the first number above 0 at one of *paths*.
    """
    for path in paths:
        name, dot, inner = path.partition(".")
        source = _get(usage, name) if dot else usage
        if isinstance(source, list):
            of_kind = [one for one in source if _get(one, "modality") == inner]
            found = sum(_first(one, ("token_count", "tokenCount")) for one in of_kind)
        else:
            found = _first(source, (inner,)) if dot else _count(source, name) or 0
        if found:
            return found
    return 0


def _cost(usage: object) -> int | None:
    """
    Returns the micro-dollars that *usage* itself tells, if it does.
    """
    for path in _COSTS:
        name, dot, inner = path.partition(".")
        value = _get(_get(usage, name), inner) if dot else _get(usage, name)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and 0 <= value <= _MOST // 10**6:
            return micro_dollars(float(value))
    return None


def _count(source: object, name: str) -> int | None:
    value = _get(source, name)
    return int(value) if _is_count(value) else None


def _is_count(value: object) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and 0 <= value <= _MOST  # type: ignore[operator]
