"""
The store that a command line names. Nothing is imported until it is opened.
"""

from .places import is_url


TYPE_CHECKING = False

if TYPE_CHECKING:
    from .persistence import PersistentStore


def store_at(place: str, *, namespace: str = "guardrails", timeout: float = 5.0) -> "PersistentStore":
    """
    Returns the store at *place*, a server's under *namespace* (of PostgreSQL in the table `NAMESPACE_states`); a file is
    made if it is not there, for its owner only.

    Raises StoreError if it cannot be used, MissingExtra for a URL without the package it needs.
    """
    if place.startswith(("postgresql://", "postgres://")):
        from .postgres import PostgresStore

        return PostgresStore(place, table=f"{namespace}_states", timeout=timeout)
    if is_url(place):
        from .redis import RedisStore

        return RedisStore(place, namespace=namespace, timeout=timeout)
    from .sqlite import SqliteStore

    return SqliteStore(place, timeout=timeout)
