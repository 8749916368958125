"""
A stuck agent, as a script: a model that repeats a search which finds nothing, and the site that it searches.
"""

from typing import Any, Final

from guardrails.core.values.usage import Price
from guardrails.testing.scripted_openai import Body, Calls, Delayed, Reply, Text, call


MODEL: Final = "demo-model"
PRICE: Final = Price(input_mtok=1.25, output_mtok=10.0)
"""Made up, of the order of what hosted models cost."""
LATENCY: Final = 0.02
"""Seconds that the scripted model takes to answer; a hosted one takes a hundred times as long."""
QUESTION: Final = "Find a hotel in Shibuya, Tokyo, for at most $150 a night, from 1 to 3 December."
SEARCH: Final = {"destination": "Shibuya, Tokyo", "max_price": 150, "check_in": "2026-12-01", "check_out": "2026-12-03"}
ANSWER: Final = (
    "I found no hotel in Shibuya for at most $150 a night from 1 to 3 December. "
    "Would a higher price do, or a district nearby?"
)


class HotelSite:
    """
    A booking site that is sold out, and counts how often it is asked.
    """

    def __init__(self) -> None:
        self.searches = 0

    def search_hotels(self, destination: str, max_price: int, check_in: str, check_out: str) -> list[dict[str, Any]]:
        """
        Find free hotel rooms; prices are in USD a night, dates are written 2026-12-31.
        """
        self.searches += 1
        return []


def messages() -> list[dict[str, Any]]:
    """
    The conversation at its start.
    """
    return [
        {"role": "system", "content": "You are a travel agent. Use the tools."},
        {"role": "user", "content": QUESTION},
    ]


def stuck(body: Body, n: int) -> Reply:
    """
    Returns the model's reply: the same search again after any result, until it has no tools left.
    """
    if body.get("tool_choice") == "none" or not body.get("tools"):
        return Delayed(Text(ANSWER), LATENCY)
    return Delayed(Calls(call("search_hotels", SEARCH)), LATENCY)
