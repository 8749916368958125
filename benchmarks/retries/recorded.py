"""
Simulated sessions as records of the library: real guarded calls whose tools fail as the world says, on its clock.

    python -m benchmarks.retries.recorded records.jsonl --sessions 640 --days 16     # half a minute, 50 MB
"""

import argparse
import itertools
import sys

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from guardrails import Envelope, Policy, Retryable, Tool

from .dataset import ms
from .sessions import MOST_RETRIES, Call, World, stream
from .world import TOOLS


STATUS: Final = {
    "auth": 401,
    "not_found": 404,
    "precondition": 412,
    "rate_limit": 429,
    "server_error": 500,
    "unavailable": 503,
    "validation": 422,
}
"""How a tool tells of a fault, where the exception's class does not."""


class Refused(Exception):
    """
    What the client of a web service raises: a status, and headers.
    """

    def __init__(self, error: str, header: float | None) -> None:
        super().__init__(error.replace("_", " "))
        self.status_code = STATUS[error]
        self.headers = {} if header is None else {"retry-after": f"{header:.0f}"}


def recording(model: str | None = None) -> Policy:
    """
    The simulated tools behind the retryable guard alone, asking the *model* in that file. Its waits have no length: it is the
    simulated agent who decides when to try again.
    """
    guard = Retryable(max_retries=MOST_RETRIES, max_same_error=99, backoff=0.001, max_wait=0.001, model=model)
    return Policy([guard], tools=[Tool(name=tool.name, read_only=not tool.changes_state) for tool in TOOLS])


def play(sessions: Iterable[Sequence[Call]], policy: Policy, records: Path | None = None) -> Iterator[Envelope]:
    """
    Make the calls of *sessions* under *policy*, lines about them going to the file *records*; what the agent is told.
    """
    now = [0.0]
    for calls in sessions:
        now[0] = ms(calls[0].start) / 1000
        with policy.session(f"session-{calls[0].signature}", clock=lambda: now[0], records=records) as session:
            for call in calls:
                now[0] = ms(call.start) / 1000
                yield session.call(call.tool.name, {"task": call.signature}, lambda *_, call=call: _end(now, call))


def _end(now: list[float], call: Call) -> Any:
    now[0] = ms(call.end) / 1000
    match call.error:
        case None:
            return {"done": True}
        case "timeout":
            raise TimeoutError("no answer in time")
        case "connection":
            raise ConnectionResetError("connection reset by peer")
        case error:
            raise Refused(error, call.header)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, help="the file that lines are appended to")
    parser.add_argument("--sessions", type=int, default=640)
    parser.add_argument("--days", type=int, default=16, help="over which they are spread")
    parser.add_argument("--first-day", type=int, default=0, help="days after 2026-01-01")
    parser.add_argument("--model", help="a model file to serve; the lines then say what it saw and said")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    days = range(asked.first_day, asked.first_day + asked.days)
    sessions = itertools.islice(stream(World(asked.seed), days), asked.sessions)
    failed = [envelope.error_type is not None for envelope in play(sessions, recording(asked.model), asked.records)]
    print(f"{len(failed):,} calls in {asked.sessions:,} sessions, {sum(failed):,} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
