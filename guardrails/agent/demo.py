"""
The demo: a stuck agent, run twice through the real openai client, without guards and with them.

The agent is a script: a model that repeats a search which finds nothing, and the site that it searches.
"""

from collections import Counter
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from guardrails.core.values.errors import LoopLimitExceeded, needs
from guardrails.core.values.usage import Price
from guardrails.integrations.openai import run
from guardrails.policy.policy import Policy
from guardrails.sinks import MemorySink
from guardrails.stores.memory import MemoryStore
from guardrails.testing.scripted_openai import Body, Calls, Reply, ScriptedOpenAI, Text, call


if TYPE_CHECKING:
    from openai import OpenAI

MODEL: Final = "demo-model"
USD_PER_MTOK: Final = (1.25, 10.0)
"""Of input and output; made up, of the order of what hosted models cost."""
QUESTION: Final = "Find a hotel in Shibuya, Tokyo, for at most $150 a night, from 1 to 3 December."
SEARCH: Final = {"destination": "Shibuya, Tokyo", "max_price": 150, "check_in": "2026-12-01", "check_out": "2026-12-03"}
ANSWER: Final = (
    "I found no hotel in Shibuya for at most $150 a night from 1 to 3 December. "
    "Would a higher price do, or a district nearby?"
)


def stuck(body: Body, n: int) -> Reply:
    """
    Returns the model's reply: the same search again after any result, until it has no tools left.
    """
    if body.get("tool_choice") == "none" or not body.get("tools"):
        return Text(ANSWER)
    return Calls(call("search_hotels", SEARCH))


@dataclass(frozen=True, slots=True)
class Figures:
    """
    The figures of one run, and its end.
    """

    requests: int
    executions: int
    tokens: int
    cost_usd: float
    """Of model and tools."""
    ended: Literal["answered", "forced", "digest", "stopped"] = "stopped"
    """As in `LoopResult`; `stopped`: by the demo, without an answer."""
    code: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    The two runs, and what the model read in the guarded one.
    """

    policy: str
    unguarded: Figures
    guarded: Figures
    read: tuple[str, ...]
    """The tool messages of the guarded run, in order."""
    usd_per_mtok: tuple[float, float] = USD_PER_MTOK


def compare(policy: Policy, *, max_requests: int = 50) -> Comparison:
    """
    Run the stuck agent twice, each time for *max_requests* at most; *policy* guards the second run. Raises MissingExtra if openai is not installed.
    """
    with needs("openai", "the demo"):
        import openai
    priced = copy(policy)
    priced.prices = {**policy.prices, MODEL: Price(input_mtok=USD_PER_MTOK[0], output_mtok=USD_PER_MTOK[1])}
    rules = [replace(rule, guards={}) for rule in policy.chain.rules]
    bare = Policy(rules=rules, prices=priced.prices, envelope="quiet")
    http = openai.DefaultHttpxClient(transport=ScriptedOpenAI(stuck).transport)
    with openai.OpenAI(base_url="http://scripted/v1", api_key="-", max_retries=0, http_client=http) as client:
        unguarded, _ = _run(client, bare, max_tool_iterations=max_requests, on_limit="raise")
        guarded, read = _run(client, priced, max_tool_iterations=max_requests)
    return Comparison(policy.name, unguarded, guarded, read)


def _run(client: "OpenAI", policy: Policy, **limit: Any) -> tuple[Figures, tuple[str, ...]]:
    """
    Returns the figures of a run, and the tool messages that its model read.
    """
    sink = MemorySink()
    chat: list[Any] = [{"role": "system", "content": "You are a travel agent. Use the tools."}]
    chat.append({"role": "user", "content": QUESTION})

    def search_hotels(destination: str, max_price: int, check_in: str, check_out: str) -> list[dict[str, Any]]:
        """
        Find free hotel rooms; prices are in USD a night, dates are written 2026-12-31.
        """
        return []

    end: tuple[Any, ...] = ()
    with policy.session("demo", store=MemoryStore(), records=sink) as session, suppress(LoopLimitExceeded):
        done = run(client, session, model=MODEL, messages=chat, tools=[search_hotels], **limit)
        end = (done.ended, done.code, done.answer)
    counts = Counter(record["event"] for record in sink.records)
    tokens = sum(record["tokens"] for record in sink.records if record["event"] == "charge")
    figures = Figures(counts["request"], counts["settle"], tokens, session.ledger.cost_usd, *end)
    return figures, tuple(message["content"] for message in chat if message["role"] == "tool")
