"""
What pricing one model response costs, in units of R: it is done once a model turn, never for a call.
"""

from typing import Any

import pytest

from guardrails.core.values.usage import Price, Usage
from guardrails.session.turns.prices import price_of


NOW = 1_790_000_000_000
TEXT = Usage(1_000, 100, 800, reasoning=60)
AUDIO = Usage(1_000, 100, input_audio=500)
OWN = {"mine-*": Price(input_mtok=1.0, output_mtok=2.0)}


@pytest.mark.parametrize(
    ("model", "usage"),
    [("mine-1", TEXT), ("gpt-5-mini", TEXT), ("gpt-realtime", AUDIO), ("no-such-model", TEXT)],
    ids=["the policy's own", "listed, looked up before", "listed, with audio", "unknown, looked up before"],
)
def test_price(measure: Any, model: str, usage: Usage) -> None:
    price_of(usage, model, OWN, None, NOW)

    def block() -> None:
        for _ in range(20):
            price_of(usage, model, OWN, None, NOW)

    measure(block, 20)


def test_price_by_the_lists_own_function(measure: Any) -> None:
    import genai_prices

    def block() -> None:
        counts = genai_prices.Usage(input_tokens=1_000, output_tokens=100, cache_read_tokens=800)
        genai_prices.calc_price(counts, "gpt-5-mini")

    measure(block, 1)
