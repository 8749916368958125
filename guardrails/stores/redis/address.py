"""
The address of a server: from a URL, or from a client that the program has.
"""

import re

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from guardrails.core.values.errors import StoreError, needs
from guardrails.stores.places import shown_place


_THEIRS: Final = ("maint", "oss_cluster", "max_connections", "timeout")
"""Settings of a pool, and of what the package tells its connections of the maintenance of servers, by a protocol not used here."""
_DATABASE: Final = re.compile(r"(/[0-9]{0,5})?")


class Address:
    """
    The server that *given* names, a URL or a `redis.Redis`; `shown` is it without user, password and options.

    Raises StoreError if it is not a URL of a server, MissingExtra if the package `redis` is missing.
    """

    def __init__(self, given: Any) -> None:
        with needs("redis", "a store in Redis"):
            from redis.backoff import NoBackoff
            from redis.connection import AbstractConnection, Connection, parse_url
            from redis.retry import Retry
        self._moved: dict[str, Any] = {}
        pool = self._pool = getattr(given, "connection_pool", None)
        if isinstance(given, str):
            self.shown = shown(given)
            try:
                said = parse_url(given)  # type: ignore[no-untyped-call]
            except ValueError:
                # What was raised may quote a part of the password.
                raise StoreError(
                    f"the URL `{self.shown}` has an option that cannot be read: see `redis.from_url`"
                ) from None
            made_by = said.pop("connection_class", Connection)
        elif pool is not None and issubclass(pool.connection_class, AbstractConnection):
            made_by, said = pool.connection_class, pool.connection_kwargs
            host, port = said.get("host"), said.get("port")
            self.shown = "the client's server" if host is None else f"redis://{host}:{port}/{said.get('db', 0)}"
        else:
            raise StoreError(
                "a store in Redis needs a URL (redis://HOST:PORT/DATABASE; of a cluster, that of any node) or a `redis.Redis`"
            )
        self._made_by: Callable[..., Any] = made_by
        # One try each, and the oldest protocol, whose answers have no messages in between.
        own = {"retry": Retry(NoBackoff(), 0), "protocol": 2, **({} if "path" in said else {"socket_keepalive": True})}
        self._settings: dict[str, Any] = {
            **{name: value for name, value in said.items() if not name.startswith(_THEIRS)},
            **own,
        }
        try:
            self.connection(1.0, lambda _: None)
        except TypeError as error:
            raise StoreError(f"the URL `{self.shown}` has an option that is unknown ({error})") from None

    def connection(self, limit_s: float, greet: Callable[[Any], None]) -> Any:
        """
        Returns a connection that is still to be made, in *limit_s* seconds; *greet* is called with it once it stands.
        """
        limits = {"socket_timeout": limit_s, "socket_connect_timeout": limit_s, "redis_connect_func": greet}
        return self._made_by(**{**self._settings, **limits, **self._moved})

    def moved(self, said: str) -> None:
        """
        Go to the address at which a node of a cluster says that the keys are: *said* ends in `HOST:PORT`.
        """
        host, _, port = said.rpartition(" ")[2].rpartition(":")
        if port.isdecimal():
            self._moved = {"port": int(port), **({"host": host.strip("[]")} if host else {})}

    def back(self) -> None:
        """
        Go back to the address that was given at first.
        """
        self._moved = {}


def shown(url: str) -> str:
    """
    Returns *url* without the secrets in it.
    """
    scheme, path = _parts(url)
    if not (_DATABASE.fullmatch(path) if scheme in ("redis", "rediss") else scheme == "unix"):
        raise StoreError(
            "this is no URL of a server of Redis: use redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, or "
            "unix:///PATH. In a password write `/` as %2F, `@` as %40, `:` as %3A, `#` as %23, `?` as %3F"
        )
    return shown_place(url)


def _parts(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        _ = parts.port  # A number, or ValueError.
    except ValueError:
        return "", ""
    return parts.scheme, parts.path
