"""
A week of records, made under the policy `observe`, teaches when a failure is worth a retry. Needs the extra `train`.
The week is made here, on a clock that is set; your own records stand in its place.
"""

import random
import subprocess
import sys
import tempfile

from pathlib import Path
from types import SimpleNamespace

from guardrails import Envelope, JsonLines, Policy, Retryable, Session


world = SimpleNamespace(now=1_800_000_000.0, busy_until=0.0)


class TooManyRequestsError(Exception):
    status_code = 429


def rates(tool: str, arguments: object) -> str:
    if world.now < world.busy_until:
        raise TooManyRequestsError("too many requests")
    return "1 EUR is 1.08 USD"


def ask(session: Session, busy_s: float, waits: tuple[float, ...] = ()) -> Envelope:
    """Ask while the service is busy for *busy_s* seconds, and again after each of *waits*, until it answers."""
    world.busy_until = world.now + busy_s
    said = session.call("rates", {"pair": "EUR/USD"}, rates)
    for wait in waits:
        if said.status != "success":
            world.now += wait
            said = session.call("rates", {"pair": "EUR/USD"}, rates)
    return said


def main() -> None:
    draw, watching = random.Random(7), Policy.load("observe")
    with tempfile.TemporaryDirectory() as folder:
        records, model = Path(folder) / "records.jsonl", Path(folder) / "retry.json"
        with JsonLines(records) as sink:
            for n in range(700):
                world.now += 86_400 / 100
                with watching.session(f"s{n}", records=sink, clock=lambda: world.now) as session:
                    ask(session, draw.choice((0, 20)), (draw.choice((5, 10, 30)), 30))
        train = [sys.executable, "-m", "guardrails", "train", str(records), "-o", str(model), "--quiet"]
        if subprocess.call(train, stdout=subprocess.DEVNULL):
            sys.exit(1)  # it has said why
        for name, policy in ("untrained", Policy([Retryable()])), ("trained", Policy([Retryable(model=str(model))])):
            with policy.session(name, clock=lambda: world.now) as session:
                said = ask(session, 20)
            print(f"{name}: retryable is {said.retryable}, after {said.retry_after_ms} ms: {said.next_action_hint}")


if __name__ == "__main__":
    main()
