"""
What the whole chain costs a call: decided, run, settled, recorded, and written as the text that the model reads.

The tool does nothing and gives back a dict of 0.4 KB. The policy is `default` with more calls than it allows; records go
to a file of JSON lines, whose writer is let finish between the rounds and not while they are timed.
"""

import asyncio
import itertools

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import within
from guardrails import (
    Budget,
    Denials,
    Duplicates,
    Growth,
    Policy,
    Rate,
    Retryable,
    Streak,
    Summary,
    Tool,
    ToolFilter,
    Validation,
)
from guardrails.session.session import Session
from guardrails.sinks import JsonLines


CALLS = 50
"""In one round: few enough to end before the writer of records begins."""
MANY = 10**9
RESULT = {
    "results": [{"id": f"h_{n}", "name": f"Hotel {n}", "price": 100 + n, "stars": 4, "free": True} for n in range(7)],
    "total": 7,
}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "page": {"type": "integer"}}}

Open = Callable[..., Session]

pages = itertools.count()


def search(tool: str, arguments: Any) -> Any:
    return RESULT


async def asearch(tool: str, arguments: Any) -> Any:
    return RESULT


def fail(tool: str, arguments: Any) -> Any:
    raise TimeoutError("Supplier API did not respond within 5 seconds.")


@pytest.fixture
def sink(tmp_path: Path) -> Any:
    with JsonLines(tmp_path / "records.jsonl") as made:
        yield made
    assert made.dropped == made.failed == 0


def new_calls(session: Session, execute: Callable[[str, Any], Any] = search) -> Callable[[], None]:
    """
    Calls that differ, each with its text for the model.
    """

    def run() -> None:
        for page in itertools.islice(pages, CALLS):
            arguments = {"city": "Shibuya", "max_price": 150, "page": page}
            session.call("search_hotels", arguments, execute).to_json()

    return run


def test_bare_call(measure: Any) -> None:
    arguments = {"city": "Shibuya", "max_price": 150, "page": 1}

    def run() -> None:
        for _ in range(CALLS):
            search("search_hotels", arguments)

    measure(run, CALLS)


def test_chain_sync(measure: Any, default: Policy, sink: JsonLines) -> None:
    session = default.session("sync", records=sink)
    measure(new_calls(session), CALLS, before=sink.flush, note="floor 18 R, goal 10.5 R")


def test_chain_async(measure: Any, default: Policy, sink: JsonLines, loop: asyncio.AbstractEventLoop) -> None:
    session = default.session("async", records=sink)

    async def run() -> None:
        for page in itertools.islice(pages, CALLS):
            arguments = {"city": "Shibuya", "max_price": 150, "page": page}
            (await session.acall("search_hotels", arguments, asearch)).to_json()

    measure(
        lambda: loop.run_until_complete(within(run)),
        CALLS,
        before=sink.flush,
        awaited=True,
        note="floor 20 R, goal 12 R",
    )


def test_chain_denied(measure: Any, default: Policy, sink: JsonLines) -> None:
    session = default.session("denied", records=sink)
    arguments = {"city": "Shibuya", "max_price": 150}
    for _ in range(2):
        session.call("search_hotels", arguments, search)
    assert session.call("search_hotels", arguments, search).code == "duplicates.evidence"

    def run() -> None:
        for _ in range(CALLS):
            session.call("search_hotels", arguments, search).to_json()

    measure(run, CALLS, before=sink.flush, note="floor 12 R, goal 7 R")


def test_chain_invalid(measure: Any, default: Policy, sink: JsonLines) -> None:
    session = default.session("invalid", records=sink, tools=[Tool(name="search_hotels", parameters=PARAMETERS)])
    arguments = {"city": "Shibuya", "page": "first"}
    assert session.call("search_hotels", arguments, search).code == "validation.arguments"

    def run() -> None:
        for _ in range(CALLS):
            session.call("search_hotels", arguments, search).to_json()

    measure(run, CALLS, before=sink.flush)


def test_chain_failing_tool(measure: Any, default: Policy, sink: JsonLines) -> None:
    session = default.session("failing", records=sink)
    measure(new_calls(session, fail), CALLS, before=sink.flush)


def test_ten_guards_without_records(measure: Any) -> None:
    policy = Policy(
        [
            ToolFilter(deny=("rm_*",)),
            Validation(),
            Budget(max_calls=MANY, max_cost_usd=1e6, max_tokens=MANY, max_elapsed=86_400.0),
            Growth(max_calls_per_second=MANY),
            Rate(max_calls_per_minute=MANY),
            Streak(max_same=MANY),
            Denials(),
            Duplicates(window=20, rule="evidence"),
            Retryable(),
            Summary(),
        ]
    )
    measure(new_calls(policy.session("ten")), CALLS)


@pytest.mark.parametrize("earlier", [100, 100_000])
def test_after_calls(measure: Any, benchmark: Any, earlier: int, default: Policy, sink: JsonLines) -> None:
    """
    A call costs the same however many came before it.
    """
    session = default.session("old")
    for page in range(earlier if benchmark.enabled else 100):
        session.call("search_hotels", {"city": "Shibuya", "page": -page}, search)
    recorded = default.session("old", records=sink)

    def before() -> None:
        sink.flush()
        if earlier <= CALLS:
            # A young session does not stay young while it is timed.
            session.forget()
            for page in range(earlier):
                session.call("search_hotels", {"city": "Shibuya", "page": -page}, search)

    measure(new_calls(recorded), CALLS, before=before)
