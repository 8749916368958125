"""
What model responses cost.
"""

from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from typing import Any

import genai_prices

from genai_prices import data_snapshot
from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, MemorySink, Policy, Price
from guardrails.core.values.types import NO_TIME
from guardrails.core.values.usage import Priced, Usage, listed_price, price_of
from tests.tables import table


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


@table(
    ("model", "provider", "cost", "name"),
    [
        *(("gpt-5-mini", provider, 450_000, "openai/gpt-5-mini") for provider in (None, "openai", API, LOCAL)),
        ("openai/gpt-5-mini", None, 450_000, "openai/gpt-5-mini"),
        ("gpt-5-mini", "azure", 450_000, "azure/gpt-5-mini"),
    ],
)
def test_a_model_is_priced_as_it_is_listed_whoever_serves_it(
    model: str, provider: str | None, cost: int, name: str
) -> None:
    assert price_of(TEXT, model, {}, provider, NOW) == Priced(cost, LISTED, name)
    assert price_of(TEXT, model, {}, provider, NO_TIME).cost == cost, "a clock that fails leaves no price unknown"
    assert price_of(TEXT, model, {"*gpt-5-*": Price(input_mtok=1.0)}, provider, NOW) == Priced(1_000_000, "policy")


@table(
    ("model", "usage", "micro"),
    [
        # 0.25 a million in, 2 out, 0.025 in from the cache.
        ("gpt-5-mini", Usage(1_000, 100, cached=800), 50 + 20 + 200),
        ("gpt-5-mini", Usage(1_000, 100, cached=5_000), 25 + 200),
        ("gpt-5-mini", Usage(1_000, 100, reasoning=90), 250 + 200),
        ("gpt-5-mini", Usage(1_000, 100, cache_write=500), 250 + 200),
        ("gpt-5-mini", Usage(0, 0), 0),
        # Text 4 and 16, audio 32 and 64 a million.
        ("gpt-realtime", Usage(1_000, 100), 5_600),
        ("gpt-realtime", Usage(1_000, 100, input_audio=1_000, output_audio=100), 38_400),
        # Nobody says how many of the cached tokens are audio: none of them counts as cached.
        ("gpt-realtime", Usage(1_000, 100, cached=600, input_audio=500), 500 * 4 + 500 * 32 + 1_600),
    ],
)
def test_what_is_among_the_tokens_is_priced_as_it_is_listed_and_never_too_low(
    model: str, usage: Usage, micro: int
) -> None:
    assert price_of(usage, model, {}, None, NOW).cost == micro


@table(
    ("model", "provider", "why"),
    [
        ("no-such-model", None, "does not list it"),
        ("no-such-model", "openai", "does not list it for `openai`"),
        ("gpt-5-mini", "no-such-provider", "does not list it for `no-such-provider`"),
        ("no/such/model", "https://models.example", "does not list it"),
        ("", None, "does not list it"),
        ("whisper-1", "openai", "by the token"),
    ],
)
def test_an_unknown_model_is_unknown_and_never_free(model: str, provider: str | None, why: str) -> None:
    priced = price_of(TEXT, model, {}, provider, NOW)
    assert (priced.cost, priced.by, priced.cost_usd) == (None, None, None)
    assert why in priced.unknown


class Broken:
    from_auto_update = False

    def find_provider_model(self, *_: object) -> None:
        raise RuntimeError("torn")


def test_a_list_that_was_replaced_is_looked_up_afresh_and_named_and_one_that_is_broken_leaves_the_price_unknown() -> (
    None
):
    bundled = data_snapshot.get_snapshot()
    newer = data_snapshot.DataSnapshot(bundled.providers, from_auto_update=True)
    priced = []
    try:
        for snapshot in (None, newer, Broken()):
            data_snapshot.set_custom_snapshot(snapshot)  # type: ignore[arg-type]
            priced.append(listed_price(TEXT, "gpt-5-mini", None, NOW))
    finally:
        data_snapshot.set_custom_snapshot(None)
    assert [one.by for one in priced] == [LISTED, f"{LISTED} updated {newer.timestamp:%Y-%m-%dT%H:%M}", None]
    assert priced[2].unknown == "genai-prices failed: RuntimeError: torn"


def test_a_price_is_that_of_its_day() -> None:
    # A replay prices a response as of the time when it came.
    dated = [
        (provider, model, entry.constraint.start_date)
        for provider, model in models()
        for entry in (model.prices if isinstance(model.prices, list) else ())
        if hasattr(entry.constraint, "start_date")
    ]
    changed = 0
    for provider, model, day in dated:
        noon = int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp() * 1000)
        costs = [listed_price(TEXT, model.id, provider.id, at).cost for at in (noon - 2 * 86_400_000, noon)]
        changed += costs[0] != costs[1]
    assert changed > 10


@given(
    index=st.integers(0, 10**6),
    read=st.integers(0, 10**6),
    written=st.integers(0, 10**5),
    cached=st.integers(0, 10**6),
    reasoning=st.integers(0, 10**5),
)
def test_a_response_costs_what_the_list_itself_says(
    index: int, read: int, written: int, cached: int, reasoning: int
) -> None:
    provider, model = models()[index % len(models())]
    usage = Usage(read, written, min(cached, read), reasoning=min(reasoning, written))
    at = datetime.fromtimestamp(NOW / 1000, UTC)
    priced = listed_price(usage, model.id, provider.id, NOW)
    counts = genai_prices.Usage(
        input_tokens=read,
        output_tokens=written,
        cache_read_tokens=usage.cached,
        output_reasoning_tokens=usage.reasoning,
    )
    exact = model.calc_price(counts, provider, genai_request_timestamp=at).total_price * 1_000_000
    assert priced.cost == int(Decimal(exact).to_integral_value(ROUND_HALF_EVEN))


# As a session tells it


def test_charge_says_what_a_response_cost_and_the_record_says_by_which_list(clock: Any) -> None:
    records = MemorySink()
    session = Policy([Budget(max_cost_usd=1.0)]).session("s", records=records, clock=clock)
    usage = {
        "prompt_tokens": 1_000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 800},
        "completion_tokens_details": {"reasoning_tokens": 60},
    }
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


@table(
    ("given", "recorded"),
    [
        (None, None),
        ("azure", "azure"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1/"),
        ("https://me:key@models.example:8443/v1?api-key=s#x", "https://models.example:8443/v1"),
        ("https://a@b@host", "https://host"),
        ("http://host?key=a/b", "http://host"),
    ],
)
def test_no_key_of_an_endpoint_is_recorded(given: str | None, recorded: str | None, clock: Any) -> None:
    records = MemorySink()
    session = Policy().session("s", records=records, clock=clock)
    session.charge(model="m", usage={"prompt_tokens": 1}, provider=given)
    session.close()
    assert [line["provider"] for line in records.records if line["event"] == "charge"] == [recorded]
