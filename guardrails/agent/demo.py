"""
The demo: a stuck agent, run twice through the real openai client, without guards and with them; and recorded chats, played
through a policy.

The agent is a script: a model that repeats a search which finds nothing, and the site that it searches.
"""

from collections import Counter, defaultdict
from copy import copy
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from guardrails.core.decision import Decision
from guardrails.core.envelope import Envelope
from guardrails.core.text.plain_json import to_json
from guardrails.core.values.errors import LoopLimitExceeded, needs
from guardrails.core.values.usage import Price
from guardrails.integrations.openai import run
from guardrails.offline.replay.lacking import NEEDS
from guardrails.offline.replay.lens import without
from guardrails.offline.transcripts import RecordedCall, Report, open_calls
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


# The stuck agent


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


def compare(policy: Policy, *, max_requests: int = MAX_REQUESTS, records: Sink | None = None) -> Comparison:
    """
    Run the stuck agent twice; *policy* guards the second run. Raises MissingExtra if openai is not installed.
    """
    with needs("openai", "the demo"):
        import openai
    priced = copy(policy)
    priced.prices = {**policy.prices, MODEL: Price(input_mtok=USD_PER_MTOK[0], output_mtok=USD_PER_MTOK[1])}
    rules = [replace(rule, guards={}) for rule in policy.chain.rules]
    bare = Policy(rules=rules, prices=priced.prices, envelope="quiet")
    http = openai.DefaultHttpxClient(transport=ScriptedOpenAI(stuck).transport)
    with openai.OpenAI(base_url="http://scripted/v1", api_key="-", max_retries=0, http_client=http) as client:
        unguarded, _ = _run(client, bare, None, max_tool_iterations=max_requests, on_limit="raise")
        guarded, read = _run(client, priced, records, max_tool_iterations=max_requests)
    return Comparison(policy.name, unguarded, guarded, read)


def _run(client: "OpenAI", policy: Policy, records: Sink | None, **limit: Any) -> tuple[Figures, tuple[str, ...]]:
    """
    Returns the figures of a run, and the tool messages that its model read.
    """
    counts: Counter[str] = Counter()
    chat: list[Any] = [
        {"role": "system", "content": "You are a travel agent. Use the tools."},
        {"role": "user", "content": QUESTION},
    ]

    def search_hotels(destination: str, max_price: int, check_in: str, check_out: str) -> list[dict[str, Any]]:
        """
        Find free hotel rooms; prices are in USD a night, dates are written 2026-12-31.
        """
        counts["executions"] += 1
        return []

    def see(record: Any) -> None:
        counts[record["event"]] += 1
        counts["tokens"] += record["tokens"] if record["event"] == "charge" else 0
        if records is not None:
            records.put(record, 500)

    end: tuple[Any, ...] = ()
    with policy.session("demo", store=MemoryStore(), records=OnRecord(see)) as session:
        try:
            done = run(client, session, model=MODEL, messages=chat, tools=[search_hotels], **limit)
            end = (done.ended, done.code, done.answer)
        except LoopLimitExceeded:
            pass
        cost = session.ledger.cost_usd
    figures = Figures(counts["request"], counts["executions"], counts["tokens"], cost, *end)
    return figures, tuple(message["content"] for message in chat if message["role"] == "tool")


# Recorded chats

NOT_JUDGED: Final = "rates, growth, elapsed time, tokens and model cost: recorded chats have no times and no usage"
TIMED: Final = frozenset((name, setting) for name, setting, need in NEEDS if need in ("times", "starts", "soon"))
"""The guards and settings that judge by time."""
STEP_S: Final = 3_600.0
"""Between two turns; longer than any wait that a policy asks for."""
LACKING: Final = "the recording has no result for this call"


def play(policy: Policy, file: str, report: Report, records: Sink | None = None) -> list[dict[str, Any]]:
    """
    Play the chats of *file* through *policy*, each in a session of its own until that is exhausted by its `code`: each call
    is decided as if it were made now, and one that may run gets its recorded result. Remarks go into *report*.

    Raises OSError if it cannot be read, ReaderError if its format is broken.
    """
    chats: dict[str, list[RecordedCall]] = defaultdict(list)
    for made in open_calls(file, report):
        chats[made.session_id].append(made)
    return [_played(policy, Path(name).name, calls, records) for name, calls in chats.items()]


def _played(policy: Policy, name: str, calls: list[RecordedCall], records: Sink | None) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    decisions: list[Decision] = []
    now_s = 1_800_000_000.0
    given: dict[str, Any] = {"store": MemoryStore(), "records": records, "on_decision": decisions.append}
    with policy.session("chat", clock=lambda: now_s, **given) as session:
        session.ledger.lay(lambda chain: without(chain, TIMED))
        for _, made in groupby(calls, lambda call: call.turn):
            if session.exhausted:
                break
            turn, now_s = list(made), now_s + STEP_S
            session.begin_turn(calls=len(turn))
            for one in turn:
                result = one.result if one.has_result else Envelope.error("other", LACKING)
                envelope = session.call(one.tool, one.arguments, lambda *_, result=result: result, id=one.id)
                denial, row = (
                    decisions[-1].denial,
                    dict[str, Any](tool=one.tool, arguments=to_json(one.arguments).decode()),
                )
                row |= {"recorded": one.result if one.has_result else None, "read": envelope.to_json()}
                refusal = {} if denial is None else {"code": denial.code, "reason": denial.message}
                rows.append({**row, "decision": "denied" if refusal else "ran", **refusal})
        return {"name": name, "recorded_calls": len(calls), "calls": rows, "code": session.exhausted}
