"""
One process of four workers: `python -m tests.faults.worker JSON`. It tells its history on its standard output.

It ends when its standard input does, after the step that each worker is at.
"""

import json
import logging
import sys
import threading

from guardrails.core.values.errors import StoreError
from tests.faults.grounds import opened
from tests.faults.shop import THREADS, work
from tests.faults.watched import Watched, told_to


def main() -> None:
    """
    Work until nobody listens.
    """
    logging.disable()
    told = json.loads(sys.argv[1])
    tell = told_to(1)
    kind, place, process = told["kind"], told["place"], told["process"]
    over = threading.Event()
    while True:
        try:
            inner, sure = opened(kind, place, told["timeout"])
            break
        except StoreError:
            # Locked, or down, right now.
            if over.wait(0.05):
                return
    watched = Watched(inner, told["name"], tell, sure)

    def ran(call_id: str, session: str, tool: str, scopes: dict[str, str]) -> None:
        tell({"e": "ran", "id": call_id, "session": session, "tool": tool, "scopes": scopes})

    def run(worker: int) -> None:
        for _ in work(worker, f"{told['seed']} {told['name']}", watched, ran):
            if over.is_set():
                return

    threads = [
        threading.Thread(target=run, args=(process * THREADS + number,), name=f"w{process * THREADS + number}")
        for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    tell({"e": "begun"})
    sys.stdin.buffer.read()
    over.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
