"""
The stores that there are to be shown, by name.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from guardrails.core.values.errors import StoreError
from guardrails.stores.base import Store
from tests.faults.world import Ground


GROUNDS: Final = ("sqlite", "redis", "redis-everysec")
Sure = Callable[[StoreError], bool]
"""Whether an error says that nothing was changed."""


def ground(kind: str, folder: Path) -> Ground:
    """
    A new one of *kind*, in *folder*.
    """
    if kind.startswith("redis"):
        from tests.faults.ground_redis import RedisGround

        return RedisGround(kind, folder)
    from tests.faults.ground_sqlite import SqliteGround

    return SqliteGround(kind, folder)


def lacking(kind: str) -> str:
    """
    Why there can be no ground of *kind* here; empty if there can.
    """
    from tests.stores.redis_server import PROGRAM

    if kind not in GROUNDS:
        return f"there is no such store; there are {', '.join(GROUNDS)}"
    return "no redis-server or valkey-server here" if kind.startswith("redis") and PROGRAM is None else ""


def opened(kind: str, place: str, timeout: float) -> tuple[Store, Sure]:
    """
    The store of *kind* at *place* as a worker opens it.
    """
    if kind.startswith("redis"):
        from guardrails import RedisStore

        return RedisStore(place, timeout=timeout), lambda error: "may have been kept" not in str(error)
    from guardrails import SqliteStore

    return SqliteStore(place, timeout=timeout), lambda error: True
