"""
Sessions in a server of Redis or Valkey, shared by processes of many machines.
"""

import os
import re
import threading
import time
import weakref

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from hashlib import sha1
from typing import Any, Final, Self, TypeVar

import orjson

from guardrails.core.guards.base import Edge
from guardrails.core.packing import pack
from guardrails.core.scopes import AMOUNTS, SharedState
from guardrails.core.state import SessionState
from guardrails.core.values.errors import StateUnreadable, StoreError, needs
from guardrails.core.values.logs import log
from guardrails.core.values.names import SCOPES
from guardrails.core.values.units import duration_ms

from .base import NESTED, Stored
from .live import LIVE, Held, Live, unpacked
from .places import shown_place
from .redis_scripts import COMMIT, DROP, FORMAT, HEAD_BYTES, LOOK, MARK_BYTES, OPEN


T = TypeVar("T")
BATCH: Final = 500
PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 0.25
_NAMESPACE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
_URL: Final = re.compile(r"rediss?://([^/?#@]*@)?(\[[^]/?#@]*\]|[^]\[/?#@:]*)(:[0-9]+)?(/[0-9]{0,5})?(\?.*)?|unix://.*")
_NUMBERS: Final = (*AMOUNTS, "now_ms")
_LAST: Final = b"\xff"
"""No key begins with it: it is in no UTF-8."""


class RedisStore:
    """
    States in the server at *url* (`redis://HOST:PORT/DATABASE`, `rediss://` with TLS, `unix:///PATH`) or of a `redis.Redis` or
    `redis.RedisCluster`, under the keys of *namespace*. Safe in any number of threads, processes and machines.

    One `update` runs the step here, on the states as this process had them last or reads them, and has the server keep what it
    did: of a session only if nobody changed it meanwhile, of a scope what is to be added to its amounts, if the guards would
    have said the same by those that are there now. Otherwise the step is run again. No process ever holds a lock there. It
    takes *timeout* seconds at most, then raises StoreError, as if the server cannot be reached or refuses.

    Raises StoreError if the server could drop states for lack of memory, MissingExtra if the package `redis` is missing.
    """

    blocks: Final = True

    def __init__(self, url: Any, *, namespace: str = "guardrails", timeout: float = 5.0, live: int = LIVE) -> None:
        if not _NAMESPACE.fullmatch(namespace):
            raise StoreError(f"`{namespace}` is no namespace: use 1 to 100 letters, digits and `_.:-`")
        with needs("redis", "a store in Redis"):
            import redis.exceptions
        self._errors: Any = redis.exceptions
        self._given = not isinstance(url, str)
        self._client, self.place = _client(url, timeout)
        self.namespace: Final = namespace
        self._stem = f"{{{namespace}}}:".encode()
        self._scopes = self._stem + b"a:"
        self._timeout = timeout
        self._live = Live(live)
        self._fit = False
        self._begin()
        self._ask(lambda: None)
        _stores.add(self)

    def _begin(self) -> None:
        self._writers: list[_Writer] = []
        self._own = threading.local()

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`.
        """
        writers = self._writers
        writer = writers.pop() if writers else _Writer()
        change = _Change(keys, writer, self._run, self._live, self._stem, self.place)
        try:
            return self._ask(lambda: change.made(step, here=lambda: self._writers is writers), change)
        finally:
            writers.append(writer)

    def _ask(self, ask: Callable[[], T], change: "_Change | None" = None) -> T:
        """
        Returns the answer of *ask*, asked again while that may help and there is time.
        """
        own, until, tries = self._own, time.monotonic() + self._timeout, 0
        if getattr(own, "busy", False):
            raise RuntimeError(NESTED)
        own.busy = True
        try:
            while True:
                try:
                    if not self._fit:
                        self._check()
                    return ask()
                except self._errors.RedisError as error:
                    tries += 1
                    pause = min(PAUSE_S * 2 ** (tries - 1), LONGEST_PAUSE_S)
                    if not _passing(error, self._errors) or time.monotonic() + pause > until:
                        unsure = change is not None and change.sent is not None
                        raise explained(error, self.place, self._timeout, self._errors, unsure=unsure) from error
                    time.sleep(pause)
                except _Stale:
                    if time.monotonic() > until:
                        raise StoreError(
                            f"others changed the same states in the store `{self.place}` for {self._timeout:g} s without a "
                            "pause. Have fewer workers share a session, or give it a longer `timeout`"
                        ) from None
        except Exception:
            raise
        except BaseException:
            # An answer may be on its way.
            if (pool := getattr(self._client, "connection_pool", None)) is not None:
                pool.disconnect(inuse_connections=False)
            raise
        finally:
            own.busy = False

    def _check(self) -> None:
        """
        See that the server is fit for a store, and that the namespace is one. Raises StoreError.
        """
        found = self._run(OPEN, [b"store", b"writers"], [FORMAT])
        if found != FORMAT:
            shown = found.decode("utf-8", "replace")
            raise StoreError(
                f"the store `{self.place}` holds under this namespace what this version cannot read (`{shown:.80}`): upgrade, or "
                "use another `namespace`"
            )
        told = self._client.info()
        # A cluster answers by node.
        for info in told.values() if all(isinstance(one, dict) for one in told.values()) else [told]:
            evicts = str(info.get("maxmemory_policy", "noeviction"))
            if evicts.startswith("allkeys-"):
                raise StoreError(
                    f"the store `{self.place}` may drop states for lack of memory (maxmemory-policy `{evicts}`): set it to `noeviction`"
                )
            if info.get("role") == "slave" and not info.get("slave_read_only", 1):
                raise StoreError(
                    f"the store `{self.place}` is a replica whose writes are lost at its next sync: give the address of the primary"
                )
        self._fit = True

    def _run(self, script: str, names: Sequence[bytes], arguments: Sequence[bytes]) -> Any:
        keys = [self._stem + name for name in names]
        ask, rest = self._client.execute_command, (len(keys), *keys, *arguments)
        try:
            return ask("EVALSHA", sha_of(script), *rest, NEVER_DECODE=True)
        except self._errors.NoScriptError:
            return ask("EVAL", script, *rest, NEVER_DECODE=True)

    def _command(self, *parts: Any) -> Any:
        return self._ask(lambda: self._client.execute_command(*parts, NEVER_DECODE=True))

    def __len__(self) -> int:
        return int(self._command("ZCARD", self._stem + b"keys"))

    def read(self, key: str) -> Stored | None:
        """
        See `Store.read`.
        """
        (found,) = self._found([_name(key)])
        return found

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        See `Store.entries`. They come in the order of their keys.
        """
        for names in self._names(prefix):
            yield from filter(None, self._found(names))

    def _found(self, names: list[bytes]) -> list[Stored | None]:
        said = self._ask(lambda: self._run(LOOK, [b"writers", b"keys", *map(_place, names)], [self._scopes]))
        return [_stored(name, one) if one else None for name, one in zip(names, said, strict=True)]

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        self._drop([_name(key)], b"")
        self._live.take(key)

    def prune(
        self,
        idle: float | str,
        *,
        scopes: bool = False,
        prefix: str = "",
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """
        Drop sessions, and *scopes* if asked, that have not changed for *idle* (seconds, or `30d`) and whose key begins
        with *prefix*. Returns the number of dropped states. The function *progress* is told now and then how many they
        are so far.

        See `SqliteStore.prune`. Raises ValueError if *idle* is no duration.
        """
        idle_ms, dropped = b"%d" % duration_ms(idle), 0
        for names in self._names(prefix):
            chosen = [name for name in names if scopes or not name.startswith(SCOPES.encode())]
            dropped += self._drop(chosen, idle_ms) if chosen else 0
            if progress is not None:
                progress(dropped)
        return dropped

    def _names(self, prefix: str) -> Iterator[list[bytes]]:
        begins = _name(prefix)
        above = b"[" + begins
        while True:
            names = self._command("ZRANGEBYLEX", self._stem + b"keys", above, b"(" + begins + _LAST, "LIMIT", 0, BATCH)
            if names:
                yield names
            if len(names) < BATCH:
                return
            above = b"(" + names[-1]

    def _drop(self, names: list[bytes], idle_ms: bytes) -> int:
        begins = b"%d" % (len(self._stem) + 3)
        keys = [b"keys", *map(_place, names)]
        return int(self._ask(lambda: self._run(DROP, keys, [begins, idle_ms, self._scopes])))

    def clock(self) -> float:
        """
        Returns seconds since 1970 by the server's clock: one time for all who use it.

        For `policy.session(..., clock=store.clock)`, if the clocks of machines may differ.
        """
        seconds, micros = self._command("TIME")
        return int(seconds) + int(micros) / 1e6

    def close(self) -> None:
        """
        Close the connections, unless they are of a client that was given; the next use makes new ones.
        """
        if getattr(self._own, "busy", False):
            raise RuntimeError(NESTED)
        self._fit = False
        self._live.clear()
        if not self._given:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RedisStore({self.place!r}, namespace={self.namespace!r})"


class _Stale(Exception):
    """
    Others changed the states meanwhile.
    """


class _Writer:
    """
    Who commits: one step at a time, by numbers that only rise.
    """

    __slots__ = ("last", "name", "number")

    def __init__(self) -> None:
        self.name = os.urandom(MARK_BYTES - 8)
        self.number = self.last = 0

    @property
    def mark(self) -> bytes:
        """
        The version that sessions have from its latest commit: no other ever gives the same.
        """
        return self.name + self.number.to_bytes(8, "big")


class _Change:
    """
    One change of the states of *keys*, all or none, exactly once: looked at, changed by a step, committed.

    `sent` while it is not known whether a commit took place: it is asked for again under the same number, which the server
    does once.
    """

    def __init__(
        self, keys: Sequence[str], writer: _Writer, run: Callable[..., Any], live: Live, stem: bytes, place: str
    ) -> None:
        self._run, self._live, self._stem, self._place = run, live, stem, place
        self._keys = keys
        self._names = [b"writers", b"keys", *(_place(_name(key)) for key in keys)]
        self._writer = writer
        held = [live.take(key) for key in keys]
        self._taken = [one for one in held if one is not None]
        self._fresh = False
        """Whether the states are as the server had them in this very change."""
        if len(self._taken) < len(keys):
            self._taken = []
        self.sent: list[bytes] | None = None
        self._result: Any = None

    def made(self, step: Callable[[list[SessionState]], T], *, here: Callable[[], bool]) -> T:
        """
        Returns the result of *step* once it is kept; *here* tells whether this is still the process that began. Raises _Stale
        if it is to be done again, and errors of the client.
        """
        writer, scopes = self._writer, self._stem + b"a:"
        if self.sent is None:
            if not self._taken and self._keys:
                self._taken = self._read(self._run(LOOK, self._names, [scopes]))
                self._fresh = True
            states = [held.state for held in self._taken]
            try:
                self._result = step(states)
                changed = self._written()
            except BaseException:
                self._taken = []
                raise
            if not here():
                raise StoreError(
                    f"this process was forked in the middle of an update of the store `{self._place}`: start it by spawn, or "
                    "not from inside of a guard"
                )
            if changed is None:
                self._keep()
                return self._result  # type: ignore[no-any-return]
            writer.number = max(writer.number + 1, time.time_ns() // 1_000)
            head = [scopes, writer.name, b"%d" % writer.number, b"%d" % writer.last, writer.mark]
            self.sent = [*head, b"%d" % (len(self._stem) + 3), *changed]
        done, found = self._run(COMMIT, self._names, self.sent)
        self.sent = None
        if not done:
            self._taken, self._fresh = self._read(found), True
            raise _Stale
        if done == 2:
            log.error(
                "the store `%s` has lost what was committed to it: it was restarted without its log, or a replica that was "
                "behind took over; sessions and scopes go on from what it has",
                self._place,
            )
        writer.last = writer.number
        self._settle(found)
        return self._result  # type: ignore[no-any-return]

    def _read(self, found: list[Any]) -> list[Held]:
        place = self._place
        return [
            _Shared(key, said, place) if key.startswith(SCOPES) else _session(key, said, place)
            for key, said in zip(self._keys, found, strict=True)
        ]

    def _written(self) -> list[bytes] | None:
        """
        The arguments of the commit, of each state its own; None if nothing has changed.
        """
        made: list[bytes] = []
        changed = not self._fresh
        for held in self._taken:
            now = held.pack()
            changed = changed or now != held.packed
            if isinstance(held, _Shared):
                parts, moved = held.moves(now)
                changed = changed or moved
                made += parts
            else:
                made += [held.mark, b"" if now == held.packed else now]
            held.new = now
        return made if changed else None

    def _settle(self, found: list[Any]) -> None:
        mark = self._writer.mark
        for held, said in zip(self._taken, found, strict=True):
            if isinstance(held, _Shared):
                held.settle(said[0])
            elif held.new != held.packed:
                held.mark, held.packed = mark, held.new
        self._keep()

    def _keep(self) -> None:
        self._live.keep(self._keys, self._taken)


class _Shared(Held):
    """
    A scope: `packed` is its rest, and its `mark` its version in the server.
    """

    __slots__ = ("bare", "drops", "edges", "names", "numbers", "shared")

    def __init__(self, key: str, said: Any, place: str) -> None:
        kept = isinstance(said, list)
        packed = said[1] if kept else said[HEAD_BYTES:] if said else b""
        state = SharedState()
        if packed:
            plain = unpacked(key, packed, place)
            for each in fields(SessionState):
                setattr(state, each.name, getattr(plain, each.name))
        super().__init__(b"", packed if kept else b"", state)
        self.shared = state
        self.bare: SessionState | None = None
        """The rest that `packed` is, once this process has packed it."""
        self.numbers: dict[str, int] = {}
        self.drops = "0"
        self.edges: list[Edge] | None = None
        self.names: set[str] = set()
        """Of the amounts that its guards remember."""
        if kept:
            self._hear(said[0])

    def _hear(self, amounts: bytes) -> None:
        """
        Have the amounts that the server has.
        """
        kept = orjson.loads(amounts)
        self.mark, self.drops = kept.pop("v").encode(), kept.pop("drops", "0")
        self.numbers = {name: int(value) for name, value in kept.items()}
        self.shared.have(self.numbers)

    def pack(self) -> bytes:
        edges = self.shared.edges
        self.edges = None if edges is None else edges()
        named = {name for edge in self.edges or () for name in edge.names}
        names = self.names = {name for name in (*named, *self.numbers) if "/" in name}
        bare, before = self.shared.without({*_NUMBERS, *names}), self.bare
        if before is not None and bare == before and bare.run == before.run:
            return self.packed  # So it is with most steps.
        self.bare = bare
        return pack(bare)

    def moves(self, rest: bytes) -> tuple[list[bytes], bool]:
        """
        Returns what the step adds to the amounts as arguments of a commit, and whether it is anything.
        """
        edges, numbers = self.edges, self.numbers
        floors = {edge.names[0]: edge.floor for edge in edges or () if edge.floor is not None}
        new = {name: self.shared.amount(name) for name in (*_NUMBERS, *self.names)}
        amounts: list[tuple[str, str, str]] = []
        moved: dict[str, int] = {}
        for name, value in new.items():
            old = numbers.get(name, 0)
            if value == old:
                continue
            floor = value if name == "now_ms" else floors.get(name)
            add = value - (old if floor is None else max(old, floor))
            amounts.append((name, "" if floor is None else str(floor), str(add)))
            if name not in ("n", "now_ms"):
                moved[name] = add
        exact, drops = edges is None, ""
        sums: list[tuple[str, ...]] = []
        for edge in edges or ():
            after = sum(new[name] for name in edge.names)
            taken = any(name in moved for name in edge.names)
            most, step, asked = edge.most, edge.step, self.shared.asked and not moved
            if after >= most or (asked and step and after + step > most):
                # At its edge what others add changes nothing for who takes nothing.
                exact, drops = exact or (taken and max(moved.values()) > 0), self.drops
            elif asked and not step:
                exact = True
            else:
                sums.append((str(most - step + 1 if asked else most), *edge.names))
        if min(moved.values(), default=0) < 0:
            amounts.append(("drops", "", "1"))
        rest_now = b"" if rest == self.packed else rest
        made = [orjson.dumps([self.mark.decode(), exact, drops, amounts, sums]), self.packed, rest_now]
        return made, bool(amounts)

    def settle(self, amounts: bytes) -> None:
        """
        Have what the server has after the commit: the step's place in the records is by its true number.
        """
        state, n = self.shared, self.shared.n
        self.packed = self.new
        self._hear(amounts)
        for place in state.places:
            place[2] += state.n - n
        state.places = []


def _session(key: str, said: bytes | None, place: str) -> Held:
    if said is None:
        return Held(b"", b"", SessionState())
    packed = said[HEAD_BYTES:]
    return Held(said[:MARK_BYTES], packed, unpacked(key, packed, place))


def _name(key: str) -> bytes:
    # Whatever a program uses as a name, lone surrogates too.
    return key.encode("utf-8", "surrogatepass")


def _place(name: bytes) -> bytes:
    return (b"a:" if name.startswith(SCOPES.encode()) else b"s:") + name


def _stored(name: bytes, said: Any) -> Stored:
    key = name.decode("utf-8", "surrogatepass")
    if not isinstance(said, list):
        at = said[MARK_BYTES:HEAD_BYTES]
        return Stored(key, said[HEAD_BYTES:], int(at) if at.isdigit() else 0)
    try:
        packed = pack(_Shared(key, said, "").state)
    except StateUnreadable:
        packed = said[1]
    return Stored(key, packed, int(said[2] or 0))


@cache
def sha_of(script: str) -> str:
    """
    Returns the name by which the server knows a script once it has run it.
    """
    return sha1(script.encode(), usedforsecurity=False).hexdigest()


def _client(given: Any, timeout_s: float) -> tuple[Any, str]:
    """
    Returns a client of the server that *given* names, and its name without secrets.
    """
    with needs("redis", "a store in Redis"):
        import redis

        from redis.backoff import NoBackoff
        from redis.retry import Retry

    if not isinstance(given, str):
        if not isinstance(given, (redis.Redis, redis.RedisCluster)):
            raise StoreError(f"a store in Redis needs a URL ({_URLS}), a `redis.Redis` or a `redis.RedisCluster`")
        pool = getattr(given, "connection_pool", None)
        said = {} if pool is None else pool.connection_kwargs
        host = said.get("host")
        return (
            given,
            "the client's server" if host is None else f"redis://{host}:{said.get('port')}/{said.get('db', 0)}",
        )
    if not _URL.fullmatch(given):
        raise StoreError(
            f"this is no URL of a server of Redis: use {_URLS}. In a password write `/` as %2F, `@` as %40, `:` as %3A, "
            "`#` as %23, `?` as %3F"
        )
    limit, place = max(timeout_s / 2.5, 0.001), shown_place(given)
    settings: dict[str, Any] = {
        "retry": Retry(NoBackoff(), 0),
        "socket_connect_timeout": limit,
        "socket_timeout": limit,
    }
    try:
        client = redis.Redis.from_url(given, **settings)
        client.connection_pool.make_connection()
    except (TypeError, ValueError) as error:
        # What was raised may quote a part of the password.
        raise StoreError(
            f"the URL `{place}` has an option that cannot be read: see `redis.from_url` ({type(error).__name__})"
        ) from None
    return client, place


_URLS: Final = "redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, or unix:///PATH"
_PASSING: Final = frozenset(
    {"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "MOVED", "ASK", "NOREPLICAS", "UNBLOCKED"}
)
"""Refusals that end by themselves while a server starts, fails over or is busy: tried again as long as there is time."""
COMMANDS: Final = (
    "+ping +select +info +eval +evalsha +time +get +set +getrange +del +hget +hset +hincrby +hgetall "
    "+zadd +zrem +zcard +zscore +zrangebylex +zremrangebyscore"
)
"""What a user of the server must be allowed, on the keys of a namespace."""
_FORBIDDEN: Final = re.compile("(?i)acl failure|user executing the script|no permissions")
"""What a script is told instead of NOPERM."""
_CLASSES: Final = {
    "ReadOnlyError": "READONLY",
    "BusyLoadingError": "LOADING",
    "NoPermissionError": "NOPERM",
    "OutOfMemoryError": "OOM",
    "MasterDownError": "MASTERDOWN",
    "ClusterDownError": "CLUSTERDOWN",
    "TryAgainError": "TRYAGAIN",
    "MovedError": "MOVED",
    "AskError": "ASK",
}
_MEANS: Final = {
    "NOAUTH": "wants a user and a password: put them into its URL",
    "WRONGPASS": "does not accept this user and password: correct them in its URL",
    "NOPERM": f"does not let this user do it: `ACL SETUSER NAME ~{{{{NAMESPACE}}}}:* {COMMANDS}`",
    "DENIED": "takes no connections from other machines without a password: give it one, and put it into its URL",
    "READONLY": "is a replica, which takes no writes: give the address of the primary",
    "MASTERDOWN": "is a replica that has lost its primary: give the address of the primary",
    "LOADING": "is still loading its data: try again, or give the store a longer `timeout`",
    "BUSY": "is busy with a script of somebody else: end that by `SCRIPT KILL`",
    "MISCONF": "cannot save to its disk, and takes no writes until it can: see its log",
    "NOREPLICAS": "has fewer replicas than its `min-replicas-to-write`, and takes no writes: see its replicas",
    "OOM": "is full (maxmemory): give it more, or `prune` sessions that are over",
    "CLUSTERDOWN": "is of a cluster that is down: see `CLUSTER INFO`",
    "MOVED": "is of a cluster: give the store a `redis.RedisCluster`",
    "WRONGTYPE": "holds under this namespace the keys of another program: use another `namespace`",
}


def _code(error: Exception) -> str:
    text = str(error)
    if _FORBIDDEN.search(text):
        return "NOPERM"
    if type(error).__name__ in ("AuthenticationError", "AuthenticationWrongNumberOfArgsError"):
        return "WRONGPASS" if "invalid" in text or "WRONGPASS" in text else "NOAUTH"
    return _CLASSES.get(type(error).__name__) or text.partition(" ")[0]


def _lost(error: Exception, errors: Any) -> bool:
    plain = isinstance(error, (errors.ConnectionError, errors.TimeoutError))
    return plain and not isinstance(error, (errors.AuthenticationError, errors.BusyLoadingError))


def _passing(error: Exception, errors: Any) -> bool:
    """
    Whether *error* may be over in a moment.
    """
    return _lost(error, errors) or _code(error) in _PASSING


def explained(error: Exception, place: str, timeout_s: float, errors: Any, *, unsure: bool = False) -> StoreError:
    """
    Returns the error to raise for *error* at the store *place*: its meaning, and its remedy. If *unsure*, it is not
    known whether the step was kept.
    """
    said = _MEANS.get(_code(error))
    if said is None and _lost(error, errors):
        said = f"cannot be reached, or did not answer in time ({timeout_s:g} s in all): see that it runs and its address is right"
    said = said or "cannot be used"
    if unsure:
        said += "; the step that was under way may have been kept: then more is charged than was used, never less"
    return StoreError(f"the store `{place}` {said} ({error})")


_stores: "weakref.WeakSet[RedisStore]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for store in list(_stores):
        # Two processes must not commit as one writer. The connections are the client's own, which sees to forks.
        store._begin()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
