"""
What a model response used, and what it costs.
"""

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


def as_object(mapping: dict[str, Any]) -> Any:
    return SimpleNamespace(**{k: as_object(v) if isinstance(v, dict) else v for k, v in mapping.items()})


class Buffer:
    """
    An object that tells its counts by attributes of its class alone.
    """

    _kept = RESPONSES
    input_tokens = property(lambda self: self._kept["input_tokens"])
    output_tokens = property(lambda self: self._kept["output_tokens"])
    input_tokens_details = property(lambda self: self._kept["input_tokens_details"])


@table("usage", [CHAT, RESPONSES, as_object(CHAT), as_object(RESPONSES), Buffer(), Usage(1_000, 50, 800)])
def test_usage_is_read_in_both_forms_as_an_object_or_a_mapping(usage: Any) -> None:
    assert read_usage(usage) == Usage(1_000, 50, 800)
    assert read_usage(usage).total == 1_050


@table("wire", ["chat", "responses"])
def test_what_is_among_the_tokens_is_read_too(wire: str) -> None:
    totals, read, written = (
        ({"prompt_tokens": 90, "completion_tokens": 40}, "prompt_tokens_details", "completion_tokens_details")
        if wire == "chat"
        else ({"input_tokens": 90, "output_tokens": 40}, "input_tokens_details", "output_tokens_details")
    )
    usage = totals | {
        read: {"cached_tokens": 50, "cache_write_tokens": 20, "audio_tokens": 9},
        written: {"reasoning_tokens": 30, "audio_tokens": 5},
    }
    assert read_usage(usage) == read_usage(as_object(usage))
    assert read_usage(usage) == Usage(90, 40, 50, cache_write=20, reasoning=30, input_audio=9, output_audio=5)


def test_the_clients_own_usage_object_is_read() -> None:
    from openai.types import CompletionUsage

    usage = CompletionUsage.model_validate(CHAT)
    assert read_usage(usage) == Usage(1_000, 50, 800)


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
        (
            {"prompt_token_count": 9, "candidates_token_count": 20, "thoughts_token_count": 30},
            Usage(9, 50, reasoning=30),
        ),
        # Numbers of JSON that some servers write with a point or an exponent.
        ({"prompt_tokens": 1e8, "completion_tokens": 5.0}, Usage(100_000_000, 5)),
    ],
)
def test_a_sum_is_read_where_its_parts_are_not_told(usage: Any, read: Usage) -> None:
    assert read_usage(usage) == read


@table(
    ("usage", "unpriced"),
    [
        (None, 1),
        ({}, 1),
        ({"prompt_tokens": None}, 1),
        ({"prompt_tokens": "7", "completion_tokens": float("nan")}, 1),
        (SimpleNamespace(), 1),
        ({"prompt_tokens": "1000", "completion_tokens": 7}, 1),
        ({"prompt_tokens": -5, "completion_tokens": -7}, 1),
        ({"input_tokens": 10**40, "output_tokens": 0}, 1),
        ({"prompt_tokens": 0}, 0),
        (Usage(0, 0), 0),
    ],
)
def test_usage_that_says_nothing_or_cannot_be_read_was_not_free(usage: Any, unpriced: int) -> None:
    session = Policy(prices={"m": {"input_mtok": 1.0}}).session("s")
    session.charge(model="m", usage=usage)
    assert (session.ledger.unpriced, session.ledger.cost_usd) == (unpriced, 0.0)


@table("usage", ["12 tokens", 7, True, [CHAT], (1, 2), SimpleNamespace(usage=as_object(CHAT))])
def test_what_cannot_be_usage_is_refused_with_a_hint(usage: Any) -> None:
    with pytest.raises(SessionError, match=r"`response\.usage`"):
        read_usage(usage)


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
