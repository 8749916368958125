"""
Sixteen workers in four processes on one store that share limits, while processes, disks, servers and networks fail.

`FAULTS_S=600 FAULTS_SEED=7 python -m pytest -s tests/system/faults` goes on for longer, and by other faults.
"""

import os

from collections import Counter
from pathlib import Path

import pytest

from tests.stores.redis_server import needed
from tests.system.faults.grounds import RedisGround, SqliteGround
from tests.system.faults.shop import LIMITS, PRICE_USD, TENANT_USD
from tests.system.faults.world import World


pytestmark = [pytest.mark.system, pytest.mark.system]
SECONDS, SEED = float(os.environ.get("FAULTS_S", "4")), int(os.environ.get("FAULTS_SEED", "1"))
LEAST = 20
"""Calls that must have run to show anything."""


@pytest.mark.parametrize("kind", [SqliteGround, pytest.param(RedisGround, marks=needed)])
def test_no_limit_is_passed_and_no_call_forgotten_whatever_fails(kind: type, tmp_path: Path) -> None:
    ground = kind(tmp_path)
    try:
        world = World(ground, SEED, SECONDS)
        world.run()
        print(len(world.ran), "calls ran;", dict(world.befell))
        assert world.hung == []
        assert len(world.ran) >= LEAST
        assert max(Counter(call["id"] for call in world.ran).values()) == 1, "a call ran twice"
        store = ground.open()
        calls, cost = Counter[str](), Counter[str]()
        for call in world.ran:
            keys = [call["session"], "/global/global", *(f"/{name}/{own}" for name, own in call["scopes"].items())]
            calls.update(keys)
            cost.update(dict.fromkeys(keys, PRICE_USD * (call["tool"] == "pay")))
        for key, ran in calls.items():
            counted, spent = store.update([key], lambda states: (states[0].calls, states[0].cost))
            scope = key.split("/")[1] if key.startswith("/") else ""
            # What ran is counted; what was admitted and killed before it ran is counted too.
            assert ran <= counted <= LIMITS.get(scope, 1_000), key
            assert scope != "tenant" or max(cost[key], spent / 1_000_000) <= TENANT_USD + 1e-9, key
        assert any(calls[key] >= LIMITS["user"] for key in calls if key.startswith("/user/")), "no limit was reached"
    finally:
        ground.close()
