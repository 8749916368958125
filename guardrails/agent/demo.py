"""
The demo: a stuck agent, run twice through the real openai client, without guards and with them.

The agent is a script: a model that repeats a search which finds nothing, and the site that it searches.
"""

from collections import Counter
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from guardrails.core.chain import Chain
from guardrails.core.values.errors import LoopLimitExceeded, needs
from guardrails.core.values.usage import Price
from guardrails.integrations.openai import run
from guardrails.policy.policy import Policy
from guardrails.sinks import OnRecord, Sink
from guardrails.stores.memory import MemoryStore
from guardrails.testing.scripted_openai import Body, Calls, Reply, ScriptedOpenAI, Text, call


if TYPE_CHECKING:
    from openai import OpenAI

MAX_REQUESTS: Final = 50
"""Requests after which the demo itself stops a run."""
MODEL: Final = "demo-model"
USD_PER_MTOK: Final = (1.25, 10.0)
"""Of input and output; made up, of the order of what hosted models cost."""
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
    ended: Literal["answered", "forced", "digest", "stopped"]
    """As in `LoopResult`; `stopped`: by the demo, without an answer."""
    code: str | None
    answer: str | None


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


def compare(policy: Policy, *, max_requests: int = MAX_REQUESTS, records: Sink | None = None) -> Comparison:
    """
    Run the stuck agent twice; *policy* guards the second run. Raises MissingExtra if openai is not installed.
    """
    with needs("openai", "the demo"):
        import openai
    priced = copy(policy)
    priced.prices = {**policy.prices, MODEL: Price(input_mtok=USD_PER_MTOK[0], output_mtok=USD_PER_MTOK[1])}
    http = openai.DefaultHttpxClient(transport=ScriptedOpenAI(stuck).transport)
    with openai.OpenAI(base_url="http://scripted/v1", api_key="-", max_retries=0, http_client=http) as client:
        unguarded, _ = _figures(client, priced, max_requests, None, guarded=False)
        guarded, read = _figures(client, priced, max_requests, records, guarded=True)
    return Comparison(policy.name, unguarded, guarded, read)


def _figures(
    client: "OpenAI", policy: Policy, max_requests: int, records: Sink | None, *, guarded: bool
) -> tuple[Figures, tuple[str, ...]]:
    """
    Returns the figures of a run, and the tool messages that its model read.
    """
    site, counts = HotelSite(), Counter[str]()
    chat = [
        {"role": "system", "content": "You are a travel agent. Use the tools."},
        {"role": "user", "content": QUESTION},
    ]

    def see(record: Any) -> None:
        counts[record["event"]] += 1
        counts["tokens"] += record["tokens"] if record["event"] == "charge" else 0
        if records is not None:
            records.put(record, 500)

    with policy.session("demo", store=MemoryStore(), records=OnRecord(see)) as session:
        if not guarded:
            session.ledger.lay(_without_guards)
        given: dict[str, Any] = {"model": MODEL, "messages": chat, "tools": [site.search_hotels]}
        given |= {"max_tool_iterations": max_requests, "on_limit": "force" if guarded else "raise"}
        ended, code, answer = "stopped", None, None
        try:
            done = run(client, session, **given)
            ended, code, answer = done.ended, done.code, done.answer
        except LoopLimitExceeded:
            pass
        cost = session.ledger.cost_usd
    figures = Figures(counts["request"], site.searches, counts["tokens"], cost, ended, code, answer)  # type: ignore[arg-type]
    return figures, tuple(message["content"] for message in chat if message["role"] == "tool")


def _without_guards(chain: Chain) -> Chain:
    made = chain.with_guards((), [replace(rule, guards={}) for rule in chain.rules])
    made.form = "quiet"
    return made
