"""
What the workers of all histories do: a policy with three scopes, and calls by chance.
"""

import random
import time

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from guardrails import Budget, OnRecord, Policy, Success, Tool
from guardrails.stores import Store


PROCESSES: Final = 4
THREADS: Final = 4
USER_CALLS: Final = 28
TENANT_CALLS: Final = 100
TENANT_USD: Final = 0.4
GLOBAL_CALLS: Final = 3_000
PRICE_USD: Final = 0.01
LIMITS: Final = {"user": USER_CALLS, "tenant": TENANT_CALLS, "global": GLOBAL_CALLS}
Ran = Callable[[str, str, str, dict[str, str]], None]
"""Is told of each execution: the id of its call, its session, its tool and its scopes."""


def policy() -> Policy:
    """
    A budget for each session, user and tenant, and one for everybody.
    """
    return Policy(
        [Budget(max_calls=1_000)],
        scopes={
            "user": [Budget(max_calls=USER_CALLS)],
            "tenant": [Budget(max_calls=TENANT_CALLS, max_cost_usd=TENANT_USD)],
            "global": [Budget(max_calls=GLOBAL_CALLS)],
        },
        tools=[Tool(name="look", read_only=True), Tool(name="pay", cost_usd=PRICE_USD), Tool(name="fail")],
    )


def work(worker: int, seed: str, store: Store, ran: Ran) -> Iterator[None]:
    """
    Calls of the worker number *worker*, one at each step: in sessions of its own and in one of all workers, of a user whom
    four share and of a tenant whom all share; a tenant that is used up gives way to the next.
    """
    chosen = random.Random(f"{seed} {worker}")
    terms = policy()
    tenant = number = 0
    while True:
        refused = 0
        scopes = {"user": f"u{worker % 4}-{tenant}", "tenant": f"t{tenant}"}
        sink = OnRecord(lambda _: None)
        own, common = (
            terms.session(name, store=store, scopes=scopes, records=sink)
            for name in (f"s{worker}-{tenant}", f"c{worker % 4}-{tenant}")
        )
        while refused < 3:
            session = common if chosen.random() < 0.15 else own
            number += 1
            call_id = f"{seed} {worker} {number}"

            def execute(
                tool: str, arguments: Any, id: str = call_id, name: str = session.id, scopes: dict[str, str] = scopes
            ) -> Any:
                ran(id, name, tool, scopes)
                if chosen.random() < 0.1:
                    time.sleep(chosen.random() * 0.004)
                if tool == "fail":
                    raise LookupError("not there")
                return Success("done", cost_usd=PRICE_USD) if tool == "pay" else "seen"

            if chosen.random() < 0.1:
                # A read that others' steps race with; the store tells by itself how it ended.
                with suppress(Exception):
                    session.exhausted  # noqa: B018
            else:
                tool = chosen.choice(["look", "look", "pay", "pay", "fail"])
                envelope = session.call(tool, {"number": call_id}, execute, id=call_id)
                code = envelope.code or ""
                refused += code.startswith(("tenant.", "user."))
                if code.startswith("global."):
                    time.sleep(0.05)
                if code.startswith("store."):
                    time.sleep(0.02)
            yield
        tenant += 1
