"""
An agent with a budget: a stuck model is stopped, and answers with what it has.

Needs the extra `openai`. The model is a script on this machine; give `OpenAI()` your key for a real one.
"""

import sys

from guardrails import Budget, Duplicates, Policy
from guardrails.core.values.usage import Price
from guardrails.integrations.openai import run
from guardrails.testing.scripted_openai import Body, Calls, Reply, ScriptedOpenAI, Text, call


try:
    from openai import OpenAI
except ImportError:
    sys.exit('this program needs `openai`: pip install "toolcall-guardrails[openai]"')


def search_hotels(city: str, max_price: int) -> list[dict[str, object]]:
    """
    Find hotels in a city, up to a price in USD a night.
    """
    return [{"id": "h_1", "city": city, "price": 150}] if max_price >= 150 else []


def model(body: Body, n: int) -> Reply:
    """
    Asks for ever, a dollar more each time, until its tools are off.
    """
    if body.get("tool_choice") == "none" or not body.get("tools"):
        return Text("Hotel h_1 in Kyoto costs 150 USD a night.")
    return Calls(call("search_hotels", {"city": "Kyoto", "max_price": 100 + 10 * n}))


policy = Policy(
    [Budget(max_calls=8, max_cost_usd=0.05), Duplicates()],
    prices={"gpt-5-mini": Price(input_mtok=0.25, output_mtok=2.0)},
)


def main() -> None:
    with (
        ScriptedOpenAI(model) as server,
        OpenAI(base_url=server.base_url, api_key="none") as client,
        policy.session("trip-42") as session,
    ):
        messages = "Find me a hotel in Kyoto."
        result = run(client, session, model="gpt-5-mini", messages=messages, tools=[search_hotels])
        print(result.ended, result.code)
        print(result.answer)
        print(session.ledger.progress)


if __name__ == "__main__":
    main()
