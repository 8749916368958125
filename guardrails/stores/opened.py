"""
The store that a command line names. Nothing is imported until it is opened.
"""

from .places import is_url


TYPE_CHECKING = False

if TYPE_CHECKING:
    from .redis.store import RedisStore
    from .sqlite import SqliteStore


def store_at(place: str, *, namespace: str = "guardrails") -> "SqliteStore | RedisStore":
    """
    Returns the store at *place*, a server's under *namespace*; a file is made if it is not there, for its owner only.

    Raises StoreError if it cannot be used, MissingExtra for a URL without the package `redis`.
    """
    if is_url(place):
        from .redis.store import RedisStore

        return RedisStore(place, namespace=namespace)
    from .sqlite import SqliteStore

    return SqliteStore(place)
