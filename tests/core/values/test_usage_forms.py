"""
The usage that each client and framework says, in its own form.
"""

import re

from types import SimpleNamespace
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Policy, SessionError
from guardrails.core.values.usage import Usage, read_usage
from tests.tables import table


FORMS: dict[str, tuple[dict[str, Any], Usage]] = {
    "anthropic": (
        {
            "input_tokens": 10,
            "cache_creation_input_tokens": 200,
            "cache_read_input_tokens": 700,
            "cache_creation": {"ephemeral_5m_input_tokens": 200},
            "output_tokens": 50,
        },
        Usage(910, 50, 700, 200),
    ),
    "langchain": (
        {
            "input_tokens": 910,
            "output_tokens": 50,
            "total_tokens": 960,
            "input_token_details": {"audio": 5, "cache_read": 700, "cache_creation": 200},
            "output_token_details": {"audio": 6, "reasoning": 30},
        },
        Usage(910, 50, 700, 200, 30, 5, 6),
    ),
    "pydantic-ai": (
        {
            "input_tokens": 910,
            "cache_write_tokens": 200,
            "cache_read_tokens": 700,
            "output_tokens": 50,
            "output_reasoning_tokens": 30,
            "input_audio_tokens": 5,
            "output_audio_tokens": 6,
            "details": {},
        },
        Usage(910, 50, 700, 200, 30, 5, 6),
    ),
    "google": (
        {
            "prompt_token_count": 900,
            "tool_use_prompt_token_count": 10,
            "candidates_token_count": 20,
            "thoughts_token_count": 30,
            "cached_content_token_count": 700,
            "total_token_count": 960,
            "prompt_tokens_details": [
                {"modality": "TEXT", "token_count": 895},
                {"modality": "AUDIO", "token_count": 5},
            ],
        },
        Usage(910, 50, 700, reasoning=30, input_audio=5),
    ),
    "google's JSON": (
        {
            "promptTokenCount": 900,
            "toolUsePromptTokenCount": 10,
            "candidatesTokenCount": 20,
            "thoughtsTokenCount": 30,
            "cachedContentTokenCount": 700,
            "totalTokenCount": 960,
            "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 6}],
        },
        Usage(910, 50, 700, reasoning=30, output_audio=6),
    ),
    "bedrock": (
        {
            "inputTokens": 10,
            "outputTokens": 50,
            "totalTokens": 960,
            "cacheReadInputTokens": 700,
            "cacheWriteInputTokens": 200,
        },
        Usage(910, 50, 700, 200),
    ),
    "a model's usage of the Claude Agent SDK": (
        {"inputTokens": 10, "outputTokens": 50, "cacheReadInputTokens": 700, "cacheCreationInputTokens": 200},
        Usage(910, 50, 700, 200),
    ),
    "agent-framework": (
        {
            "input_token_count": 910,
            "output_token_count": 50,
            "total_token_count": 960,
            "cache_read_input_token_count": 700,
            "reasoning_output_token_count": 30,
        },
        Usage(910, 50, 700, reasoning=30),
    ),
    "crewai": (
        {
            "total_tokens": 960,
            "prompt_tokens": 910,
            "cached_prompt_tokens": 700,
            "completion_tokens": 50,
            "reasoning_tokens": 30,
            "cache_creation_tokens": 200,
            "successful_requests": 1,
        },
        Usage(910, 50, 700, 200, 30),
    ),
    "litellm, of a model of Anthropic": (
        {
            "prompt_tokens": 910,
            "completion_tokens": 50,
            "total_tokens": 960,
            "prompt_tokens_details": {"cached_tokens": 700, "cache_creation_tokens": 200},
            "cache_read_input_tokens": 700,
            "cache_creation_input_tokens": 200,
        },
        Usage(910, 50, 700, 200),
    ),
    "openai-agents": (
        {
            "requests": 1,
            "input_tokens": 910,
            "input_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 200},
            "output_tokens": 50,
            "output_tokens_details": {"reasoning_tokens": 30},
            "total_tokens": 960,
        },
        Usage(910, 50, 700, 200, 30),
    ),
}


def as_object(said: Any) -> Any:
    if isinstance(said, list):
        return [as_object(one) for one in said]
    if not isinstance(said, dict):
        return said
    return SimpleNamespace(**{re.sub("[A-Z]", r"_\g<0>", key).lower(): as_object(value) for key, value in said.items()})


@table("form", FORMS)
def test_each_form_is_read_as_a_mapping_and_as_an_object(form: str) -> None:
    said, usage = FORMS[form]
    assert read_usage(said) == read_usage(as_object(said)) == usage
    assert read_usage(said).known
    assert read_usage(as_object(said)).known


@table(
    "said",
    [
        {"requests": 0, "input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
        {"successful_requests": 0, "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"unmeasured_requests": 1, "input_tokens": 0, "output_tokens": 0},
        {"unmeasured_requests": 1, "input_tokens": 70, "output_tokens": 5},
    ],
)
def test_a_framework_whose_client_said_nothing_says_no_tokens_which_was_not_free(said: dict[str, int]) -> None:
    session = Policy(prices={"m": {"input_mtok": 1.0}}).session("s")
    session.charge(model="m", usage=said)
    assert session.ledger.unpriced == 1


def test_a_request_that_used_nothing_is_told() -> None:
    assert read_usage({"requests": 1, "input_tokens": 0, "output_tokens": 0}).known
    assert read_usage({"total_tokens": 0}).known


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


# The real classes, where they are installed.


def test_openai_agents() -> None:
    agents = pytest.importorskip("agents.usage")
    from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

    usage = agents.Usage(
        requests=1,
        input_tokens=910,
        input_tokens_details=InputTokensDetails(cached_tokens=700, cache_write_tokens=200),
        output_tokens=50,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=30),
        total_tokens=960,
    )
    assert read_usage(usage) == Usage(910, 50, 700, 200, 30)
    assert read_usage(usage).known
    assert not read_usage(agents.Usage()).known


def test_langchain() -> None:
    messages = pytest.importorskip("langchain_core.messages")
    said, usage = FORMS["langchain"]
    message = messages.AIMessage("hi", usage_metadata=said)
    assert read_usage(message.usage_metadata) == usage
    with pytest.raises(SessionError, match=r"`response\.usage`"):
        read_usage(message)


def test_pydantic_ai() -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai.usage")
    told = {key: value for key, value in FORMS["pydantic-ai"][0].items() if key != "details"}
    for made in (pydantic_ai.RequestUsage(**told), pydantic_ai.RunUsage(requests=1, **told)):
        assert read_usage(made) == FORMS["pydantic-ai"][1]
        assert read_usage(made).known
    assert not read_usage(pydantic_ai.RunUsage()).known
    assert not read_usage(pydantic_ai.RequestUsage(unmeasured_requests=1)).known


def test_google() -> None:
    types = pytest.importorskip("google.genai.types")
    said, usage = FORMS["google"]
    assert read_usage(types.GenerateContentResponseUsageMetadata(**said)) == usage
    camel, other = FORMS["google's JSON"]
    assert read_usage(types.GenerateContentResponseUsageMetadata(**camel)) == other
    assert not read_usage(types.GenerateContentResponseUsageMetadata()).known


def test_strands() -> None:
    loop = pytest.importorskip("strands.types.event_loop")
    said, usage = FORMS["bedrock"]
    assert read_usage(loop.Usage(**said)) == usage


def test_agent_framework() -> None:
    framework = pytest.importorskip("agent_framework")
    said, usage = FORMS["agent-framework"]
    assert read_usage(framework.UsageDetails(**said)) == usage


def test_crewai() -> None:
    metrics = pytest.importorskip("crewai.types.usage_metrics")
    said, usage = FORMS["crewai"]
    assert read_usage(metrics.UsageMetrics(**said)) == usage
    assert not read_usage(metrics.UsageMetrics()).known


def test_anthropic() -> None:
    anthropic = pytest.importorskip("anthropic.types")
    said, usage = FORMS["anthropic"]
    assert read_usage(anthropic.Usage.model_validate(said | {"cache_creation": None})) == usage


def test_litellm() -> None:
    litellm = pytest.importorskip("litellm.types.utils")
    said, usage = FORMS["litellm, of a model of Anthropic"]
    assert read_usage(litellm.Usage(**said)) == usage
