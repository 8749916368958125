"""
One process of four workers that spend the budgets of users on one store: `python -m tests.system.faults.worker PLACE TIMEOUT NAME LOG`.
It writes each execution into LOG, and ends when its standard input does, after the call that each worker is at.
"""

import itertools
import logging
import os
import sys
import threading
import time

from contextlib import suppress
from typing import Any, Final

from guardrails import Budget, Policy, Success, Tool
from guardrails.core.values.errors import StoreError
from guardrails.stores.places import store_at


THREADS: Final = 4
LIMIT: Final = 28
LIMIT_USD: Final = 0.08
PRICE_USD: Final = 0.01
REFUSALS: Final = 5
"""Refused calls after which a worker leaves a user, whom all share: so a limit of the first is reached once a call is of the second."""
POLICY: Final = Policy(
    [Budget(max_calls=100_000)],
    scopes={"user": [Budget(max_calls=LIMIT, max_cost_usd=LIMIT_USD)]},
    tools=[Tool(name="look", read_only=True), Tool(name="pay", cost_usd=PRICE_USD)],
)


def work(name: str, log: int, store: Any, over: threading.Event) -> None:
    """
    Calls in sessions that some of the workers share.
    """
    refused = 0
    for n in itertools.count():
        user, call_id, tool = f"u{refused // REFUSALS}", f"{name}.{n}", "look" if n % 3 else "pay"

        def execute(*_: Any, line: bytes = f"{user} {tool} {call_id}\n".encode(), paid: bool = tool == "pay") -> Any:
            # One write: what was written before a kill is there, as a whole.
            os.write(log, line)
            return Success("done", cost_usd=PRICE_USD if paid else 0)

        session = POLICY.session(f"s{hash(name) % 5}", store=store, scopes={"user": user})
        envelope = session.call(tool, {"id": call_id}, execute, id=call_id)
        code = envelope.code or ""
        refused += code.startswith("user.budget.")
        if code.startswith("store."):
            time.sleep(0.02)
        if over.is_set():
            return


def main(place: str, timeout: str, name: str, log: str) -> None:
    """
    Work until nobody listens.
    """
    logging.disable()
    store, over = None, threading.Event()
    while store is None:
        # Locked, or down, right now.
        with suppress(StoreError):
            store = store_at(place, timeout=float(timeout))
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    threads = [threading.Thread(target=work, args=(f"{name}.{n}", file, store, over)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    sys.stdin.buffer.read()
    over.set()


if __name__ == "__main__":
    main(*sys.argv[1:])
