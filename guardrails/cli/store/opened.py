"""
The store that a command names: the file of a `SqliteStore`, or the URL of a server.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from guardrails.cli.text.printing import fail, failures_told
from guardrails.stores.base import Kept
from guardrails.stores.opened import store_at
from guardrails.stores.places import is_url


_MESSAGES: Final = """
SELECT c.name, count(m.id) FROM conversations c LEFT JOIN messages m ON m.conversation = c.id GROUP BY c.id
"""


@contextmanager
def opened(place: str, namespace: str) -> Iterator[Kept]:
    """
    The store at *place*, a path or a URL; *namespace* is that of a URL. Ends the command if there is none, or it fails.
    """
    with failures_told():
        store = _at(place, namespace)
        try:
            yield store
        finally:
            store.close()


def _at(place: str, namespace: str) -> Kept:
    # It would be made.
    if not is_url(place) and not Path(place).is_file():
        what = "is a folder" if Path(place).is_dir() else "is not there"
        fail(f"`{place}` {what}: name the file of a SqliteStore, such as state.db, or the URL of a server")
    return store_at(place, namespace=namespace)


def name_of(store: Kept, place: str) -> str:
    """
    Returns the name of *store*, which was opened at *place*: a URL may hold a password.
    """
    return str(getattr(store, "place", place))


def messages_of(place: str) -> dict[str, int]:
    """
    Returns how many messages each conversation has in the file *place*, by id; empty if it keeps none.
    """
    import sqlite3

    from contextlib import closing

    from guardrails.stores.sqlite_file import explained

    if is_url(place):
        return {}
    try:
        with closing(sqlite3.connect(f"{Path(place).absolute().as_uri()}?mode=ro", uri=True)) as database:
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'conversations'").fetchone() is None:
                return {}
            return dict(database.execute(_MESSAGES).fetchall())
    except sqlite3.Error as error:
        raise explained(error, place, 0) from error
