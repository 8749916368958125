"""
One agent run twice through the real openai client: without guards and with them.
"""

import json
import time

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from guardrails.agent.endpoint import client_of, imported
from guardrails.core.chain import Chain
from guardrails.core.values.errors import GuardrailsError, LoopLimitExceeded
from guardrails.core.values.usage import Usage, price_of
from guardrails.integrations.openai import run
from guardrails.policy.policy import Policy
from guardrails.sinks import OnRecord, Sink
from guardrails.stores.memory import MemoryStore
from guardrails.testing.scripted_openai import ScriptedOpenAI

from .stuck_agent import MODEL, PRICE, HotelSite, messages, stuck


if TYPE_CHECKING:
    from openai import OpenAI

MAX_REQUESTS: Final = 50
"""Requests after which the demo itself stops a run."""


class DemoError(GuardrailsError):
    """
    The demo cannot run; says what it needs.
    """


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
    with ScriptedOpenAI(stuck) as server, _scripted(server) as client:
        return _compare(client, priced, MODEL, max_requests, records)


def _compare(client: "OpenAI", policy: Policy, model: str, max_requests: int, records: Sink | None) -> Comparison:
    # A few tokens only: some prices rise with the length of the input.
    few, place, now = 10_000, str(client.base_url), round(time.time() * 1000)
    prices = [price_of(usage, model, policy.prices, place, now).cost for usage in (Usage(few, 0), Usage(0, few))]
    read, written = (None if price is None else price / few for price in prices)
    unguarded, _ = _figures(client, policy, model, max_requests, None, guarded=False)
    guarded, texts = _figures(client, policy, model, max_requests, records, guarded=True)
    known = None if read is None or written is None else (read, written)
    return Comparison(model, policy.name, known, unguarded, guarded, texts)


def _figures(
    client: "OpenAI", policy: Policy, model: str, max_requests: int, records: Sink | None, *, guarded: bool
) -> tuple[Figures, tuple[str, ...]]:
    """
    Returns the figures of a run, and the tool messages that its model read.
    """
    site, counts, chat = HotelSite(), Counter[str](), messages()

    def see(record: Any) -> None:
        counts[record["event"]] += 1
        counts["tokens"] += record["tokens"] if record["event"] == "charge" else 0
        if records is not None:
            records.put(record, 500)

    with policy.session("demo", store=MemoryStore(), records=OnRecord(see)) as session:
        if not guarded:
            session.ledger.lay(_without_guards)
        given: dict[str, Any] = {"model": model, "messages": chat, "tools": [site.search_hotels]}
        given |= {"max_tool_iterations": max_requests, "on_limit": "force" if guarded else "raise"}
        started = time.perf_counter()
        ended, code, answer = "stopped", None, None
        try:
            done = run(client, session, **given)
            ended, code, answer = done.ended, done.code, done.answer
        except LoopLimitExceeded:
            pass
        seconds = round(time.perf_counter() - started, 3)
        cost = None if session.ledger.unpriced else session.ledger.cost_usd
    figures = Figures(counts["request"], site.searches, counts["tokens"], cost, seconds, ended, code, answer)  # type: ignore[arg-type]
    return figures, tuple(message["content"] for message in chat if message["role"] == "tool")


def _without_guards(chain: Chain) -> Chain:
    made = chain.with_guards((), [replace(rule, guards={}) for rule in chain.rules])
    made.form = "quiet"
    return made


@contextmanager
def _scripted(server: ScriptedOpenAI) -> Iterator["OpenAI"]:
    """
    A client of the scripted *server*. Raises MissingExtra if openai is not installed.
    """
    openai = imported("the demo")
    # The server is on loopback: no proxy of the environment stands between, and no certificates are needed.
    http = openai.DefaultHttpxClient(trust_env=False, verify=False)
    with openai.OpenAI(base_url=server.base_url, api_key="-", max_retries=0, http_client=http) as client:
        try:
            yield client
        except openai.OpenAIError as error:
            raise DemoError(f"the scripted server refused: {error}") from error


def parsed(text: str) -> Any:
    """
    Returns the value that *text* says in JSON; *text* itself if it is no JSON.
    """
    try:
        return json.loads(text)
    except ValueError:
        return text
