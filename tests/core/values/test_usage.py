"""
What a model response used, in the form of each client and framework, and what it costs.
"""

import re

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Policy, Price, SessionError
from guardrails.core.values.usage import Usage, cost_of, own_price, read_usage
from tests.tables import table


CHAT = {
    "prompt_tokens": 1_000,
    "completion_tokens": 50,
    "total_tokens": 1_050,
    "prompt_tokens_details": {"cached_tokens": 800, "audio_tokens": 0},
}
RESPONSES = {"input_tokens": 1_000, "output_tokens": 50, "input_tokens_details": {"cached_tokens": 800}}
TOTALS = {"input_tokens": 910, "output_tokens": 50, "total_tokens": 960}
"""The sums of those that follow: 700 tokens came from a cache, 200 went into one, and 30 were thoughts."""
PARTS = {"cache_read_tokens": 700, "cache_write_tokens": 200, "output_reasoning_tokens": 30}
GOOGLE = {"tool_use_prompt_token_count": 10, "candidates_token_count": 20, "thoughts_token_count": 30}
CAMEL = {"toolUsePromptTokenCount": 10, "candidatesTokenCount": 20, "thoughtsTokenCount": 30, "totalTokenCount": 960}
CHAT_TOTALS = {"prompt_tokens": 910, "completion_tokens": 50, "total_tokens": 960}
FORMS: dict[str, tuple[dict[str, Any], Usage]] = {
    "chat.completions": (CHAT, Usage(1_000, 50, 800)),
    "Responses": (RESPONSES, Usage(1_000, 50, 800)),
    "all parts of chat.completions": (
        CHAT_TOTALS
        | {"prompt_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 200, "audio_tokens": 5}}
        | {"completion_tokens_details": {"reasoning_tokens": 30, "audio_tokens": 6}},
        Usage(910, 50, 700, 200, 30, 5, 6),
    ),
    "anthropic": (
        {"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 700}
        | {"cache_creation": {"ephemeral_5m_input_tokens": 200}, "output_tokens": 50},
        Usage(910, 50, 700, 200),
    ),
    "langchain": (
        TOTALS
        | {"input_token_details": {"audio": 5, "cache_read": 700, "cache_creation": 200}}
        | {"output_token_details": {"audio": 6, "reasoning": 30}},
        Usage(910, 50, 700, 200, 30, 5, 6),
    ),
    "pydantic-ai": (
        {"input_tokens": 910, "output_tokens": 50, **PARTS, "input_audio_tokens": 5, "output_audio_tokens": 6},
        Usage(910, 50, 700, 200, 30, 5, 6),
    ),
    "google": (
        {"prompt_token_count": 900, **GOOGLE, "cached_content_token_count": 700, "total_token_count": 960}
        | {
            "prompt_tokens_details": [{"modality": "TEXT", "token_count": 895}, {"modality": "AUDIO", "token_count": 5}]
        },
        Usage(910, 50, 700, reasoning=30, input_audio=5),
    ),
    "google's JSON": (
        {"promptTokenCount": 900, **CAMEL, "cachedContentTokenCount": 700}
        | {"candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 6}]},
        Usage(910, 50, 700, reasoning=30, output_audio=6),
    ),
    "bedrock": (
        {"inputTokens": 10, "outputTokens": 50, "totalTokens": 960}
        | {"cacheReadInputTokens": 700, "cacheWriteInputTokens": 200},
        Usage(910, 50, 700, 200),
    ),
    "a model's usage of the Claude Agent SDK": (
        {"inputTokens": 10, "outputTokens": 50, "cacheReadInputTokens": 700, "cacheCreationInputTokens": 200},
        Usage(910, 50, 700, 200),
    ),
    "agent-framework": (
        {"input_token_count": 910, "output_token_count": 50, "total_token_count": 960}
        | {"cache_read_input_token_count": 700, "reasoning_output_token_count": 30},
        Usage(910, 50, 700, reasoning=30),
    ),
    "crewai": (
        {**CHAT_TOTALS, "cached_prompt_tokens": 700, "reasoning_tokens": 30}
        | {"cache_creation_tokens": 200, "successful_requests": 1},
        Usage(910, 50, 700, 200, 30),
    ),
    "litellm, of a model of Anthropic": (
        {**CHAT_TOTALS, "prompt_tokens_details": {"cached_tokens": 700, "cache_creation_tokens": 200}}
        | {"cache_read_input_tokens": 700, "cache_creation_input_tokens": 200},
        Usage(910, 50, 700, 200),
    ),
    "openai-agents": (
        {"requests": 1, **TOTALS, "input_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 200}}
        | {"output_tokens_details": {"reasoning_tokens": 30}},
        Usage(910, 50, 700, 200, 30),
    ),
}


def as_object(said: Any) -> Any:
    if isinstance(said, list):
        return [as_object(one) for one in said]
    if not isinstance(said, dict):
        return said
    return SimpleNamespace(**{re.sub("[A-Z]", r"_\g<0>", key).lower(): as_object(value) for key, value in said.items()})


class Buffer:
    """
    An object that tells its counts by attributes of its class alone.
    """

    _kept = RESPONSES
    input_tokens = property(lambda self: self._kept["input_tokens"])
    output_tokens = property(lambda self: self._kept["output_tokens"])
    input_tokens_details = property(lambda self: self._kept["input_tokens_details"])


@table("form", FORMS)
def test_each_form_is_read_as_a_mapping_and_as_an_object(form: str) -> None:
    said, usage = FORMS[form]
    assert read_usage(said) == read_usage(as_object(said)) == read_usage(usage) == usage
    assert read_usage(said).known
    assert read_usage(as_object(said)).known
    assert read_usage(Buffer()) == FORMS["Responses"][1]


@pytest.mark.parametrize(
    ("module", "name", "form"),
    [
        ("openai.types", "CompletionUsage", "chat.completions"),
        ("openai.types.responses", "ResponseUsage", "openai-agents"),
        ("agents.usage", "Usage", "openai-agents"),
        ("langchain_core.messages.ai", "UsageMetadata", "langchain"),
        ("pydantic_ai.usage", "RequestUsage", "pydantic-ai"),
        ("pydantic_ai.usage", "RunUsage", "pydantic-ai"),
        ("google.genai.types", "GenerateContentResponseUsageMetadata", "google"),
        ("google.genai.types", "GenerateContentResponseUsageMetadata", "google's JSON"),
        ("strands.types.event_loop", "Usage", "bedrock"),
        ("agent_framework", "UsageDetails", "agent-framework"),
        ("crewai.types.usage_metrics", "UsageMetrics", "crewai"),
        ("anthropic.types", "Usage", "anthropic"),
        ("litellm.types.utils", "Usage", "litellm, of a model of Anthropic"),
    ],
)
def test_the_real_class_is_read_where_it_is_installed(module: str, name: str, form: str) -> None:
    pytest.importorskip(module)
    kind, (said, usage) = getattr(import_module(module), name), FORMS[form]
    if name == "RunUsage":
        said = {"requests": 1, **said}
        assert not read_usage(kind()).known
    made = kind.model_validate(said | {"cache_creation": None}) if form == "anthropic" else kind(**said)
    assert read_usage(made) == usage
    assert read_usage(made).known


@table(
    ("usage", "read"),
    [
        ({"total_tokens": 100}, Usage(0, 100)),
        ({"prompt_tokens": 30, "total_tokens": 100}, Usage(30, 70)),
        ({"output_tokens": 30, "total_tokens": 100}, Usage(70, 30)),
        ({"prompt_tokens": 30, "completion_tokens": 0, "total_tokens": 100}, Usage(30, 70)),
        # Reasoning beside the completion.
        ({"prompt_tokens": 100, "completion_tokens": 110, "total_tokens": 510}, Usage(100, 410)),
        ({"prompt_tokens": 30, "total_tokens": 0}, Usage(30, 0)),
        # No count of tokens.
        ({"prompt_tokens": 9, "completion_tokens": 2, "client": {"cache": 7, "audio": 5}}, Usage(9, 2)),
        # Google's thoughts, which are beside its output.
        ({"prompt_token_count": 9, **GOOGLE}, Usage(19, 50, reasoning=30)),
        # Numbers of JSON that some servers write with a point or an exponent.
        ({"prompt_tokens": 1e8, "completion_tokens": 5.0}, Usage(100_000_000, 5)),
        ({"requests": 1, "input_tokens": 0, "output_tokens": 0}, Usage(0, 0)),
        ({"total_tokens": 0}, Usage(0, 0)),
    ],
)
def test_a_sum_is_read_where_its_parts_are_not_told(usage: Any, read: Usage) -> None:
    assert read_usage(usage) == read


NOTHING = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@table(
    ("usage", "unpriced"),
    [
        *((usage, 1) for usage in (None, {}, {"prompt_tokens": None}, SimpleNamespace())),
        ({"prompt_tokens": "7", "completion_tokens": float("nan")}, 1),
        ({"prompt_tokens": "1000", "completion_tokens": 7}, 1),
        ({"prompt_tokens": -5, "completion_tokens": -7}, 1),
        ({"input_tokens": 10**40, "output_tokens": 0}, 1),
        # A sum of a framework over no request, or over one that nobody measured.
        ({"requests": 0, **NOTHING}, 1),
        ({"successful_requests": 0, **NOTHING}, 1),
        ({"unmeasured_requests": 1, **NOTHING}, 1),
        ({"unmeasured_requests": 1, "input_tokens": 70, "output_tokens": 5}, 1),
        ({"prompt_tokens": 0}, 0),
        (Usage(0, 0), 0),
    ],
)
def test_usage_that_says_nothing_or_cannot_be_read_was_not_free(usage: Any, unpriced: int) -> None:
    session = Policy(prices={"m": {"input_mtok": 1.0}}).session("s")
    session.charge(model="m", usage=usage)
    assert session.ledger.unpriced == unpriced


@table("usage", ["12 tokens", 7, True, [CHAT], (1, 2), SimpleNamespace(usage=as_object(CHAT))])
def test_what_cannot_be_usage_is_refused_with_a_hint_before_it_is_priced(usage: Any) -> None:
    session = Policy([]).session("s")
    with pytest.raises(SessionError, match=r"`response\.usage`"):
        session.charge(model="m", usage=usage)
    assert session.ledger.unpriced == 0


counts = st.integers(0, 10**6)


@given(plain=counts, read=counts, written=counts, output=counts, told=st.booleans())
def test_the_total_is_right_whether_the_cached_is_told_in_the_input_or_beside(
    plain: int, read: int, written: int, output: int, told: bool
) -> None:
    whole = plain + read + written + output
    cache = {"cacheReadInputTokens": read, "cacheWriteInputTokens": written}
    beside = {"inputTokens": plain, "outputTokens": output, **cache, **({"totalTokens": whole} if told else {})}
    inside = {"inputTokens": plain + read + written, "outputTokens": output, **cache, "totalTokens": whole}
    assert read_usage(beside) == read_usage(inside) == Usage(plain + read + written, output, read, written)


@table(
    ("usage", "price", "micro"),
    [
        (Usage(1_000, 50), Price(input_mtok=1.25, output_mtok=10.0), 1_750),
        (Usage(1_000, 50, 800), Price(input_mtok=1.25, output_mtok=10.0), 1_750),
        (Usage(1_000, 50, 800), Price(input_mtok=1.25, output_mtok=10.0, cache_read_mtok=0.125), 850),
        (Usage(1_000, 0, 5_000), Price(input_mtok=1.0, cache_read_mtok=0.0), 0),
        (Usage(3, 0), Price(input_mtok=0.5), 2),
        (Usage(1, 0), Price(input_mtok=0.5), 0),
        (Usage(0, 0), Price(input_mtok=9.0), 0),
        (Usage(436_000_000, 0), Price(input_mtok=0.1), 43_600_000),
    ],
)
def test_a_price_is_per_million_tokens_in_exact_micro_dollars(usage: Usage, price: Price, micro: int) -> None:
    assert cost_of(usage, price) == micro


def test_an_exact_name_stands_above_a_glob_and_then_the_first_glob_that_matches() -> None:
    prices = {
        "gpt-5*": Price(input_mtok=1.0),
        "gpt-5-mini*": Price(input_mtok=2.0),
        "gpt-5-mini": Price(input_mtok=3.0),
    }
    found = [own_price(model, prices) for model in ("gpt-5-mini", "gpt-5-mini-2026", "GPT-5", "other")]
    assert found == [prices["gpt-5-mini"], prices["gpt-5*"], None, None]


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_response_with_a_cache_never_costs_more_and_never_less_than_nothing(i: int, o: int, cached: int) -> None:
    price = Price(input_mtok=1.1, output_mtok=3.3, cache_read_mtok=0.11)
    assert 0 <= cost_of(Usage(i, o, cached), price) <= cost_of(Usage(i, o), price)


CACHES = {
    "input_tokens": 10,
    "output_tokens": 5,
    "cache_read_input_tokens": 50,
    "cache_creation_input_tokens": 300,
    "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
}
KEPT = {"cache_read": 50, "ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}
NESTED = {"cache_creation_tokens": 300, "cache_creation_token_details": {"ephemeral_1h_input_tokens": 200}}


@table(
    "usage",
    [
        CACHES,
        {"input_tokens": 360, "output_tokens": 5, "input_token_details": KEPT},
        {"prompt_tokens": 360, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 50, **NESTED}},
    ],
)
def test_what_is_kept_in_a_cache_for_an_hour_has_its_own_price(usage: dict[str, Any]) -> None:
    used = read_usage(usage)
    assert used == Usage(360, 5, 50, cache_write=300, cache_write_1h=200)
    price = Price(input_mtok=3, output_mtok=15, cache_read_mtok=0.3, cache_write_mtok=3.75, cache_write_1h_mtok=6)
    assert cost_of(used, price) == 10 * 3 + 50 * 0.3 + 100 * 3.75 + 200 * 6 + 5 * 15
    assert cost_of(used, Price(input_mtok=3, cache_write_mtok=4)) == 60 * 3 + 300 * 4
    assert cost_of(used, Price(input_mtok=3)) == 360 * 3


@table(
    ("usage", "cost", "by"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.0123}, 12_300, "response"),
        ({"prompt_tokens": 10, "completion_tokens": 5, "cost": {"total_cost": 0.02}}, 20_000, "response"),
        ({"cost": 0}, 0, "response"),
        ({"prompt_tokens": 10, "completion_tokens": 5, "cost": -1}, None, None),
        ({"prompt_tokens": 10, "completion_tokens": 5, "cost": True}, None, None),
        ({"prompt_tokens": 10, "completion_tokens": 5, "cost": "0.1"}, None, None),
    ],
)
def test_a_response_that_tells_its_own_cost_is_believed_where_no_price_is_known(
    usage: dict[str, Any], cost: int | None, by: str | None
) -> None:
    with Policy(prices={"known": {"input_mtok": 1, "output_mtok": 1}}).session("s") as session:
        priced = session.charge(model="no-such-model", usage=usage)
        assert (priced.cost, priced.by) == (cost, by)
        assert session.ledger.unpriced == (cost is None)
        # A price is of tokens: without them the response is believed even where one is known.
        assert session.charge(model="known", usage=usage).cost == (15 if usage.get("prompt_tokens") else cost)
