"""
One process of four workers on one store: `python -m tests.system.faults.worker JSON`. It tells each execution on its standard output.

It ends when its standard input does, after the call that each worker is at.
"""

import itertools
import json
import logging
import os
import random
import sys
import threading
import time

from typing import Any, Final

from guardrails import Budget, Policy, RedisStore, SqliteStore, Success, Tool
from guardrails.core.values.errors import StoreError


THREADS: Final = 4
LIMITS: Final = {"user": 28, "tenant": 100, "global": 3_000}
TENANT_USD: Final = 0.4
PRICE_USD: Final = 0.01
TRIES: Final = 60
"""Calls that a worker makes for one tenant: its user, whom four workers share, is used up by then."""


def policy() -> Policy:
    """
    A budget for each session, user and tenant, and one for everybody.
    """
    scopes = {name: [Budget(max_calls=limit)] for name, limit in LIMITS.items()}
    scopes["tenant"] = [Budget(max_calls=LIMITS["tenant"], max_cost_usd=TENANT_USD)]
    tools = [Tool(name="look", read_only=True), Tool(name="pay", cost_usd=PRICE_USD), Tool(name="fail")]
    return Policy([Budget(max_calls=1_000)], scopes=scopes, tools=tools)


def work(worker: int, seed: str, store: Any, over: threading.Event) -> None:
    """
    Calls of the worker number *worker*, in a session of its own and in one that four share, of a tenant whom all share.
    """
    chosen, terms = random.Random(f"{seed} {worker}"), policy()
    for number in itertools.count():
        tenant = number // TRIES
        scopes = {"user": f"u{worker % 4}-{tenant}", "tenant": f"t{tenant}"}
        name = f"c{worker % 4}-{tenant}" if chosen.random() < 0.15 else f"s{worker}-{tenant}"
        session = terms.session(name, store=store, scopes=scopes)
        call_id, tool = f"{seed} {worker} {number}", chosen.choice(["look", "look", "pay", "pay", "fail"])
        line = json.dumps({"id": call_id, "session": name, "scopes": scopes, "tool": tool}).encode() + b"\n"

        def execute(tool: str, _: Any, line: bytes = line) -> Any:
            # One write: what was written before a kill is there, as a whole.
            os.write(1, line)
            if chosen.random() < 0.1:
                time.sleep(chosen.random() * 0.004)
            if tool == "fail":
                raise LookupError("not there")
            return Success("done", cost_usd=PRICE_USD) if tool == "pay" else "seen"

        envelope = session.call(tool, {"number": call_id}, execute, id=call_id)
        if (envelope.code or "").startswith(("global.", "store.")):
            time.sleep(0.02)
        if over.is_set():
            return


def main() -> None:
    """
    Work until nobody listens.
    """
    logging.disable()
    settings = json.loads(sys.argv[1])
    kind: Any = RedisStore if settings["place"].startswith("redis:") else SqliteStore
    over, store = threading.Event(), None
    while store is None:
        try:
            store = kind(settings["place"], timeout=settings["timeout"])
        except StoreError:
            # Locked, or down, right now.
            time.sleep(0.05)
    workers = range(settings["process"] * THREADS, (settings["process"] + 1) * THREADS)
    threads = [threading.Thread(target=work, args=(worker, settings["name"], store, over)) for worker in workers]
    for thread in threads:
        thread.start()
    os.write(1, b'"begun"\n')
    sys.stdin.buffer.read()
    over.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
