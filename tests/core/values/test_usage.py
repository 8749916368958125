"""
What a model response used, in the form of each client and framework, and what it costs.
"""

import re

from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import genai_prices
import pytest
import yaml

from genai_prices import data_snapshot
from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, MemorySink, Policy
from guardrails.core.values.usage import Price, Priced, Usage, cost_of, listed_price, own_price, price_of, read_usage
from guardrails.errors import SessionError
from tests.tables import table


CASES = yaml.safe_load(Path(__file__).with_name("usage.yaml").read_text())
FORMS = CASES["forms"]


def used(counts: dict[str, int]) -> Usage:
    told: Any = {"input": 0, "output": 0, **counts}
    return Usage(**told)


def as_object(told: Any) -> Any:
    if isinstance(told, list):
        return [as_object(one) for one in told]
    if not isinstance(told, dict):
        return told
    return SimpleNamespace(**{re.sub("[A-Z]", r"_\g<0>", key).lower(): as_object(value) for key, value in told.items()})


class Buffer:
    """
    An object that tells its counts by attributes of its class alone.
    """

    _kept = FORMS["Responses"]["usage"]
    input_tokens = property(lambda self: self._kept["input_tokens"])
    output_tokens = property(lambda self: self._kept["output_tokens"])
    input_tokens_details = property(lambda self: self._kept["input_tokens_details"])


@table("form", [*FORMS.values(), {**FORMS["Responses"], "usage": Buffer()}])
def test_each_form_is_read_as_a_mapping_and_as_an_object(form: dict[str, Any]) -> None:
    usage = used(form["read"])
    for told in (form["usage"], as_object(form["usage"]), usage):
        assert (read_usage(told), read_usage(told).known) == (usage, True)


@table("case", CASES["sums"])
def test_a_sum_is_read_where_its_parts_are_not_told(case: dict[str, Any]) -> None:
    assert read_usage(case["usage"]) == used(case["read"])


NOTHING = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@table(("usage", "unpriced"), [
    *((usage, 1) for usage in (None, {}, {"prompt_tokens": None}, SimpleNamespace())),
    ({"prompt_tokens": "7", "completion_tokens": float("nan")}, 1), ({"prompt_tokens": "1000", "completion_tokens": 7}, 1),
    ({"prompt_tokens": -5, "completion_tokens": -7}, 1), ({"input_tokens": 10**40, "output_tokens": 0}, 1),
    # A sum of a framework over no request, or over one that nobody measured.
    *(({name: count, **NOTHING}, 1) for name, count in (("requests", 0), ("successful_requests", 0), ("unmeasured_requests", 1))),
    ({"unmeasured_requests": 1, "input_tokens": 70, "output_tokens": 5}, 1), ({"prompt_tokens": 0}, 0), (Usage(0, 0), 0),
])  # fmt: skip
def test_usage_that_says_nothing_or_cannot_be_read_was_not_free(usage: Any, unpriced: int) -> None:
    session = Policy(prices={"m": {"input_mtok": 1.0}}).session("s")
    session.charge(model="m", usage=usage)
    assert session.ledger.unpriced == unpriced


@table("usage", ["12 tokens", 7, True, [{}], (1, 2), SimpleNamespace(usage=as_object(FORMS["Responses"]["usage"]))])
def test_what_cannot_be_usage_is_refused_with_a_hint_before_it_is_priced(usage: Any) -> None:
    session = Policy([]).session("s")
    with pytest.raises(SessionError, match=r"`response\.usage`"):
        session.charge(model="m", usage=usage)
    assert session.ledger.unpriced == 0


counts = st.integers(0, 10**6)


@given(plain=counts, read=counts, written=counts, output=counts, told=st.booleans())
def test_the_cached_counts_in_the_input_or_beside(plain: int, read: int, written: int, output: int, told: bool) -> None:
    whole = plain + read + written + output
    kept = {"cacheReadInputTokens": read, "cacheWriteInputTokens": written, "outputTokens": output}
    beside = {"inputTokens": plain, **kept, **({"totalTokens": whole} if told else {})}
    inside = {"inputTokens": plain + read + written, **kept, "totalTokens": whole}
    assert read_usage(beside) == read_usage(inside) == Usage(plain + read + written, output, read, written)


# Own prices


@table(("usage", "price", "micro"), CASES["own"])
def test_a_price_is_per_million_tokens_in_exact_micro_dollars(usage: Any, price: Any, micro: int) -> None:
    assert cost_of(Usage(*usage), Price(**price)) == micro


def test_an_exact_name_stands_above_a_glob_and_then_the_first_glob_that_matches() -> None:
    names = ("gpt-5*", "gpt-5-mini*", "gpt-5-mini")
    prices = {name: Price(input_mtok=float(n)) for n, name in enumerate(names)}
    found = [own_price(model, prices) for model in ("gpt-5-mini", "gpt-5-mini-2026", "GPT-5", "other")]
    assert found == [prices["gpt-5-mini"], prices["gpt-5*"], None, None]


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_response_with_a_cache_never_costs_more_and_never_less_than_nothing(i: int, o: int, cached: int) -> None:
    price = Price(input_mtok=1.1, output_mtok=3.3, cache_read_mtok=0.11)
    assert 0 <= cost_of(Usage(i, o, cached), price) <= cost_of(Usage(i, o), price)


@table("usage", CASES["an hour"])
def test_what_is_kept_in_a_cache_for_an_hour_has_its_own_price(usage: dict[str, Any]) -> None:
    read = read_usage(usage)
    assert read == Usage(360, 5, 50, cache_write=300, cache_write_1h=200)
    price = Price(input_mtok=3, output_mtok=15, cache_read_mtok=0.3, cache_write_mtok=3.75, cache_write_1h_mtok=6)
    assert cost_of(read, price) == 10 * 3 + 50 * 0.3 + 100 * 3.75 + 200 * 6 + 5 * 15
    assert cost_of(read, Price(input_mtok=3, cache_write_mtok=4)) == 60 * 3 + 300 * 4
    assert cost_of(read, Price(input_mtok=3)) == 360 * 3


@table(("told", "cost", "by"), [
    (0.0123, 12_300, "response"), ({"total_cost": 0.02}, 20_000, "response"), *((odd, None, None) for odd in (-1, True, "0.1")),
])  # fmt: skip
def test_a_response_that_tells_its_own_cost_is_believed_where_no_price_is_known(told: Any, cost: Any, by: Any) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": told}
    with Policy(prices={"known": {"input_mtok": 1, "output_mtok": 1}}).session("s") as session:
        priced = session.charge(model="no-such-model", usage=usage)
        assert (priced.cost, priced.by, session.ledger.unpriced) == (cost, by, cost is None)
        # A price is of tokens: without them the response is believed even where one is known.
        assert session.charge(model="known", usage=usage).cost == 15
        assert session.charge(model="known", usage={"cost": 0}).cost == 0


# Listed prices


NOW = 1_790_000_000_000
LISTED = f"genai-prices {genai_prices.__version__}"
TEXT = Usage(1_000_000, 100_000)
API, LOCAL = "https://api.openai.com/v1/", "http://127.0.0.1:8000/v1"


@cache
def models() -> list[tuple[Any, Any]]:
    """
    Every model that is priced by its tokens and not by the request, and is found by its own name.
    """
    listed = [(provider, model) for provider in data_snapshot.get_snapshot().providers for model in provider.models]
    return [(p, m) for p, m in listed if listed_price(TEXT, m.id, p.id, NOW).model == f"{p.id}/{m.id}"]


@table(("model", "provider", "name"), [
    *(("gpt-5-mini", provider, "openai/gpt-5-mini") for provider in (None, "openai", API, LOCAL)),
    ("openai/gpt-5-mini", None, "openai/gpt-5-mini"), ("gpt-5-mini", "azure", "azure/gpt-5-mini"),
])  # fmt: skip
def test_a_model_is_priced_as_it_is_listed_whoever_serves_it(model: str, provider: str | None, name: str) -> None:
    assert price_of(TEXT, model, {}, provider, NOW) == Priced(450_000, LISTED, name)
    assert price_of(TEXT, model, {"*gpt-5-*": Price(input_mtok=1.0)}, provider, NOW) == Priced(1_000_000, "policy")


@table(("model", "usage", "micro"), CASES["listed"])
def test_what_is_among_the_tokens_is_priced_and_never_too_low(model: str, usage: Any, micro: int) -> None:
    assert price_of(used(usage), model, {}, None, NOW).cost == micro


@table(("model", "provider", "why"), CASES["unknown"])
def test_an_unknown_model_is_unknown_and_never_free(model: str, provider: str | None, why: str) -> None:
    priced = price_of(TEXT, model, {}, provider, NOW)
    assert (priced.cost, priced.by, priced.cost_usd) == (None, None, None)
    assert why in priced.unknown


@given(st.integers(0, 10**6), counts, st.integers(0, 10**5), counts, st.integers(0, 10**5))
def test_a_response_costs_what_the_list_says(index: int, read: int, written: int, cached: int, reasoning: int) -> None:
    provider, model = models()[index % len(models())]
    usage = Usage(read, written, min(cached, read), reasoning=min(reasoning, written))
    told = {"cache_read_tokens": usage.cached, "output_reasoning_tokens": usage.reasoning}
    exact = model.calc_price(
        genai_prices.Usage(input_tokens=read, output_tokens=written, **told),
        provider,
        genai_request_timestamp=datetime.fromtimestamp(NOW / 1000, UTC),
    )
    micro = Decimal(exact.total_price * 1_000_000).to_integral_value(ROUND_HALF_EVEN)
    assert listed_price(usage, model.id, provider.id, NOW).cost == int(micro)


# As a session tells it


def test_charge_says_what_a_response_cost_and_the_record_says_by_which_list(clock: Any) -> None:
    records = MemorySink()
    session = Policy([Budget(max_cost_usd=1.0)]).session("s", records=records, clock=clock)
    details = {"prompt_tokens_details": {"cached_tokens": 800}, "completion_tokens_details": {"reasoning_tokens": 60}}
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100, **details}
    assert session.charge(model="gpt-5-mini", usage=usage, provider="openai").cost == 270
    assert session.charge(model="gpt-5-mini", cost_usd=0.5).by == "caller"
    assert session.charge(model="no-such", usage=usage).cost_usd is None
    assert session.charge(model="gpt-5-mini").unknown == "the response did not say what it used"
    assert (session.ledger.cost_usd, session.ledger.unpriced) == (0.50027, 2)
    session.close()
    first, _, third, _ = [line for line in records.records if line["event"] == "charge"]
    assert (first["priced_by"], first["priced_as"], first["provider"]) == (LISTED, "openai/gpt-5-mini", "openai")
    # All that the price was made of, so that the same version of the list gives it again.
    counted = Usage(*(first[f"{name}_tokens"] for name in Usage._fields[:7]))
    assert price_of(counted, first["model"], {}, first["provider"], first["ts_ms"]).cost == first["cost"] == 270
    assert (third["cost"], third["priced_by"], third["priced_as"]) == (None, None, None)


@table(("given", "recorded"), CASES["providers"])
def test_no_key_of_an_endpoint_is_recorded(given: str | None, recorded: str | None, clock: Any) -> None:
    records = MemorySink()
    session = Policy().session("s", records=records, clock=clock)
    session.charge(model="m", usage={"prompt_tokens": 1}, provider=given)
    session.close()
    assert [line["provider"] for line in records.records if line["event"] == "charge"] == [recorded]
