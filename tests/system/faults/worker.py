"""
One process of four workers: `python -m tests.system.faults.worker JSON`. It tells each execution on its standard output.

It ends when its standard input does, after the call that each worker is at.
"""

import json
import logging
import os
import sys
import threading

from guardrails import RedisStore, SqliteStore
from guardrails.core.values.errors import StoreError
from tests.system.faults.shop import THREADS, work


def main() -> None:
    """
    Work until nobody listens.
    """
    logging.disable()
    told = json.loads(sys.argv[1])
    place, timeout = told["place"], told["timeout"]
    over = threading.Event()
    while True:
        try:
            redis = place.startswith("redis:")
            store = RedisStore(place, timeout=timeout) if redis else SqliteStore(place, timeout=timeout)
            break
        except StoreError:
            # Locked, or down, right now.
            if over.wait(0.05):
                return

    def ran(call_id: str, session: str, tool: str, scopes: dict[str, str]) -> None:
        # One write: what was written before a kill is there, as a whole.
        said = {"id": call_id, "session": session, "tool": tool, "scopes": scopes}
        os.write(1, json.dumps(said).encode() + b"\n")

    def run(worker: int) -> None:
        for _ in work(worker, f"{told['seed']} {told['name']}", store, ran):
            if over.is_set():
                return

    threads = [threading.Thread(target=run, args=(told["process"] * THREADS + number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    os.write(1, b'"begun"\n')
    sys.stdin.buffer.read()
    over.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
