"""
A refund agent in four processes: 500 USD an hour for each user, whatever they do at once.

The store is a file of SQLite, or the URL that is given: `python refund_agent.py redis://localhost` or `postgresql://localhost/agent`.
"""

import sys
import tempfile

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from guardrails import Policy
from guardrails.errors import GuardrailsError
from guardrails.stores.places import store_at


POLICY = Path(__file__).with_name("refund.yaml")
PROCESSES = 4


def execute(tool: str, arguments: dict[str, object]) -> dict[str, object]:
    return {"order": arguments["order_id"], "state": "paid" if tool == "refund" else "delivered"}


def serve(place: str, number: int) -> list[str]:
    """
    Look up five orders of one user, and pay 40 USD back for each. Returns how that ended.
    """
    session = Policy.load(POLICY).session(f"agent-{number}", scopes={"user": "u1"}, store=store_at(place))
    ended = []
    for order in range(5):
        arguments = {"order_id": f"o-{number}-{order}"}
        session.call("lookup_order", arguments, execute)
        envelope = session.call("refund", {**arguments, "amount": 40}, execute)
        ended.append(envelope.code or envelope.status)
    return ended


def main(place: str) -> None:
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as processes:
        ended = Counter(code for said in processes.map(serve, [place] * PROCESSES, range(PROCESSES)) for code in said)
    print(*(f"{code}={count}" for code, count in sorted(ended.items())))
    print(f"paid back: {40 * ended['success']} of 500 USD")


if __name__ == "__main__":
    try:
        Policy.load(POLICY)
    except GuardrailsError as error:
        sys.exit(str(error))
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "state.db"))
