"""
One agent run twice through the real openai client: without guards and with them.
"""

import json
import time

from copy import copy
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from guardrails.agent.endpoint import client_of
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import MICRO
from guardrails.core.values.usage import Usage, price_of
from guardrails.integrations.openai import run
from guardrails.policy.policy import Policy
from guardrails.sinks import OnRecord, Sink
from guardrails.stores.memory import MemoryStore
from guardrails.testing.scripted_openai import ScriptedOpenAI

from .client import scripted_client
from .stuck_agent import MODEL, PRICE, HotelSite, messages, stuck
from .unguarded import run_unguarded


if TYPE_CHECKING:
    from openai import OpenAI

MAX_REQUESTS: Final = 50
"""Requests after which the demo itself stops a run."""


@dataclass(frozen=True, slots=True)
class Figures:
    """
    The figures of one run, and its end.
    """

    requests: int
    executions: int
    tokens: int
    cost_usd: float | None
    """Of model and tools; None: nobody knows the model's price."""
    seconds: float
    ended: Literal["answered", "forced", "digest", "stopped"]
    """As in `LoopResult`; `stopped`: by the demo, without an answer."""
    code: str | None
    answer: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    The two runs, and what the model read in the guarded one.
    """

    model: str
    policy: str
    usd_per_mtok: tuple[float, float] | None
    """Of input and output; None: nobody knows."""
    unguarded: Figures
    guarded: Figures
    read: tuple[str, ...]
    """The tool messages of the guarded run, in order."""

    def to_dict(self) -> dict[str, Any]:
        """
        The same for another program.
        """
        return {**asdict(self), "read": [parsed(text) for text in self.read]}


def compare(
    policy: Policy,
    *,
    model: str | None = None,
    base_url: str | None = None,
    max_requests: int = MAX_REQUESTS,
    records: Sink | None = None,
) -> Comparison:
    """
    Run the stuck agent on the scripted server, or *model* at *base_url* on the same question and tool.

    *policy* guards the second run; its prices count for both. Raises DemoError or AgentError if no client can be made, or one fails.
    """
    if model is not None:
        with client_of(base_url, "the demo") as client:
            return _compare(client, policy, model, max_requests, records)
    priced = copy(policy)
    priced.prices = {MODEL: PRICE, **policy.prices}
    with ScriptedOpenAI(stuck) as server, scripted_client(server) as client:
        return _compare(client, priced, MODEL, max_requests, records)


def _compare(client: "OpenAI", policy: Policy, model: str, max_requests: int, records: Sink | None) -> Comparison:
    unguarded = _unguarded(client, policy, model, max_requests)
    guarded, read = _guarded(client, policy, model, max_requests, records)
    return Comparison(model, policy.name, _usd_per_mtok(client, policy, model), unguarded, guarded, read)


def _unguarded(client: "OpenAI", policy: Policy, model: str, max_requests: int) -> Figures:
    site = HotelSite()
    started = time.perf_counter()
    done = run_unguarded(
        client,
        model=model,
        messages=messages(),
        tools=[Tool.of(site.search_hotels).openai()],
        functions={"search_hotels": site.search_hotels},
        max_requests=max_requests,
    )
    seconds = time.perf_counter() - started
    cost = _cost(done.usage, client, policy, model)
    tools = site.searches * policy.chain.plan("search_hotels").cost
    return Figures(
        requests=done.requests,
        executions=site.searches,
        tokens=done.usage.total,
        cost_usd=None if cost is None else (cost + tools) / MICRO,
        seconds=round(seconds, 3),
        ended="stopped" if done.answer is None else "answered",
        code=None,
        answer=done.answer,
    )


def _guarded(
    client: "OpenAI", policy: Policy, model: str, max_requests: int, records: Sink | None
) -> tuple[Figures, tuple[str, ...]]:
    site = HotelSite()
    tokens = 0

    def see(record: Any) -> None:
        nonlocal tokens
        if record["event"] == "charge":
            tokens += record["tokens"]
        if records is not None:
            records.put(record, 500)

    with policy.session("demo", store=MemoryStore(), records=OnRecord(see)) as session:
        started = time.perf_counter()
        done = run(
            client,
            session,
            model=model,
            messages=messages(),
            tools=[site.search_hotels],
            max_tool_iterations=max_requests,
        )
        seconds = time.perf_counter() - started
        figures = Figures(
            requests=done.requests,
            executions=site.searches,
            tokens=tokens,
            cost_usd=None if session.ledger.unpriced else session.ledger.cost_usd,
            seconds=round(seconds, 3),
            ended=done.ended,
            code=done.code,
            answer=done.answer,
        )
    return figures, tuple(message["content"] for message in done.messages if message["role"] == "tool")


def _usd_per_mtok(client: "OpenAI", policy: Policy, model: str) -> tuple[float, float] | None:
    # A few tokens only: some prices rise with the length of the input.
    few = 10_000
    read, written = (_cost(used, client, policy, model) for used in (Usage(few, 0), Usage(0, few)))
    return None if read is None or written is None else (read / few, written / few)


def _cost(usage: Usage, client: "OpenAI", policy: Policy, model: str) -> int | None:
    return price_of(usage, model, policy.prices, str(client.base_url), round(time.time() * 1000)).cost


def parsed(text: str) -> Any:
    """
    Returns the value that *text* says in JSON; *text* itself if it is no JSON.
    """
    try:
        return json.loads(text)
    except ValueError:
        return text
