"""
Sessions in a server of Redis or Valkey, shared by processes of many machines.

The server compares and writes bytes and adds up numbers, and knows nothing of sessions or guards. All keys of a store begin with its
namespace in braces, so that a cluster keeps them in one slot, and those of other namespaces in others:

    {ns}:store  what made it, and the version of this layout
    {ns}:keys   of all states
    {ns}:s:KEY  of a state: its version of 16 bytes; when it was changed last, in milliseconds by the server's clock, 13 digits; the
                packed state, of a scope without its amounts
    {ns}:a:KEY  of a scope: its amounts, a hash
"""

import os
import re

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import sha1
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote

import orjson

from guardrails.core.packing import pack
from guardrails.core.scopes import SharedState, bare
from guardrails.core.state import SessionState
from guardrails.core.values.errors import StateUnreadable, StoreError, needs
from guardrails.core.values.names import SCOPES

from .base import Stored
from .live import LIVE, Held, unpacked
from .persistence import BATCH, FORKED, PersistentStore, Slot, Stale, key_of, name_of
from .places import shown_place


T = TypeVar("T")
MARK_BYTES: Final = 16
HEAD_BYTES: Final = 29
FORMAT: Final = b"toolcall-guardrails 2"
_NAMESPACE: Final = re.compile(r"[A-Za-z0-9_.:/%-]{1,200}")
_URLS: Final = "redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, or unix:///PATH"
_URL: Final = re.compile(r"rediss?://([^/?#@]*@)?(\[[^]/?#@]*\]|[^]\[/?#@:]*)(:[0-9]+)?(/[0-9]{0,5})?(\?.*)?|unix://.*")

COMMIT: Final = """
local version = ARGV[1]
local function is(done, look)
  local found = {done}
  for i = 2, #KEYS, 2 do
    found[i] = look and redis.call('GET', KEYS[i]) or false
    found[i + 1] = redis.call('HGETALL', KEYS[i + 1])
  end
  return found
end
if version == '' then return is(0, true) end
if redis.call('GETRANGE', KEYS[2], 0, 15) == version then return is(1) end
for i = 2, #KEYS, 2 do
  if redis.call('GETRANGE', KEYS[i], 0, 15) ~= ARGV[i + 2] then return is(0, true) end
end
local writes = {}
for i, moves in ipairs(cjson.decode(ARGV[3])) do
  local seen, adds, sums = unpack(moves)
  local key, amounts = KEYS[2 * i + 1], {}
  local found = redis.call('HGETALL', key)
  for j = 1, #found, 2 do amounts[found[j]] = found[j + 1] end
  for name, value in pairs(seen and amounts or {}) do
    if (seen[name] or '0') ~= value then return is(0, true) end
  end
  for _, add in ipairs(adds) do
    local name, more, least = unpack(add)
    local old = tonumber(amounts[name] or 0)
    if least and old < tonumber(least) then
      writes[#writes + 1] = {'HSET', key, name, least}
      old = tonumber(least)
    end
    if more ~= '0' then writes[#writes + 1] = {'HINCRBY', key, name, more} end
    amounts[name] = old + tonumber(more)
  end
  for _, sum in ipairs(sums) do
    local total = 0
    for j = 3, #sum do total = total + tonumber(amounts[sum[j]] or 0) end
    if (total < tonumber(sum[1])) ~= sum[2] then return is(0, true) end
  end
end
local time = redis.call('TIME')
local head = version .. string.format('%013.0f', time[1] * 1000 + math.floor(time[2] / 1000))
for i = 2, #KEYS, 2 do
  local key, old, new = KEYS[i], ARGV[i + 2], ARGV[i + 3]
  if new ~= '' then
    redis.call('SET', key, head .. new)
    if old == '' then redis.call('ZADD', KEYS[1], 0, string.sub(key, tonumber(ARGV[2]))) end
  end
end
for _, write in ipairs(writes) do redis.call(unpack(write)) end
return is(1)
"""
"""
Do what a step did, all or nothing. The answer is 1 if it is done, or 0 if it is to be done again, since others were there meanwhile; then
of each key its state (if it was not done), and its amounts.

KEYS: keys; of each key its state and its amounts. ARGV: the new version (nothing: only look), by which the first state tells that it was
done; where a key begins in the name of a state; as JSON of each key the amounts that nobody may have changed or false, what is added (name,
amount, the least that it is before, or false), and sums that are below a limit, or are not (limit, whether, names); then of each state the
version that it was, and its bytes (nothing: as they are).
"""

_DROP: Final = """
local now, dropped = redis.call('TIME')[1] * 1000, 0
for i = 2, #KEYS, 2 do
  local at = tonumber(redis.call('HGET', KEYS[i + 1], 'now_ms') or redis.call('GETRANGE', KEYS[i], 16, 28))
  if ARGV[2] == '' or (at and now - at > tonumber(ARGV[2])) then
    dropped = dropped + redis.call('DEL', KEYS[i])
    redis.call('DEL', KEYS[i + 1])
    redis.call('ZREM', KEYS[1], string.sub(KEYS[i], tonumber(ARGV[1])))
  end
end
return dropped
"""
"""KEYS: keys, states each with its amounts. ARGV: where a key begins in a name, the milliseconds it was idle (nothing: any). How many."""

_KINDS: Final = {
    name: kind
    for kind, names in {
        "starting": "LOADING BUSY CLUSTERDOWN TRYAGAIN MOVED ASK NOREPLICAS UNBLOCKED BusyLoadingError ClusterDownError TryAgainError "
        "MovedError AskError",
        "replica": "READONLY MASTERDOWN ReadOnlyError MasterDownError",
        "login": "NOAUTH WRONGPASS DENIED AuthenticationError AuthenticationWrongNumberOfArgsError",
        "forbidden": "NOPERM NoPermissionError",
        "full": "OOM OutOfMemoryError",
        "away": "ConnectionError TimeoutError",
        "disk": "MISCONF",
        "foreign": "WRONGTYPE",
    }.items()
    for name in names.split()
}
"""By the class of the client's error, or by the word that the server begins with."""
_FORBIDDEN: Final = re.compile("(?i)acl failure|user executing the script|no permissions")
"""What a script is told instead of NOPERM."""


class RedisStore(PersistentStore):
    """
    States in the server at *url* (`redis://HOST:PORT/DATABASE`, `rediss://` with TLS, `unix:///PATH`) or of a `redis.Redis` or
    `redis.RedisCluster`, under the keys of *namespace*. Safe in any number of threads, processes and machines.

    One `update` runs the step here, on the states as this process had them last or reads them, and has the server keep what it
    did: of a session only if nobody changed it meanwhile, of a scope what is to be added to its amounts, if the guards would
    have said the same by those that are there now. Otherwise the step is run again. No process ever holds a lock there. It
    takes *timeout* seconds at most, then raises StoreError, as if the server cannot be reached or refuses.

    Raises StoreError if the server could drop states for lack of memory, MissingExtra if the package `redis` is missing.
    """

    _resends = True

    def __init__(self, url: Any, *, namespace: str = "guardrails", timeout: float = 5.0, live: int = LIVE) -> None:
        if not _NAMESPACE.fullmatch(namespace):
            raise StoreError(f"`{namespace}` is no namespace: use 1 to 200 letters, digits and `_.:-/%`")
        with needs("redis", "a store in Redis"):
            import redis.exceptions
        self._errors = redis.exceptions.RedisError
        self.namespace = namespace
        self._stem = f"{{{namespace}}}:".encode()
        self._begins = b"%d" % (len(self._stem) + 3)
        self._given = not isinstance(url, str)
        self._most = live
        self._fit = False
        self._client, place = _client(url, timeout)
        super().__init__(place, timeout, live)
        self._ask(lambda slot: None)

    def tenant(self, id: str) -> "RedisStore":
        """
        Returns the store of the sessions and scopes of one tenant, by the same connections. Keep it for all of its sessions.

        Its keys have a hash tag of their own, so that a cluster spreads tenants.
        """
        namespace = f"{self.namespace}/{quote(id, safe='')}"
        return RedisStore(self._client, namespace=namespace, timeout=self._timeout, live=self._most)

    def _kind(self, error: Exception) -> str:
        text = str(error)
        if _FORBIDDEN.search(text):
            return "forbidden"
        classes = (_KINDS.get(cls.__name__) for cls in type(error).__mro__)
        return _KINDS.get(text.partition(" ")[0]) or next(filter(None, classes), "")

    def _ask(self, ask: Callable[[Slot], T]) -> T:
        def checked(slot: Slot) -> T:
            if not self._fit:
                self._check()
            return ask(slot)

        return super()._ask(ask if self._fit else checked)

    def _check(self) -> None:
        """
        See that the server is fit for a store, and that the namespace is one. Raises StoreError.
        """
        name = self._stem + b"store"
        found = self._client.execute_command("GET", name, NEVER_DECODE=True)
        if found in (None, b"toolcall-guardrails 1"):
            # That of 0.2.0 had a scope's amounts in its state, from which they come into the hash by the next step.
            self._client.set(name, FORMAT)
        elif found != FORMAT:
            raise StoreError(
                f"the store `{self.place}` holds under this namespace what this version cannot read "
                f"(`{found.decode('utf-8', 'replace'):.80}`): use another `namespace`, or the version that wrote it"
            )
        answer = self._client.info()
        # A cluster answers by node.
        for info in answer.values() if all(isinstance(one, dict) for one in answer.values()) else [answer]:
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

    def _run(self, script: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        """
        Returns the answer of *script* about *keys*.
        """
        stem = self._stem
        names = [stem + b"keys", *[stem + kind + name for name in map(name_of, keys) for kind in (b"s:", b"a:")]]
        # Never as an int: hiredis 3.5 packs one by code that a signal's exception makes crash.
        ask, rest = self._client.execute_command, (b"%d" % len(names), *names, *arguments)
        try:
            return ask("EVALSHA", sha_of(script), *rest, NEVER_DECODE=True)
        except self._errors as error:
            if type(error).__name__ != "NoScriptError":
                raise
            return ask("EVAL", script, *rest, NEVER_DECODE=True)

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`. Nothing is kept if *step* raises, or is interrupted.
        """
        held = [self._live.take(key) for key in keys]
        return self._ask(partial(self._change, _Change(keys, [one for one in held if one is not None]), step))

    def _change(self, change: "_Change", step: Callable[[list[SessionState]], T], slot: Slot) -> T:
        keys = change.keys
        if not change.commit:
            if len(change.states) < len(keys):
                change.look(self._run(COMMIT, keys, ("",)), self.place)
            change.result = step([held.state for held in change.states])
            change.commit = change.parts(self._begins)
            if slot not in self._slots:
                raise StoreError(FORKED.format(self.place))
        if change.commit:
            slot.unsure = True
            found = self._run(COMMIT, keys, change.commit)
            version, written, change.commit, slot.unsure = change.commit[0], change.commit[4::2], [], False
            if not found[0]:
                change.look(found, self.place)
                raise Stale
            for held, new, amounts in zip(change.states, written, found[2::2], strict=True):
                held.settle(version if new else held.mark, amounts)
        self._live.keep(keys, change.states)
        return cast(T, change.result)

    def _command(self, *parts: Any) -> Any:
        return self._ask(lambda slot: self._client.execute_command(*parts, NEVER_DECODE=True))

    def __len__(self) -> int:
        return int(self._command("ZCARD", self._stem + b"keys"))

    def read(self, key: str) -> Stored | None:
        """
        See `Listed.read`.
        """
        return self._stored([key])[0][1]

    def _stored(self, keys: Sequence[str]) -> list[tuple[str, Stored | None]]:
        found = self._ask(lambda slot: self._run(COMMIT, keys, ("",)))
        return [(key, _stored(key, *one)) for key, *one in zip(keys, found[1::2], found[2::2], strict=True)]

    def _page(self, prefix: str, last: str) -> Sequence[tuple[str, Stored | None]]:
        keys = self._keys(prefix, last)
        return self._stored(keys) if keys else []

    def _keys(self, prefix: str, last: str) -> list[str]:
        begins = name_of(prefix)
        above = b"(" + name_of(last) if last else b"[" + begins
        # No key begins with it: it is in no UTF-8.
        ends = b"(" + begins + b"\xff"
        return [
            *map(key_of, self._command("ZRANGEBYLEX", self._stem + b"keys", above, ends, b"LIMIT", b"0", b"%d" % BATCH))
        ]

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        self._forget([key], b"")
        self._live.take(key)

    def _forget(self, keys: Sequence[str], idle_ms: bytes) -> int:
        return int(self._ask(lambda slot: self._run(_DROP, keys, (self._begins, idle_ms))))

    def _drop(self, idle_ms: int, prefix: str, *, scopes: bool) -> Iterator[int]:
        last = ""
        while keys := self._keys(prefix, last):
            chosen = [key for key in keys if scopes or not key.startswith(SCOPES)]
            yield self._forget(chosen, b"%d" % idle_ms)
            last = keys[-1]

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
        super().close()
        self._fit = False
        if not self._given:
            self._client.close()

    def __repr__(self) -> str:
        return f"RedisStore({self.place!r}, namespace={self.namespace!r})"


class _Change:
    """
    One change of the states of *keys*: decided here, kept there, exactly once.
    """

    def __init__(self, keys: Sequence[str], states: list[Any]) -> None:
        self.keys = keys
        self.states: list[_Session] = states
        self.fresh = False
        """Whether the states are as the server had them in this very change."""
        self.commit: list[Any] = []
        """What the server is asked, while it is not known whether it did so: it does the same once."""
        self.result: Any = None

    def look(self, found: Sequence[Any], place: str) -> None:
        """
        Have the states that a script has *found*.
        """
        self.fresh = True
        self.states = [
            (_Scope if key.startswith(SCOPES) else _Session)(key, kept, amounts, place)
            for key, kept, amounts in zip(self.keys, found[1::2], found[2::2], strict=True)
        ]

    def parts(self, begins: bytes) -> list[Any]:
        """
        Returns what the commit says; nothing if it would change nothing, and what was looked at was fresh.
        """
        kept = [part for held in self.states for part in held.part()]
        moves = [held.moves() for held in self.states]
        differs = any(kept[1::2]) or any(adds for _, adds, _ in moves)
        if differs:
            # By its version the first one tells that it was done.
            kept[1] = self.states[0].new
        elif self.fresh:
            return []
        return [os.urandom(MARK_BYTES), begins, orjson.dumps(moves), *kept]


class _Session(Held):
    """
    A state, and its version there, the mark.
    """

    __slots__ = ()

    def __init__(self, key: str, kept: bytes | None, amounts: Sequence[bytes], place: str) -> None:
        packed = None if kept is None else kept[HEAD_BYTES:]
        super().__init__((kept or b"")[:MARK_BYTES], packed or b"", unpacked(key, packed, place))

    def part(self) -> tuple[bytes, bytes]:
        """
        Returns its version as it was, and its bytes if they have changed.
        """
        self.new = self.pack()
        return self.mark, b"" if self.mark and self.new == self.packed else self.new

    def moves(self) -> tuple[Any, Any, Any]:
        """
        Returns the amounts that nobody may have changed, or False; what is added; and the sums by which the guards would have said
        the same: whether each is below its limit.
        """
        return False, (), ()

    def settle(self, version: bytes, amounts: Sequence[bytes]) -> None:
        """
        Have what the server has after the commit: this *version*, and of a scope these *amounts*.
        """
        self.mark, self.packed = version, self.new


class _Scope(_Session):
    """
    A scope: `packed` and its `mark` are of its rest, what it is beside its amounts.
    """

    __slots__ = ("amounts", "rest", "shared")

    def __init__(self, key: str, kept: bytes | None, amounts: Sequence[bytes], place: str) -> None:
        super().__init__(key, kept, amounts, place)
        self.amounts = amounts_of(amounts)
        self.state = self.shared = SharedState.of(self.state, self.amounts)
        self.rest: Any = None
        """As this process packed it last."""

    def settle(self, version: bytes, amounts: Sequence[bytes]) -> None:
        super().settle(version, amounts)
        n, self.amounts = self.shared.n, amounts_of(amounts)
        self.shared.have(self.amounts)
        for place in self.shared.places:
            # The step's place in the records is by its true number.
            place[2] += self.shared.n - n
        self.shared.places = []

    def pack(self) -> bytes:
        rest = self.shared.rest()
        if rest == self.rest:
            return self.packed  # So it is with most steps.
        self.rest = rest
        return pack(bare(rest))

    def moves(self) -> tuple[Any, Any, Any]:
        state, before, after, edges = self.shared, self.amounts, self.shared.amounts(), self.shared.edges()
        floors = {edge.names[0]: edge.floor for edge in edges or () if edge.floor is not None}
        floors["now_ms"] = state.now_ms
        moved, adds = {}, []
        for name in before.keys() | after:
            value, old = after.setdefault(name, 0), before.get(name, 0)
            if value != old:
                floor = floors.get(name)
                moved[name] = more = value - (old if floor is None else max(old, floor))
                adds.append((name, str(more), floor is not None and str(floor)))
        moved.pop("n", None)
        moved.pop("now_ms", None)
        grows, asked = max(moved.values(), default=0) > 0, state.asked and not moved
        exact, sums = edges is None, []
        for edge in edges or ():
            total, limit = sum([after.get(name, 0) for name in edge.names]), edge.most
            if asked:
                # It was looked at, and nothing was taken: a call as large as this one would have gone through, or not.
                exact = exact or (edge.step == 0 and total < limit)
                limit -= max(0, edge.step - 1)
            elif total >= limit:
                # Who takes nothing finds the same beyond the limit, whatever others add.
                exact = exact or (grows and not moved.keys().isdisjoint(edge.names))
            sums.append((str(limit), total < limit, *edge.names))
        # Who only looks, without the chain of a scope, looks at what is there now.
        state.chain, state.asked = None, False
        return exact and {name: str(value) for name, value in before.items()}, adds, sums


def amounts_of(found: Sequence[bytes]) -> dict[str, int]:
    """
    Returns the amounts of a scope that the server has.
    """
    return {name.decode(): int(value) for name, value in zip(found[::2], found[1::2], strict=True)}


def _stored(key: str, kept: bytes | None, amounts: Sequence[bytes]) -> Stored | None:
    if kept is None:
        return None
    packed, at = kept[HEAD_BYTES:], kept[MARK_BYTES:HEAD_BYTES]
    with suppress(StateUnreadable):
        if amounts:
            state = _Scope(key, kept, amounts, "").state
            packed, at = pack(state), b"%d" % state.now_ms if state.now_ms else at
    return Stored(key, packed, int(at) if at.isdigit() else 0)


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
        return given, "the client's server"
    if not _URL.fullmatch(given):
        raise StoreError(
            f"this is no URL of a server of Redis: use {_URLS}. In a password write `/` as %2F, `@` as %40, `:` as %3A, "
            "`#` as %23, `?` as %3F"
        )
    limit, place = max(timeout_s / 2.5, 0.001), shown_place(given)
    limits: dict[str, Any] = {"socket_connect_timeout": limit, "socket_timeout": limit}
    try:
        client = redis.Redis.from_url(given, retry=Retry(NoBackoff(), 0), **limits)
        client.connection_pool.make_connection()
    except (TypeError, ValueError) as error:
        # What was raised may quote a part of the password.
        raise StoreError(
            f"the URL `{place}` has an option that cannot be read: see `redis.from_url` ({type(error).__name__})"
        ) from None
    return client, place
