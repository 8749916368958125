"""
A service with tenants: threads serve requests, and each tenant has one budget that all of them share.

The state is in a file, so that any number of processes may serve it together.
"""

import tempfile

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from guardrails import Budget, Policy, SqliteStore


TENANTS = ("acme", "globex")
policy = Policy([Budget(max_calls=5)], scopes={"tenant": [Budget(max_calls=12)]})


def look_up(tool: str, arguments: dict[str, object]) -> str:
    return f"order {arguments['order']}: sent"


def serve(store: SqliteStore, tenant: str, request: int) -> list[str]:
    """
    One request is one session, of four calls. Returns how each of them ended.
    """
    with policy.session(f"{tenant}-{request}", scopes={"tenant": tenant}, store=store) as session:
        envelopes = [session.call("look_up", {"order": n}, look_up) for n in range(4)]
    return [envelope.code or envelope.status for envelope in envelopes]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "state.db")
        requests = [(tenant, request) for tenant in TENANTS for request in range(5)]
        with ThreadPoolExecutor(max_workers=8) as threads:
            ended = list(threads.map(lambda one: (one[0], serve(store, *one)), requests))
        for tenant in TENANTS:
            codes = Counter(code for name, said in ended if name == tenant for code in said)
            print(tenant, *(f"{code}={count}" for code, count in sorted(codes.items())))
        store.close()


if __name__ == "__main__":
    main()
